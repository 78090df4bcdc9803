"""One module and one query per language; what a language offers is data in its class."""
