"""What is computed from documents, what it was read from, and what a change of a document reaches."""
