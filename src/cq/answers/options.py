"""The options of questions. A question declares each of its options once, in the struct of its options; commands, steps
of plans, arguments over MCP, schemas, completion and the tables of the docs are derived from that declaration.

What people and programs write differs from the fields of the struct: `--lang` for `languages`, two flags for a field
with three values, four options for a page. `find_written` lists what may be written, `make_form` makes the struct that
takes it as JSON, and `read_form` turns what was written into the options.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from keyword import iskeyword
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from cq.answers.page import Page
from cq.model.errors import UsageError

MAX_TEXT = 10_000
Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
MaybeText = Annotated[str, Meta(max_length=MAX_TEXT)]
Words = Annotated[tuple[Text, ...], Meta(max_length=100)]

# What a word names that may count from the working directory: a TARGET; a TARGET or the path of a file; of a file or a
# directory; a directory or a file that must exist.
# `subject` is a word and a colon in front of a TARGET or path.
Place = Literal["", "target", "file", "part", "folder", "subject"]
Group = Literal["", "servers", "files", "answer"]
Shape = Literal["flag", "text", "texts", "count", "share"]


class Flag(msgspec.Struct, frozen=True):
    """A flag that stands for one value of its field."""

    name: str
    value: Any
    help: str
    short: str = ""


class Option(msgspec.Struct, frozen=True):
    """How a field is written. It goes into the type of the field: `Annotated[bool, Option("only the cycles")]`."""

    help: str = ""
    name: str = ""  # where it is not the field's
    metavar: str = ""
    argument: bool = False  # known by its place on a command line, not by a name
    joined: bool = False  # an argument of several words
    place: Place = ""
    choices: tuple[str, ...] = ()
    parse: Callable[[Any], Any] | None = None  # what the words mean, joined by commas, or what `json` says
    flags: tuple[Flag, ...] = ()  # instead of a value
    bare: str | None = None  # the value of an option that is named without one
    several: bool = False  # the question is asked of each of several
    page: tuple[str, ...] = ()  # of a Page: which parts of it may be written
    group: Group = ""
    json: Any = None  # the type that programs write, where it is not text; no command line has such an option


class Written(msgspec.Struct, frozen=True):
    """One option as it is written: `--lang`, or `lang` in JSON. `field` is the field it gives, `part` which part of a
    page."""

    name: str
    field: str
    option: Option
    shape: Shape
    type: Any  # what JSON says
    help: str
    default: Any = None
    required: bool = False
    part: str = ""
    value: Any = True  # of a flag
    short: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def key(self) -> str:
        """In JSON."""
        return self.name.replace("-", "_")

    @property
    def label(self) -> str:
        """In a sentence about it."""
        return (self.option.metavar or self.name) if self.option.argument else f"--{self.name}"

    @property
    def attribute(self) -> str:
        return self.field if iskeyword(self.key) else self.key


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every struct of options offers."""

    examples: ClassVar[str] = ""  # command lines, each with what it does
    # Fields that a step of a plan has otherwise by default.
    in_plans: ClassVar[Mapping[str, Any]] = {}
    least_tokens: ClassVar[int] = 0  # a step shows next to nothing below

    def check(self) -> None:
        """UsageError for values that are none; asked before an index is made."""

    def command(self, name: str, **changes: Any) -> str:
        """The command line that asks this, with some of it changed; of the same tree, where `place` says so."""
        asked = msgspec.structs.replace(self, **changes)
        usual = {field.name: field.default for field in msgspec.structs.fields(self)}
        written: list[tuple[Written, Any]] = []
        for one in find_written(type(self)):
            value = getattr(asked, one.field)
            if not one.part and value != usual[one.field] and (not one.option.flags or value == one.value):
                written.append((one, value))
        page = getattr(asked, "page", None)
        more = [*(page.flags() if isinstance(page, Page) else ()), *getattr(asked, "place", ())]
        return write_command(name, written, more)

    def for_lines(self) -> Self:
        """The same question asked for bare lines: what they have no room for need not be found."""
        return self


_O = TypeVar("_O", bound=Options)


class Places(Protocol):
    """Reads words that may count from the working directory."""

    def read(self, word: str, place: Place, option: str) -> str: ...


def find_languages(text: str) -> tuple[str, ...]:
    """`auto` is every language; UsageError for a name that is none."""
    from cq.source.language import get_language_id

    names = split(text)
    if not names:
        raise UsageError("--lang names no language", hint="`cq languages` lists them")
    return () if names == ["auto"] else tuple(dict.fromkeys(map(get_language_id, names)))


def split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


# What many questions are told, each word of it once.

