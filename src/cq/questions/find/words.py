"""Words of questions: those that say nothing, forms of one word, and what is written short in names."""

from __future__ import annotations

import re

from cq.embed.words import split_words

STOP = frozenset(
    re.findall(
        r"\w+",
        """a an the and or of to in on for with without from by as at is are be been was were it its this that these
        those how what where when which who why does do did done can could should would will may might must has have
        had i we you they he she them their our your my me us not no if then than so such there here into out up down
        over under about all any each every some other more most only own same very just also code function functions
        method class return returns using use used uses get gets work works working implement implements implemented
        implementation implementing handle handles handled handling support supports via during across between before
        after within while per like based""",
    )
)
_SHORT = """
auth authentication authenticate authorization authorize; config configuration conf cfg settings; db database; ctx
context; util utils utility utilities helper helpers; req request; resp res response; err error; msg message; param
params parameter parameters; arg args argument arguments; fs filesystem; ser serialize serialization serializer; de
deserialize deserialization deserializer; ws websocket; str string; fmt format formatting; impl impls implementation;
env environment; dir directory; exec execution execute; async asynchronous asynchronously; sync synchronous
synchronization; init initialization initialize; doc docs documentation; spec specification; prop props property
properties; attr attrs attribute attributes; lib library; repo repository; num number; int integer; bool boolean; val
value; var variable; func function; expr expression; stmt statement; decl declaration; def definition; ref reference;
tmp temp temporary; src source; dest destination; addr address; conn connection; proto protocol; cmd command; opt opts
option options; char character; len length; max maximum; min minimum; gen generate generator generation; info
information; obj object; img image; nav navigation; admin administration
"""
ABBREVIATIONS = {word: frozenset(row.split()) - {word} for row in _SHORT.split(";") for word in row.split()}


_ENDS = (
    "ations", "ation", "ions", "ion", "ings", "ing", "ies", "ers", "ors", "ed", "es", "er", "or", "s", "e", "y",
)  # fmt: skip


def split_question(text: str) -> list[str]:
    """Its words, each once, identifiers split; common ones if there are no others."""
    words = list(dict.fromkeys(split_words(text)))[:64]
    return [word for word in words if word not in STOP] or words


def is_common(text: str) -> bool:
    """Whether none of several words says what is asked for; one alone may be a name."""
    words = split_words(text)
    return len(words) > 1 and all(word in STOP for word in words)


def stem(word: str) -> str:
    """Light: `validators`, `validating` and `validate` meet, `mapping` and `map`. For the words of paths."""
    for end in _ENDS:
        if word.endswith(end) and len(word) - len(end) >= 3:
            word = word[: -len(end)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
