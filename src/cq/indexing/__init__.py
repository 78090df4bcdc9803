"""From files to facts: the one place where sources, syntax and identity meet."""
