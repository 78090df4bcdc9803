"""One module per question. Read only: nothing here writes to the index."""
