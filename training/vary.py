"""The same question as somebody else would put it: fewer words, other words, a question's form. Documentation is
written by one who knows the name of the function; a question is not."""

from __future__ import annotations

import hashlib
import random

from cq.embed.words import split_words
from training.lexical import STOP, stem

# Words that stand for each other in code and in what is said about it.
_ALIKE = """
auth authentication authorization login; config configuration settings options; db database; msg message; req request;
res response; err error exception failure; arg argument parameter; param parameter argument; args arguments;
dir directory folder; doc document documentation; env environment; exec execute run; func function; id identifier;
img image picture; info information; init initialize initialise setup; lib library; max maximum largest; min minimum
smallest; num number count; obj object; param parameter; perm permission; pkg package; prev previous; proc process;
ref reference; repo repository; spec specification; str string text; sync synchronize; temp temporary; tmp temporary;
val value; var variable; ver version; addr address; attr attribute; auth credentials; buf buffer; calc calculate
compute; char character; cmd command; conn connection; ctx context; cur current; decl declaration; def definition;
del delete remove; desc description; dest destination target; diff difference; elem element; expr expression;
ext extension; fmt format; idx index position; iter iterate loop; len length size; loc location; mem memory;
meta metadata; mod module; op operation; opt option; orig original; pos position; pred predicate; prop property;
pwd password; sec second; sep separator; seq sequence; sig signature; sock socket; src source; stat statistic status;
stmt statement; sub subscribe; sys system; tok token; ts timestamp; tz timezone; usr user; util utility; vec vector;
win window; get fetch retrieve obtain read; return give yield; create make build construct generate; remove delete
drop discard; check verify validate test; find search locate lookup; convert transform turn translate; parse read
decode; write save store; send emit dispatch; show display render print; start begin launch; stop end halt; add append
insert; change modify update alter; compute calculate; handle process deal; raise throw; call invoke; copy clone
duplicate; split divide; join merge combine; wait block sleep; list enumerate; load read import; open connect; close
shut; match equal; retry again; cache memoize remember; log record; register add; allow permit; deny reject refuse;
"""


def _alike() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _ALIKE.replace("\n", " ").split(";"):
        words = line.split()
        for word in words:
            found.setdefault(word, []).extend(other for other in words if other != word)
    return found


ALIKE = _alike()
_HOW = (
    "how to {}",
    "how do i {}",
    "where do we {}",
    "code to {}",
    "function to {}",
    "which code does {}",
    "how does it {}",
)
_WHAT = ("how is {} handled", "where is {}", "what does {}", "where is {} implemented", "{} implementation")


# Where what a verb is about ends, and what says nothing about it.
_ENDS = frozenset(
    [
        "in",
        "of",
        "for",
        "with",
        "from",
        "to",
        "by",
        "on",
        "as",
        "at",
        "if",
        "when",
        "that",
        "which",
        "using",
        "into",
        "and",
        "or",
        "so",
        "than",
        "but",
        "unless",
        "until",
    ]
)
_BEFORE = frozenset(["a", "an", "the", "this", "these", "given", "specified", "all", "any", "its", "their", "each"])
_NOUNS = {
    "initialize": "initialization", "serialize": "serialization", "deserialize": "deserialization",
    "delete": "deletion",
    "create": "creation", "compress": "compression", "execute": "execution", "register": "registration",
    "resolve": "resolution", "compare": "comparison", "detect": "detection", "inject": "injection",
    "select": "selection", "extract": "extraction", "connect": "connection", "convert": "conversion",
    "manage": "management", "retrieve": "retrieval", "remove": "removal", "add": "addition",
}  # fmt: skip
_DONE = {
    "get": "got", "send": "sent", "read": "read", "write": "written", "make": "made", "build": "built", "set": "set",
    "find": "found", "split": "split", "run": "run", "put": "put", "take": "taken", "give": "given", "keep": "kept",
    "hold": "held", "draw": "drawn", "throw": "thrown", "show": "shown", "bind": "bound", "cut": "cut", "let": "let",
    "stop": "stopped", "drop": "dropped", "map": "mapped", "wrap": "wrapped", "strip": "stripped", "skip": "skipped",
    "log": "logged", "plot": "plotted", "trim": "trimmed", "reset": "reset", "begin": "begun", "choose": "chosen",
}  # fmt: skip


