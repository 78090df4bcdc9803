"""Language servers, Python's symbol tables and its bytecode as sources of evidence: never required, always bounded.

`registry` says which providers there are and whether they can run; `ask` puts questions to them, each answered with
a `Reply` that states its coverage; `sessions` keeps servers warm and ends them. Nothing here raises for what a server
does: a provider that fails is an answer that says so.

`rpc` speaks JSON-RPC with one process and trusts nothing it writes; `session` is one language server for one root
(start, restart with a growing pause, open documents, what it offers, requests in bulk); `planes` are the questions,
`answers` turns any JSON into our structs, `documents` and `positions` lead back to byte offsets of the file that holds
a document. `registry` knows who is there and asks them in one order; each server is one module beside it. A reply says
how complete it is, and why not: a server that is missing, slow or broken is a reply that says so, never an error. A
restart is another connection with other ids, so no answer can reach a question it was not asked for. A server that
would run what a repository names is configured not to, or is not asked.

Questions ask through `snapshot/servers`: a definition becomes a place in a document, and places that come back become
locations and definitions of the index, by offset and only where the text on the disk is the index's. Servers live as
long as a workspace of their root, in the daemon's worker as long as the worker; `answers/enrichment` asks those that
run about the target of an answer while the answer is made.

What servers and other indexes say about calls (`indexing/precise`, `indexing/evidence`) is kept beside the links, by
the hashes of both texts, and merged into them by `Reader.links` (`model/evidence`): the links themselves stay what our
own resolution made of the code, so a refresh need not know, and what no longer holds is not there.
"""
