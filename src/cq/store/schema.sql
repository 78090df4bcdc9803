-- One file per repository. `content` is what text says, whatever its path; `file` says which text lies
-- where in which tree (a worktree, another root of the same repository, or a revision of it). A format change bumps
-- SCHEMA in database.py and rebuilds; there are no migrations.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE tree (
    id INTEGER PRIMARY KEY,
    root TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,   -- rises with every committed change of what is known of this tree
    config TEXT NOT NULL,          -- hash of the settings that decide which files belong to it
    listing BLOB NOT NULL,         -- directories, watched files and notes of the last full listing
    blobs BLOB                     -- of a revision: zstd of msgpack, path -> the name that git gives its text
);

CREATE TABLE file (
    tree INTEGER NOT NULL,
    path TEXT NOT NULL,
    os_path BLOB,                  -- the name on disk where it is not the path itself
    content INTEGER NOT NULL,
    size INTEGER NOT NULL,
    written_ns INTEGER NOT NULL,
    encoding TEXT NOT NULL,
    problems BLOB,                 -- of decoding; those of parsing are facts
    PRIMARY KEY (tree, path)
) WITHOUT ROWID;
CREATE INDEX file_content ON file (content);

CREATE TABLE skip (
    tree INTEGER NOT NULL,
    path TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    size INTEGER NOT NULL,
    written_ns INTEGER NOT NULL,
    PRIMARY KEY (tree, path)
) WITHOUT ROWID;

CREATE TABLE content (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,            -- xxh3-128 of the text
    language TEXT NOT NULL,
    lines INTEGER NOT NULL,
    counts BLOB NOT NULL,          -- msgpack: symbols, calls, imports, references, chunks, problems, documents
    chunk_base INTEGER NOT NULL,   -- rowid in `words` of its first chunk
    text BLOB NOT NULL,            -- zstd, like all blobs below; msgpack inside
    documents BLOB NOT NULL,
    symbols BLOB NOT NULL,
    calls BLOB NOT NULL,
    imports BLOB NOT NULL,         -- imports and exports
    flows BLOB NOT NULL,
    refs BLOB NOT NULL,
    chunks BLOB NOT NULL,
    code BLOB NOT NULL,
    UNIQUE (hash, language)
);

-- Contents of which facts are lacking that their text would give (cq.model.source.LACKING).
CREATE TABLE partial (
    content INTEGER PRIMARY KEY,
    problems BLOB NOT NULL         -- msgpack: a list of Problem
);

-- What people look up by name: every definition but parameters and locals.
CREATE TABLE symbol (
    content INTEGER NOT NULL,
    document INTEGER NOT NULL,
    number INTEGER NOT NULL,       -- index into the document's symbols
    name TEXT NOT NULL,
    qualified_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (content, document, number)
) WITHOUT ROWID;
CREATE INDEX symbol_name ON symbol (name);

-- Names that code is found by, which may pass a value on: `kind` is the place in NAMED_KINDS of cq.model.code.
CREATE TABLE named (
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (name, kind, content)
) WITHOUT ROWID;

-- Methods by name, for calls on receivers that nobody knows.
CREATE TABLE method (
    name TEXT NOT NULL,
    content INTEGER NOT NULL,
    methods BLOB NOT NULL,         -- msgpack: document, qualified name, parameters of each
    PRIMARY KEY (name, content)
) WITHOUT ROWID;

-- What the code of a file means. Written with the files, in the same transaction. Trees in which it means the same
-- share the row.
CREATE TABLE link (
    id INTEGER PRIMARY KEY,
    links BLOB NOT NULL,           -- Links of every document
    keys BLOB NOT NULL,            -- uint64 each, ascending: what they depend on in this and other files
    homes BLOB NOT NULL,           -- msgpack in zstd: of every function, and of the rest, which of these keys (uint32 each)
    targets BLOB NOT NULL          -- int64 each: its rows in `target`
);
CREATE TABLE linked (
    tree INTEGER NOT NULL,
    path TEXT NOT NULL,
    link INTEGER NOT NULL,
    PRIMARY KEY (tree, path)
) WITHOUT ROWID;
CREATE INDEX linked_link ON linked (link);
-- Which files refer to a definition, and by which calls (uint32 each: document << 24 | number).
CREATE TABLE target (
    key INTEGER NOT NULL,
    link INTEGER NOT NULL,
    calls BLOB NOT NULL,
    PRIMARY KEY (key, link)
) WITHOUT ROWID;

-- What the links of a file lack through mistakes of cq itself; under the path '' those that made a refresh link all.
CREATE TABLE mistake (
    tree INTEGER NOT NULL,
    path TEXT NOT NULL,
    mistakes BLOB NOT NULL,        -- msgpack: a list of Mistake
    PRIMARY KEY (tree, path)
) WITHOUT ROWID;

-- What sources outside say that calls mean (cq.model.evidence). It holds for the text it was said about, of the file
-- that calls and of the file it leads to: with another text it is as if it were not there.
CREATE TABLE evidence (
    tree INTEGER NOT NULL,
    path TEXT NOT NULL,
    source TEXT NOT NULL,          -- lsp.pyrefly, scip
    key INTEGER NOT NULL,          -- of what is meant, as in `target`
    role INTEGER NOT NULL,         -- 0 what is called, 1 the constructor that it runs, 2 a definition that the source names,
                                   -- 3 what was seen to run there
    target_path TEXT NOT NULL,     -- '' outside the repository
    target_document INTEGER NOT NULL,
    target_name TEXT NOT NULL,     -- as links name it; outside, the module
    target_hash TEXT NOT NULL,
    calls BLOB NOT NULL,           -- uint32 each: document << 24 | number
    PRIMARY KEY (tree, path, source, key, role)
) WITHOUT ROWID;
CREATE INDEX evidence_key ON evidence (tree, key);
-- Which text of a file a source has been asked about.
CREATE TABLE asked (
    tree INTEGER NOT NULL,
    path TEXT NOT NULL,
    source TEXT NOT NULL,
    version TEXT NOT NULL,         -- of the source
    hash TEXT NOT NULL,
    PRIMARY KEY (tree, path, source)
) WITHOUT ROWID;

-- The kind of every chunk, one byte each, and how many words it has, two bytes each: what a question is narrowed by
-- before anything is ranked, and what a word in it is worth.
CREATE TABLE kind (content INTEGER PRIMARY KEY, kinds BLOB NOT NULL, sizes BLOB NOT NULL);

-- Vectors of the chunks of one file, as one embedder made them; see vectors.py. A cache beside the tree's files: rows
-- of another content or identity than the file's and the embedder's are as good as none.
CREATE TABLE vector (
    id INTEGER PRIMARY KEY,
    tree INTEGER NOT NULL,
    path TEXT NOT NULL,
    content INTEGER NOT NULL,
    identity TEXT NOT NULL,
    rows BLOB NOT NULL,
    UNIQUE (tree, path)
);

-- Candidates only: every hit is verified against the text or the facts.
CREATE TABLE trigram (content INTEGER PRIMARY KEY, bits BLOB NOT NULL);  -- see trigrams.py
-- rowid = content.id.
CREATE VIRTUAL TABLE name USING fts5 (defined, called, used, content='', tokenize="ascii tokenchars '_$'", detail=column, columnsize=0);

-- Fielded BM25 over chunks; rowid = content.chunk_base + index. Paths are scored beside it, since content has none.
CREATE VIRTUAL TABLE words USING fts5 (name, qualified_name, signature, docs, body, content='', tokenize='porter ascii', detail=column);