def vary(text: str, name: str) -> str:
    """Another form of a question about what is called `name`; always the same one for the same question."""
    rng = random.Random(hashlib.sha1(f"{text}\0{name}".encode()).digest())
    words = split_words(text)
    if rng.random() < 0.45:
        topic = _topic(words, rng)
        if topic:
            return topic
    own = {stem(word) for word in name.split()}
    if rng.random() < 0.5:  # nobody knows the name
        words = [word for word in words if stem(word) not in own or rng.random() < 0.4]
    words = [_other(word, rng) if rng.random() < 0.25 else word for word in words]
    kind = rng.random()
    if kind < 0.45:  # key words
        words = [word for word in words if word not in STOP]
        if rng.random() < 0.4:
            rng.shuffle(words)
        while len(words) > 8 or (len(words) > 4 and rng.random() < 0.35):
            del words[rng.randrange(len(words))]
    elif kind < 0.8 and words:
        form = rng.choice(_HOW if rng.random() < 0.7 else _WHAT)
        return form.format(" ".join([_base(words[0]), *words[1:14]]))
    return " ".join(words) if len(words) >= 2 else text


def _topic(words: list[str], rng: random.Random) -> str:
    """`Parses the cookies of a request` as one asks for a place in the code: `cookie parsing`, `how cookies of a
    request are parsed`; nothing where the sentence does not begin with a verb and what it is about."""
    verb = _base(words[0]) if words else ""
    rest = words[1:]
    while rest and rest[0] in _BEFORE:
        rest = rest[1:]
    size = next((at for at, word in enumerate(rest) if word in _ENDS), len(rest))
    thing = rest[:size]
    if not 1 <= len(thing) <= 5 or verb in STOP or len(verb) < 3 or not verb.isascii():
        return ""
    after = rest[size : size + 4] if rng.random() < 0.5 else []
    while after and (after[-1] in _ENDS or after[-1] in _BEFORE):
        after = after[:-1]
    some = " ".join([*thing, *after])
    kind = rng.random()
    if kind < 0.3:
        return f"{' '.join(thing)} {_noun(verb)} {' '.join(after)}".strip()
    if kind < 0.45:
        return f"{_noun(verb, short=False)} of {some}"
    if kind < 0.6:
        return f"{' '.join(thing)} handling"
    be = "are" if thing[-1].endswith("s") and not thing[-1].endswith("ss") else "is"
    return rng.choice(("how {0} {1} {2}", "how {1} {0} {2}", "where {1} {0} {2}", "where {0} {1} {2}")).format(
        be, some, _done(verb)
    )


def _noun(verb: str, short: bool = True) -> str:
    if verb in _NOUNS:
        return _NOUNS[verb]
    if verb.endswith(("ate", "ute")):
        return verb[:-1] + "ion"
    if verb.endswith(("ize", "ise")):
        return verb[:-1] + "ation"
    done = _done(verb)
    if done.endswith("ed") and done not in (verb, "made"):
        return done[:-2] + "ing" if not done.endswith("ied") else verb + "ing"
    return (verb[:-1] if verb.endswith("e") and short else verb) + "ing"


def _done(verb: str) -> str:
    if verb in _DONE:
        return _DONE[verb]
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if verb.endswith("y") and verb[-2:-1] not in "aeou" else verb + "ed"


def _other(word: str, rng: random.Random) -> str:
    return rng.choice(ALIKE.get(word) or ALIKE.get(_base(word)) or [word])


def _base(word: str) -> str:
    """`returns` is return, `parses` parse, `copies` copy."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
