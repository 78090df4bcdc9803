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

# With which a sentence about what code does begins.
_VERBS = frozenset(
    re.findall(
        r"\w+",
        """accept acquire activate add adjust advance align allocate allow annotate append apply approximate ask assert
        assign attach authenticate await begin bind block build bulk calculate call cancel cast catch change check
        choose claim clean clear clone close coerce collect combine commit compare compile complete compress compute
        concatenate configure connect construct consume contain continue convert copy count create cut deactivate
        decide decode decompress decorate decrease decrypt default define delete deliver deprecate derive describe
        deserialize destroy detach detect determine disable discard disconnect dispatch display divide do download
        draw drop dump emit empty enable encode encrypt end enforce enqueue ensure enter escape establish evaluate
        examine exclude execute exit expand export expose extend extract fail fetch figure fill filter find finish
        fire fix flatten flush fold follow force format forward free generate get give group guess handle hash hide
        hold identify ignore implement import include increment indicate infer inform inherit initialize inject insert
        inspect install instantiate interpret invalidate invert invoke issue iterate join jump keep kill know let lex
        limit link list listen load locate lock log look lookup lower make manage map mark match mean measure merge
        mirror modify monitor mount move multiply navigate negate normalize notify obtain offer open optimize order
        output override pack pad parse partition pass patch perform persist pick place play point poll pop populate
        post prepare prepend preserve prevent print process produce project promote prompt protect provide prune
        publish pull push put query queue quote raise read rebuild receive record recover redirect reduce refresh
        register reject release reload remove rename render reopen reorder repeat replace report represent request
        require reset resize resolve restart restore resume retrieve retry return reverse revert rewrite roll rotate
        round route run sanitize save scale scan schedule search seek select send separate serialize serve set shift
        show shrink shuffle shut sign simplify skip sleep slice sort spawn specify split start stop store strip
        subscribe substitute subtract suppress swap switch synchronize take tell terminate test throttle throw toggle
        track transfer transform translate traverse trigger trim truncate try turn unescape unlock unpack unregister
        unwrap update upgrade upload use validate verify visit wait walk warn watch wrap write yield""",
    )
)
_FORMS = (("", ""), ("s", ""), ("es", ""), ("ies", "y"))
_ASKING = re.compile(r"(?:how|what|where|which|why|when|who|whose|does|do|is|are|can|should)\b", re.I)
_LONG = 10  # words that count: nobody asks for a file so
# Those of the verbs that are names of things as well (`request parsing`) are verbs before such a word.
_NOUNS = frozenset(
    re.findall(
        r"\w+",
        """access block build cache call cast change check claim clone commit copy count cut decorate default display
        download draw drop dump end exit export filter fix fold format group guess handle hash hold import insert invoke
        issue join jump kill lex limit link list load lock log look map mark match measure merge mirror mount move
        offer open order output override pack pad pass patch pick place play point poll pop post print process
        produce project prompt prune push put query queue quote raise read record redirect release reload render
        repeat report request reset reverse roll round route run save scale scan schedule search select serve
        set shift show sign sleep slice sort spawn split start stop store strip swap switch take test throw toggle
        track transfer transform trigger trim try turn update upgrade upload use visit wait walk watch wrap write
        yield""",
    )
)
_DETERMINERS = frozenset(
    re.findall(r"\w+", "a an the this that these its their all any each every one whether if it self")
)
_FIRST = re.compile(r"\s*([A-Za-z]+)\W+([A-Za-z]+)")


def split_question(text: str) -> list[str]:
    """Its words, each once, identifiers split; common ones if there are no others."""
    words = list(dict.fromkeys(split_words(text)))[:64]
    return [word for word in words if word not in STOP] or words


def is_common(text: str) -> bool:
    """Whether none of several words says what is asked for; one alone may be a name."""
    words = split_words(text)
    return len(words) > 1 and all(word in STOP for word in words)


def is_description(text: str) -> bool:
    """Whether a text says what one function does (`Return the rows of a page`), and asks for no file."""
    words = len(split_question(text))
    if _ASKING.match(text.strip()) or text.rstrip().endswith("?") or words < 2:
        return False
    first = _FIRST.match(text)
    if first is None or words >= _LONG:
        return words >= _LONG
    verb, after = first[1].lower(), first[2].lower()
    found = {verb.removesuffix(end) + more for end, more in _FORMS if verb.endswith(end)} & _VERBS
    return bool(found) and (not found & _NOUNS or after in _DETERMINERS)


def stem(word: str) -> str:
    """Light: `validators`, `validating` and `validate` meet, `mapping` and `map`. For the words of paths."""
    for end in _ENDS:
        if word.endswith(end) and len(word) - len(end) >= 3:
            word = word[: -len(end)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