OneTarget = Annotated[
    str,
    Option(
        "Name, Class.method, path:Name, path:line[:col], pkg.mod.Name",
        metavar="TARGET",
        argument=True,
        place="target",
        several=True,
    ),
]
CodeTarget = Annotated[
    str, Option("a definition, or the path of a file", metavar="TARGET|PATH", argument=True, place="file", several=True)
]
Languages = Annotated[
    tuple[str, ...],
    Option(
        "only these languages (default: auto, all)", "lang", "LANG,…", parse=find_languages, group="files"
    ),
]  # fmt: skip
Inside = Annotated[
    tuple[str, ...], Option("only below this directory or file", "in", "DIR", place="folder", group="files")
]
Include = Annotated[tuple[str, ...], Option("only these files, as in .gitignore", metavar="GLOB", group="files")]
Exclude = Annotated[tuple[str, ...], Option("not these files; outranks --include", metavar="GLOB", group="files")]
_NO_SERVERS = Flag("no-lsp", False, "ask no language server; the index alone")
_START_SERVERS = Flag("lsp", True, "ask language servers, start them if need be")
AskServers = Annotated[bool, Option(name="lsp", flags=(_NO_SERVERS,), group="servers")]
# None: only those that run already.
AskWarmServers = Annotated[bool | None, Option(name="lsp", flags=(_START_SERVERS, _NO_SERVERS), group="servers")]
Paged = Annotated[Page, Option(page=("limit", "budget", "page", "all", "count", "by"), group="answer")]
PagedRows = Annotated[Page, Option(page=("limit", "budget", "page", "all"), group="answer")]  # that are no places
Budgeted = Annotated[Page, Option(page=("budget",), group="answer")]
Whole = Annotated[Page, Option(page=("budget", "all"), group="answer")]
Positive = Annotated[int, Meta(ge=1)]

BY = ("file", "directory", "kind", "caller")
_PAGE: dict[str, tuple[str, Any, str, str]] = {  # name -> (part, type, metavar, help)
    "limit": ("limit", Positive, "N", "findings on a page (default: {})"),
    "budget": ("budget", Positive, "TOKENS", "how long the answer may be (default: 8000)"),
    "page": ("number", Positive, "N", "the next findings"),
    "all": ("all", bool, "", "everything on one page, however long"),
    "count": ("count", bool, "", "only how many there are, and in how many files"),
    "by": ("by", Literal[*BY], "|".join(BY), "how many there are by each of these, most first"),
}


@cache
def find_written(kind: type[msgspec.Struct]) -> tuple[Written, ...]:
    """What may be written of these options: arguments first, then by group, in the order of the fields."""
    hints = get_type_hints(kind, include_extras=True)
    found: list[Written] = []
    for field in msgspec.structs.fields(kind):
        bare, notes = _open(hints[field.name])
        option = next((note for note in notes if isinstance(note, Option)), None)
        if option is None:
            continue  # the program's own
        bounds = [note for note in notes if isinstance(note, Meta)]
        default = None if field.required else field.default
        if option.page:
            assert isinstance(default, Page)
            found += [_write_page(field.name, option, name, default) for name in option.page]
        elif option.flags:
            for flag in option.flags:
                found.append(
                    Written(
                        flag.name, field.name, option, "flag", bool, flag.help, False, value=flag.value,
                        short=flag.short,
                    )
                )  # fmt: skip
        else:
            found.append(_write(field.name, option, bare, bounds, default, field.required))
    order = ("", "servers", "files", "answer")
    return tuple(sorted(found, key=lambda one: (not one.option.argument, order.index(one.option.group))))


def _open(annotation: Any) -> tuple[Any, list[Any]]:
    """The type without None, and what is noted beside it."""
    notes: list[Any] = []
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        notes += more
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if type(None) in get_args(annotation) and len(kinds) == 1:
        inner, more = _open(kinds[0])
        return inner, notes + more
    return annotation, notes


def _write(field: str, option: Option, bare: Any, bounds: list[Meta], default: Any, required: bool) -> Written:
    name = option.name or field.replace("_", "-")
    shape: Shape = "text"
    kind: Any = Text if required else MaybeText
    if option.json is not None:
        kind = option.json
    elif bare is bool:
        shape, kind = "flag", bool
    elif bare is int or bare is float:
        shape, kind = "count" if bare is int else "share", Annotated[bare, *bounds] if bounds else bare
    elif option.parse is not None or get_origin(bare) is tuple:
        shape, kind = "texts", Words
    elif option.choices:
        kind = Literal[option.choices]
    least, most = ([getattr(bound, name) for bound in bounds if getattr(bound, name) is not None] for name in _BOUNDS)
    return Written(
        name, field, option, shape, kind, option.help, default, required, least=min(least, default=None),
        most=max(most, default=None),
    )  # fmt: skip


_BOUNDS = ("ge", "le")


def _write_page(field: str, option: Option, name: str, default: Page) -> Written:
    part, kind, metavar, line = _PAGE[name]
    of_part = Option(line.format(default.limit), metavar=metavar, group=option.group)
    if part == "by":
        named = Option(line, metavar=metavar, group=option.group)
        return Written(name, field, named, "text", kind, line, part=part)
    if kind is bool:
        return Written(name, field, of_part, "flag", bool, of_part.help, False, part=part)
    return Written(name, field, of_part, "count", kind, of_part.help, part=part, least=1)


