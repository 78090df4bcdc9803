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


def vary(text: str, name: str) -> str:
    """Another form of a question about what is called `name`; always the same one for the same question."""
    rng = random.Random(hashlib.sha1(f"{text}\0{name}".encode()).digest())
    words = split_words(text)
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


def _other(word: str, rng: random.Random) -> str:
    return rng.choice(ALIKE.get(word) or ALIKE.get(_base(word)) or [word])


def _base(word: str) -> str:
    """`returns` is return, `parses` parse, `copies` copy."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
