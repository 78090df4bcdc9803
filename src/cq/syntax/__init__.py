"""Text and a Language in, facts out: pure, total, one document at a time. Nothing here reads a file or knows a path.

A language is a query (`.scm`) and a class. The engine runs the query once per document; the last capture of a pattern
says what it is about (`syntax/language.py` has the vocabulary). The languages that are read in full capture one node a
pattern: nodes then come in lists, a third cheaper than matches, and `each_<what>` takes a list at once. What follows
from the text alone (a callee, a short argument list) is read once per process, unless the file has errors. Definitions
are collected as drafts and nested by span afterwards; calls and flows are given to the innermost scope in one sweep.
References are not matched one by one: where a language names its keywords, they are the words of the text outside
strings and comments, which equals the grammar's identifiers on every corpus and costs a third.

Chunks follow from the drafts and the root's children. What a chunk's text is with its children collapsed is derived
(`embedding_text`), not stored. Facts hold no path, so equal text is stored once and a moved file is not parsed; uids
are made from a path and the facts by `identity`.
"""
