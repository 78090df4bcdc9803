"""Where data goes: rules, abstract values, summaries of functions and the flows they add up to. Pure.

Documents are read again in detail (`Description.detail`, `languages/python/detail.py`): the same typed code with what
only those need who follow values along statements: exits, what joins conditions and choices, whole texts. The index
keeps none of it. `body` nests the events of a function by place, `interpret` runs over them (`Value` = constant ×
taints × objects × what it is called; strong updates; a branch dies when its condition folds), `guards` says what a
condition shows, `calls` what a call does: by rules where it leads outside, by the summary of a function (`engine`)
where links lead to one. A taint of a parameter stands for whatever callers pass; a summary is made again for constants
and functions that are passed.
"""
