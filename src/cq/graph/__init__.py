"""Who means whom: names, receivers and imports resolved over a whole repository. Pure; no code is run.

The input is `model/code.py`, what the code of each document does with values. `link` lets values (`things`: functions,
classes, instances, modules, containers) flow over the code of all files: a cell is a place that holds values, computed
when it is first read and again when what it read has grown (`engine`). `operations` says what expressions mean, one
handler a form; `members` what names lead to in classes and modules; `calls` and `callers` what functions return and
their parameters get; `containers`, `decorators` and `protocols` what else gives values. A `Dialect` answers where
languages differ. `resolve` asks the settled linker and `links` writes down what is kept of it.

- Every value carries the weakest step on the best way it came: that is the evidence. One value on certain ground is
  `resolved`; several, or one that came through a parameter or a container, are `ambiguous`; what comes from outside is
  `external`. A cap never makes a link wrong, it makes it unknown.
- A call on a receiver nobody knows keeps its name. Its candidates are looked up when somebody asks (`names`): they
  change without the file. So are the attributes that are read off `self`, a class or a module, and all usages.
- What a type names may be of a class below it (`Class.declared`), as `self` may: a method that such a class replaces is
  one of a family, the declared one first (`dispatch`, `Members.find_overrides`). Heirs are found in all documents by
  the names of their bases; where too many have some, the method is possible.
- What a call means and what it runs are two things: a name means the function behind a decorator, the call runs the
  wrapper (`Links.runs`). What runs without a call (`with`, `for`, operators) is `Links.implied`.
- Definitions are named by their dotted name, not by number: lines that move change no other file's links.
"""
