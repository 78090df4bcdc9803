"""One module per question. Read only: nothing here writes to the index.

What a question may be told is declared once, in the struct of its options: a field whose type holds an `Option` says
how it is written (`answers/options.py`, which also has the options that many questions share). Commands and their help,
steps of plans, completion, the tables of the docs and the manual are derived from it; `read_form` is the one way from
what was written to the options, and `snapshot/places` reads the words in it that may count from a working directory.
`questions/table.py` lists the questions without importing one.

Every question gives one `Answer` (`model/answer.py`): a card, sections of findings, events for what was not done, and a
record of every cap. `snapshot/files` are the files a question looks at (of the index, or of the disk where there is
none), `snapshot/target` reads a TARGET, `answers/page` cuts a page out of findings and counts tokens,
`snapshot/relations` shows the links as a graph of definitions, which `graph/walk` walks. `semantics` is what they all
ask about links: `documents` (who is it), `calls` and `meanings` (what does it mean), `referrers` and `usages` (who
refers to it), over one `Memory` of one generation of the tree. A finding is made only if it is shown: `cq search`
parses nothing for the mentions it counts.

`cq neighborhood` is a package of its own: `structure` and `links` collect members with their evidence, `foreign` those
in another language (`languages/rust/foreign` knows what Rust offers under which name), `history` what changed together,
`near` what stored vectors hold to be about the same, `signals` merges what language servers say; `bundle` makes nodes
and edges and cuts to size, `layout` the sections. `reuse` keeps what was found with a trace of all that was read from
the index (`store/trace`): after a change, slices whose reads still give the same rows stand. `cq exceptions` and `cq
side-effects` read the code that is kept of a document: their `handlers` and `loading` say what is raised and protected,
and what loading leaves out; what names mean they ask of links. `snapshot/bodies` says in whose body a place lies.

A plan (`model/plan`) is checked by `questions/run/plan`, which runs it over a function that answers a step and knows no
workspace; `questions/run/steps` makes the type of a step from the options of its question, and a step into those
options. The snapshot lends all steps one reader and one `Relations`. Reports (`questions/run/presets`) are plans.
"""