def make_form(
    name: str,
    kind: type[msgspec.Struct],
    base: type[msgspec.Struct] = msgspec.Struct,
    *,
    without: Collection[str] = (),
    **config: Any,
) -> type[msgspec.Struct]:
    """The struct that takes as JSON what may be written. What was not written is None, () or False there."""
    fields: list[Any] = []
    renamed: dict[str, str] = {}
    for one in find_written(kind):
        if one.key in without:
            continue
        if one.attribute != one.key:
            renamed[one.attribute] = one.key
        told = Meta(description=one.help)
        if one.required:
            fields.append((one.attribute, Annotated[one.type, told]))
            continue
        default = False if one.shape == "flag" else () if one.shape == "texts" else None
        fields.append((one.attribute, Annotated[one.type if default is not None else one.type | None, told], default))
    return msgspec.defstruct(
        name, fields, bases=(base,), frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True,
        rename=renamed or None, **config,
    )  # fmt: skip


def write_command(name: str, written: Iterable[tuple[Written, Any]], more: Iterable[str] = ()) -> str:
    """As a line to paste: what is asked about first, or, where it looks like an option, behind a mark at the end."""
    arguments: list[str] = []
    words: list[str] = []
    for one, value in written:
        texts = [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
        if one.option.argument:
            arguments += texts
        elif one.shape == "flag":
            words.append(one.short or f"--{one.name}")
        else:
            texts = [",".join(texts)] if one.option.parse is not None else texts
            words += [f"--{one.name} {shlex.quote(text)}" for text in texts]
    quoted = [shlex.quote(text) for text in arguments]
    if any(not text or text.startswith("-") for text in arguments):
        return " ".join(["cq", name, *words, *more, "--", *quoted])
    return " ".join(["cq", name, *quoted, *words, *more])


def spread(kind: type[msgspec.Struct], given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What was written, once for each target where the question is asked of several."""
    key = next((one.key for one in find_written(kind) if one.option.several), "")
    targets = given.get(key)
    if not isinstance(targets, list) or not all(isinstance(each, str) for each in cast("list[Any]", targets)):
        return [given]
    return [{**given, key: each} for each in dict.fromkeys(cast("list[str]", targets))]


def read_form(
    kind: type[_O],
    given: Mapping[str, Any],
    places: Places,
    *,
    lines: bool = False,
    measure: str = "text",
    own: Mapping[str, Any] | None = None,
) -> _O:
    """The options that were written, by their keys in JSON; UsageError for what contradicts itself.

    `lines`: for somebody who wants bare lines, all of them where no number is given. `own` are the values of what the
    program settles itself."""
    values = {name: value for name, value in (own or {}).items() if name in kind.__struct_fields__}
    flags: dict[str, Written] = {}
    pages: dict[str, Any] = {}
    for one in find_written(kind):
        value = given.get(one.key)
        if one.part:
            pages[one.part] = value
        elif value is None or value is False or (not value and isinstance(value, list | tuple)):
            continue
        elif one.option.flags:
            if other := flags.get(one.field):
                raise UsageError(f"--{one.name} contradicts --{other.name}", hint="give one or the other")
            flags[one.field], values[one.field] = one, one.value
        else:
            values[one.field] = _read(one, value, places)
    if pages:
        default = next(field.default for field in msgspec.structs.fields(kind) if field.name == "page")
        values["page"] = _read_page(pages, default, lines, measure)
    if "measure" in kind.__struct_fields__:
        values["measure"] = measure
    options = kind(**values)
    return options.for_lines() if lines else options


def _read(one: Written, value: Any, places: Places) -> Any:
    option = one.option
    if option.json is not None and option.parse is not None:
        return option.parse(value)
    if option.place:
        words = [value] if isinstance(value, str) else value
        read = [places.read(word, option.place, one.label) for word in words]
        value = tuple(word for word in read if word) if one.shape == "texts" else read[0]
    if one.shape != "texts":
        return value
    return option.parse(",".join(value)) if option.parse is not None else tuple(value)


def _read_page(given: Mapping[str, Any], default: Page, lines: bool, measure: str) -> Page:
    limit, budget, number = given.get("limit"), given.get("budget"), given.get("number") or 1
    by = given.get("by") or ""
    if by and by not in BY:
        raise UsageError(f"--by {by} is nothing to count by", hint=f"it is {', '.join(BY)}")
    if by and given.get("count"):
        raise UsageError("--by counts already, --count says only how many", hint="give one or the other")
    if given.get("all") and (limit is not None or budget is not None or number != 1):
        raise UsageError("--all leaves nothing for --limit, --budget or --page", hint="give one or the other")
    # A pipe wants every line; only who reads wants a page.
    everything = given.get("all") or lines
    return Page(
        limit or (0 if everything else default.limit),
        budget or (0 if everything else default.budget),
        number,
        measure,
        by or ("count" if given.get("count") else ""),
    )
