"""A folder a language: what its text says (facts) and what its names lead to (linking). `tables` holds those that are
read by a table; the registry says which there are."""
