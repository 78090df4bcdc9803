"""Who means whom: names, receivers and imports resolved over a whole repository. Pure; no code is run."""
