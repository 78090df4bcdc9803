"""The page: every question in a browser, rendered here and readable without script. Nothing is computed: a page asks
what a command asks, shows the answer, and the same address with `.json` gives what the command prints."""
