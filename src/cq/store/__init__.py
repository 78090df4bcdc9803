"""The index on disk: one SQLite file per repository, and the only place that speaks SQL.

`content` holds a text, its facts (msgpack in zstd, one blob per kind of fact, so that a question decodes only what it
asks about) and is keyed by the text's hash and language; `file` says which path of which tree has which content, so
worktrees share everything that is equal. Three tables give candidates: a bitmap of the trigrams of every text, and in
FTS5 the names defined, called and used, and the fielded words of every chunk. A refresh first compares the stat of
every known file and directory; only when names changed is the tree listed again. `content` that no file has is kept for
a while: branches are come back to.

`index.db` is the head (`store/head.py`): it names the data file, says what that file was when it was last written, and
has a digest of every page. While inode, size and times are those, nothing is checked; otherwise every page is, and a
wrong one makes the index anew. A writer tells the head which pages its log has before they move into the data file, so
that head and data agree whenever it is killed. A question that fails has the pages checked before it is called a
mistake of ours, and is asked again if they were damaged (`workspace._mends`). What other indexers and language servers
said also lies in a log per source (`store/kept.py`), from which a new index takes it, and which a sound index writes
anew when it is damaged.
"""
