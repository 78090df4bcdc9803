"""Languages of which definitions, calls and imports are read, one module each."""
