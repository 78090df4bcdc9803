"""Text and a Language in, facts out: pure, total, one document at a time. Nothing here reads a file or knows a path."""
