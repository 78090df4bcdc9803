"""From a directory to decoded source files: which files there are, what they say, and the documents inside them."""
