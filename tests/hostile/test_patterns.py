"""No pattern of ours looks for the end of something from each of many places: what it costs grows with the text.

`test_growth.py` counts lines, slices and searches; how often an expression goes back is inside of the engine and is not
counted. Each text here took minutes to hours of a processor and takes a moment now; one that takes half a minute is
ended, and the test fails.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SECONDS = 30  # of the processor

READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
from cq.languages.facts import extract_facts
before, piece, count, after = {text!r}
facts = extract_facts((before + piece * count + after).encode(), {language!r})
print([symbol.name for symbol in facts.symbols], [each for row in facts.imports for each in row.bindings])
"""

TEXTS: dict[str, tuple[str, tuple[str, str, int, str], str]] = {
    "a string that a backslash ends": ("sql", ("", "'\\", 200_000, ""), "[] []"),
    "empty lines in a routine": ("sql", ("create procedure p() as begin ", "\n", 200_000, "x"), "['p'] []"),
    "blanks behind an end": ("sql", ("create procedure p() as begin end", " ", 200_000, "x"), "['p'] []"),
    "dumps that have no end": ("sql", ("", "copy t from stdin\n", 10_000, ""), "[] []"),
    "blanks in a comment": ("javascript", ("/** a", " ", 200_000, "b */\nfunction f() {}\n"), "['f'] []"),
    "blanks in another": ("java", ("/** a", " ", 200_000, "b */\nclass A {}\n"), "['A'] []"),
    "stars in a comment": ("java", ("/** a", " *", 200_000, " b */\nclass A {}\n"), "['A'] []"),
    "a long name in an import": ("typescript", ("import { a", "f", 200_000, " b } from './x'\n"), ""),
    "strings that look like comments": ("typescript", ("import { ", "'/*' as a, ", 40_000, "} from './x'\n"), ""),
    "a long word before a name": ("swift", ("class A { /*", "a", 200_000, "*/ private(set) var x = 1 }\n"), ""),
    "strings in a macro that is not closed": ("rust", ("macro a($x:expr) { ", '"\\', 200_000, ""), "['a'] []"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_pattern_goes_over_a_text_again_and_again(name: str):
    language, text, expected = TEXTS[name]
    code = READ.format(seconds=SECONDS, text=text, language=language)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-300:]
    assert not expected or done.stdout.strip() == expected


def test_names_of_imports_that_look_like_comments_are_read():
    from cq.languages.facts import extract_facts

    text = b"import { '/*' as a, b /* c, */, \"//\" as d } from './x'\n"
    (row,) = extract_facts(text, "typescript").imports
    assert [(binding.local, binding.imported) for binding in row.bindings] == [("a", "/*"), ("b", "b"), ("d", "//")]
