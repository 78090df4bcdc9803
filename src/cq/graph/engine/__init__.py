"""What is computed from documents, what it was read from, and what a change of a document reaches.

The linker reads documents as views (`view`): each accessor notes what was read for the cell that is being computed, so
that no reader can forget to. What an accessor answers is a row of a table (`tables`); to see more of a document, add a
table. The links of a function come with the rows that they depend on, and a change is told by the rows that say
something else (`change`, `digest`); they are free of offsets and of what variables of functions are called. Functions
that depend on a changed row are linked again, the others kept. One that returns something else is first asked, of the
code before and after, whether it gives other values (`graph/given`). Files that come or go change what modules are
called: then all are linked. Both ways give the same rows.
"""
