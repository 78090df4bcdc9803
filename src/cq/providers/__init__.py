"""Language servers, Python's symbol tables and its bytecode as sources of evidence: never required, always bounded.

`registry` says which providers there are and whether they can run; `ask` puts questions to them, each answered with
a `Reply` that states its coverage; `sessions` keeps servers warm and ends them. Nothing here raises for what a server
does: a provider that fails is an answer that says so.
"""
