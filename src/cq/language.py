"""Which languages there are, and what is known of each beside its grammar: `languages/<folder>/<id>.toml`.

What stands above the first table of such a file is read of all languages at once: a `Description`. The tables are read
of one language, when somebody asks for them: `load_table`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

Offer = Literal[
    "symbols", "calls", "imports", "exports", "references", "flows", "types", "docs",
    "links", "candidates", "scopes", "exceptions", "effects", "risk",
]  # fmt: skip
TEXT = "text"  # the language of prose, and of every file in none that we know
_FOLDER = Path(__file__).parent / "languages"
_Table = TypeVar("_Table")


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files with suffixes of another language that are in this one where their beginning matches."""

    suffixes: tuple[str, ...]
    pattern: str


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a field does not give is as in the language that it is a variant of, else as here."""

    id: str = ""
    label: str = ""
    # -- how its files are known: the first suffix is the one that tools expect
    suffixes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    names: tuple[str, ...] = ()  # what people call it: in a shebang, behind a fence, in a question
    runners: tuple[str, ...] = ()  # two words of a shebang that run a program in it
    script_types: tuple[str, ...] = ()  # `type` of a <script> that holds it
    declares_encoding: bool = False  # in a comment, as PEP 263 has it
    # -- what is read of it: classes are `module:Class` below cq.languages
    reader: str = ""
    detail: str = ""  # reads its code in detail, for those who follow values along the statements
    shapes: str = ""  # reads what it says of types and of functions as values
    projects: str = ""  # finds the projects that files of a repository configure: `module:function`
    grammar: str = ""
    grammar_function: str = "language"
    dialect: str = ""
    offers: tuple[Offer, ...] = ()
    is_holder: bool = False  # files hold documents in other languages, and nothing else that a query could ask for
    # -- what it is like
    variant_of: str = ""  # who asks for that one means this one too
    family: str = ""  # languages whose code can name each other's definitions; its own id where nothing is given
    is_data: bool = False  # programs are not made of it
    has_vectors: bool = True
    has_long_lines: bool = False  # a long line does not mean that a program wrote it
    is_minified: bool = False  # files are published without blanks
    line_comments: tuple[str, ...] = ()
    block_comments: tuple[tuple[str, str], ...] = ()
    remark: str = ""  # a comment inside brackets
    is_host: bool = False  # the language cq is written in: the interpreter can be asked about its code
    is_indented: bool = False  # indents are its brackets
    has_docstrings: bool = False
    has_descriptors: bool = False  # attributes that are methods: `__get__`, `property(get, set)`
    has_implicit_members: bool = False  # a name alone may be a member of the class around it
    has_inline_tests: bool = False  # beside the code, in one file
    has_named_expressions: bool = False  # `memo(function Inner() {})`
    has_prototypes: bool = False  # a function without a body announces one that is defined elsewhere
    has_open_heads: bool = False  # what stands among the parameters of a function sees them: `(a, b = a) => …`
    has_sealed_functions: bool = False  # a function sees no names of the function around it
    receiver: Literal["", "first", "self"] = ""  # the parameter that a method is called on: any first, one of that name
    signature: str = ""  # a definition to be read for its parameters, `{}` for name and parameters
    type_guard: str = ""  # the condition of imports for types alone
    imports_by: Literal["", ".", "::"] = ""  # what stands between the parts of a module's name
    module_files: tuple[str, ...] = ()  # what stands behind them in the path of its file
    foreign_calls: tuple[str, ...] = ()  # ways on which it calls code in other languages
    foreign_offers: tuple[str, ...] = ()  # ways on which it can be called
    # -- what queries can ask
    matcher: str = ""  # the name ast-grep has for it; "": it has no grammar
    entities: tuple[str, ...] = ()  # of those that not every language with links has

    @property
    def suffix(self) -> str:
        return f".{self.suffixes[0]}" if self.suffixes else ""

    @property
    def has_links(self) -> bool:
        return "links" in self.offers


@cache
def describe(language: str) -> Description:
    """Total: of a language that is none of ours nothing is known."""
    return all_languages().get(language) or Description(id=language, family=language)


@cache
def all_languages() -> dict[str, Description]:
    """Those that links resolve first, then those programs are made of; else by name."""
    known = {name: (file, _parse(file, _read(file).partition("\n[")[0])) for name, file in sorted(_files().items())}
    found: list[Description] = []
    for name, (file, own) in known.items():
        above = known.get(str(own.get("variant_of")), (file, {}))[1]
        kept = {key: above[key] for key in above if key not in _OF_ONE}
        found.append(_convert(file, {"family": own.get("variant_of", name), **kept, **own, "id": name}, Description))
    found.sort(key=lambda each: (not each.has_links, not each.grammar, each.is_data, each.is_holder, each.id))
    return {each.id: each for each in found}


def parsed_languages() -> list[str]:
    """Those with a grammar; files in others still have text and a chunk."""
    return [name for name, each in all_languages().items() if each.grammar]


# What a variant has for itself.
_OF_ONE = frozenset({"label", "suffixes", "files", "claims", "names", "runners", "script_types"})


@cache
def load_table(language: str, name: str, kind: type[_Table]) -> _Table:
    """A table of a language's file, or that of the language it is a variant of; the defaults where there is none."""
    file = _files().get(language)
    data = {} if file is None else _parse(file, _read(file))
    if file is not None and name in data:
        return _convert(file, data[name], kind)
    above = describe(language).variant_of
    return load_table(above, name, kind) if above else kind()


@cache
def load_known(language: str, name: str, kind: type[_Table]) -> _Table:
    """A file of functions that are known by name, `known/<name>.toml` in the folder of the language; the defaults where
    there is none."""
    described = _files().get(language)
    file = described and described.parent / "known" / f"{name}.toml"
    return _convert(file, _parse(file, _read(file)), kind) if file and file.exists() else kind()


def read_query(language: str, name: str) -> str:
    """`<name>.scm` of the folder of a language."""
    return _read(_files()[language].with_name(f"{name}.scm"))


@cache
def _files() -> dict[str, Path]:
    return {file.stem: file for folder in _FOLDER.iterdir() if folder.is_dir() for file in folder.glob("*.toml")}


def _read(file: Path) -> str:
    return file.read_text("utf-8")


def _parse(file: Path, text: str) -> dict[str, object]:
    import tomllib  # takes longer to import than the files take to read

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file.relative_to(_FOLDER)}: {error}") from None


def _convert(file: Path, data: object, kind: type[_Table]) -> _Table:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{file.relative_to(_FOLDER)}: {error}") from None


class LanguageRow(msgspec.Struct, frozen=True):
    """What one language offers; `capabilities` are the facts users can count on."""

    id: str
    label: str
    extensions: tuple[str, ...]
    grammar: str
    capabilities: tuple[str, ...]


def list_languages() -> tuple[LanguageRow, ...]:
    """In the order of the registry; variants that share everything but a name included."""
    rows: list[LanguageRow] = []
    for name, each in all_languages().items():
        if each.grammar:
            extensions = tuple(f".{suffix}" for suffix in (each.suffixes[0], *sorted(each.suffixes[1:])))
            rows.append(LanguageRow(name, each.label, extensions, each.grammar.replace("_", "-"), each.offers))
    return tuple(rows)
