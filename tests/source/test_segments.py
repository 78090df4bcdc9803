"""Documents inside documents."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.model.source import Segment
from cq.source.segments import find_segments

pytestmark = pytest.mark.slow


def found(text: str, language: str) -> list[tuple[str, str, str]]:
    """(kind, language, text) of each segment."""
    raw = text.encode()
    return [(each.kind, each.language, each.text(raw).decode()) for each in find_segments(raw, language)]


def fences(text: str, language: str = "markdown") -> list[tuple[str, str]]:
    return [(language, body) for kind, language, body in found(text, language) if kind == "fence"]


def test_languages_without_segments_have_none():
    assert find_segments(b"<script>x</script>", "python") == ()
    assert find_segments(b"", "vue") == ()


def test_vue():
    text = """<script setup lang="ts">
const a = 1
</script>
<script>export default {}</script>
<template>
  <div title="<script>no</script>">{{ a }}</div>
</template>
<style scoped lang="scss">.a { .b { } }</style>
<style>.c {}</style>
"""
    assert found(text, "vue") == [
        ("script", "typescript", "\nconst a = 1\n"),
        ("script", "javascript", "export default {}"),
        ("style", "scss", ".a { .b { } }"),
        ("style", "css", ".c {}"),
    ]


def test_vue_template_with_a_language():
    text = '<template lang="html"><template #x><b/></template><script>a()</script></template><script>b()</script>'
    (template, script) = find_segments(text.encode(), "vue")
    assert (template.kind, template.language) == ("template", "html")
    assert [each.text(text.encode()) for each in template.segments] == [b"a()"]
    assert script.text(text.encode()) == b"b()"
    assert found('<template lang="pug">\n<script> p\n</template>\n<script>c()</script>', "vue") == [
        ("script", "javascript", "c()")
    ]


def test_svelte():
    text = """<script context="module" lang='ts'>export const a = 1</script>
<script lang=ts>let b: number</script>
{#if a < b}<Script>no</Script><p class={x ? "a" : 'b'} on:click={() => go("<style>")}>it's</p>{/if}
<style>p { }</style>"""
    assert found(text, "svelte") == [
        ("script", "typescript", "export const a = 1"),
        ("script", "typescript", "let b: number"),
        ("style", "css", "p { }"),
    ]


def test_astro():
    text = "---\nconst a: number = 1\n---\n<script>b()</script><script is:inline>c()</script><script src='x'/><p/>"
    assert found(text, "astro") == [
        ("frontmatter", "typescript", "const a: number = 1\n"),
        ("script", "typescript", "b()"),
        ("script", "javascript", "c()"),
    ]
    assert found("<p>---</p>\n<script>b()</script>", "astro") == [("script", "typescript", "b()")]


@pytest.mark.parametrize(
    ("attributes", "language"),
    [
        ("", "javascript"), (' type="module"', "javascript"), (" TYPE=Module", "javascript"),
        (' type="text/javascript; charset=utf-8"', "javascript"), (" type='text/typescript'", "typescript"),
        (' type="application/json"', "json"), (" type=application/ld+json", "json"), (' type="importmap"', "json"),
        (' type="text/babel"', "jsx"), (' lang="tsx"', "tsx"), (" lang=jsx", "jsx"), (' lang="TS"', "typescript"),
        (' type="text/x-template"', None), (' type="text/html"', None), (' type="x-shader/x-vertex"', None),
        (' lang="coffee"', None), (' language="VBScript"', None), (' data-a="1>2" async defer', "javascript"),
        ('\n  src=""\n  type = "module"\n', "javascript"), (' type="py"', "python"),
    ],
)  # fmt: skip
def test_script_attributes(attributes: str, language: str | None):
    expected = [("script", language, " x ")] if language else []
    assert found(f"<p><script{attributes}> x </script>", "html") == expected
    assert found(f"<p><SCRIPT{attributes}> x </Script >", "html") == expected


def test_html_rules():
    assert found("<!-- <script>no</script> --><script>a</script>", "html") == [("script", "javascript", "a")]
    assert found("<!--><script>a</script>", "html") == [("script", "javascript", "a")]
    assert found("<!-- <script>no</script>", "html") == []
    assert found('<script>s = "</script>"; b()</script>', "html") == [("script", "javascript", 's = "')]
    assert found("<script>a </scripty> b", "html") == [("script", "javascript", "a </scripty> b")]
    assert found("<textarea><script>no</script></textarea><style>a{}</style>", "html") == [("style", "css", "a{}")]
    assert found("<title><script></title><script>a</script>", "html") == [("script", "javascript", "a")]
    assert found("<script src=x /> a </script>", "html") == [("script", "javascript", " a ")]
    assert found("<script>\n \n</script><script src='a.js'></script>", "html") == []
    assert found("<scripts>a</scripts><script", "html") == []
    assert found('<p title="open><script>a</script>', "html") == [("script", "javascript", "a")]


def test_fences():
    assert fences("a\n```py\nx = 1\n```\nb\n\n~~~ts\ny\n~~~\n") == [("python", "x = 1\n"), ("typescript", "y\n")]
    assert fences("````js\n```py\nx\n```\n````\n") == [("javascript", "```py\nx\n```\n")]
    assert fences("~~~js\n```\nx\n~~~~~\n```js\ny\n```\n") == [("javascript", "```\nx\n"), ("javascript", "y\n")]
    assert fences("```js\nx\n``` not closed\n~~~\n") == [("javascript", "x\n``` not closed\n~~~\n")]
    assert fences("```js\nx") == [("javascript", "x")]
    assert fences("```js\r\nx\r\n```\r\n") == [("javascript", "x\r\n")]
    assert fences("``` js `no` \nx\n```\n") == []
    assert fences("```\nplain\n```\n```js\nx\n```\n") == [("javascript", "x\n")]
    assert fences("```js\n```\n```js\n\n```\n") == []
    assert fences("text\n    ```js\n    x\n    ```\n") == []
    assert fences("   ```js\n     a\n  b\nc\n   ```\n") == [("javascript", "  a\nb\nc\n")]
    assert fences("`js` ```js\nx\n") == []


@pytest.mark.parametrize(
    ("info", "language"),
    [
        ("py", "python"), ("python3", "python"), ('py title="x.py"', "python"), ("{.python .numberLines}", "python"),
        ("{python}", "python"), ("{python, echo=FALSE}", "python"), ("{#id .rust}", "rust"), ("ts{1,3}", "typescript"),
        ("js {1,3-4}", "javascript"), ("rust,ignore", "rust"), ("{code-block} python", "python"), ("tsx", "tsx"),
        ("jsx", "jsx"), ("mjs", "javascript"), ("cjs", "javascript"), ("rs", "rust"), ("bash", "shell"),
        ("zsh", "shell"), ("yml", "yaml"), ("C++", "cpp"), ("c#", "csharp"), ("js:line-numbers", "javascript"),
        ("language-go", "go"), (".rb", "ruby"), ("jsonc", "json"), ("Python", "python"),
        ("pycon", None), ("console", None), ("text", None), ("diff", None), ("mermaid", None), ("", None), ("{", None),
        ("{.unknown}", None), ("pythonista", None),
    ],
)  # fmt: skip
def test_info_strings(info: str, language: str | None):
    for bar in ("```", "~~~"):
        assert fences(f"{bar}{info}\nx\n{bar}\n") == ([(language, "x\n")] if language else [])
        assert fences(f"{bar} {info} \nx\n{bar}\n", "mdx") == ([(language, "x\n")] if language else [])


def test_fence_in_a_list_loses_the_indent():
    text = "1. one\n\n   ```py\n   if x:\n       y\n\n   z\n   ```\n2. two\n"
    (segment,) = find_segments(text.encode(), "markdown")
    assert segment.text(text.encode()) == b"if x:\n    y\n\nz\n"
    assert len(segment.ranges) == 3  # the blank line has no indent to lose, so it joins the line before
    assert text.encode()[segment.start : segment.end].startswith(b"if x:")


def test_fence_in_quotes_and_nested_containers():
    assert fences("> ```py\n> a\n>\n>  b\n> ```\n> c\n") == [("python", "a\n\n b\n")]
    assert fences("> - ```py\n>   a\n>   ```\n") == [("python", "a\n")]
    assert fences("- > ```py\n  > a\n  > ```\n") == [("python", "a\n")]
    assert fences("-\t```py\n\ta\n\t```\n") == [("python", "a\n")]


def test_unclosed_fence_ends_with_its_container():
    assert fences("> ```py\n> a\nb\n") == [("python", "a\n")]
    assert fences("- ```py\n  a\n\nb\n```js\nc\n```\n") == [("python", "a\n\n"), ("javascript", "c\n")]


def test_lists_and_paragraphs_as_commonmark_has_them():
    assert fences("10) foo\nlazy\n    ```py\n    a\n    ```\n") == [("python", "a\n")]  # the lazy line keeps the item
    assert fences("text\n2. ```py\na\n```\n") == []  # only a list that begins with 1 interrupts; ``` then opens a fence
    assert fences("-\n\n  ```py\n  a\n  ```\n") == [("python", "a\n")]
    assert fences("- - -\n```py\na\n```\n") == [("python", "a\n")]


def test_html_hides_fences_in_markdown_but_not_in_mdx():
    assert fences("<!--\n```py\na\n```\n-->\n```js\nb\n```\n") == [("javascript", "b\n")]
    assert fences("<pre>\n```py\na\n```\n</pre>\n") == []
    assert fences("<details>\n```py\na\n```\n</details>\n") == []
    assert fences("<details>\n\n```py\na\n```\n\n</details>\n") == [("python", "a\n")]
    assert fences("<Tabs>\n```py\na\n```\n</Tabs>\n", "mdx") == [("python", "a\n")]


def test_frontmatter():
    assert found("---\na: 1\n---\n# T\n", "markdown") == [("frontmatter", "yaml", "a: 1\n")]
    assert found("---\r\na: 1\r\n...\r\n```py\r\nx\r\n```\r\n", "mdx") == [
        ("frontmatter", "yaml", "a: 1\r\n"),
        ("fence", "python", "x\r\n"),
    ]
    assert found("+++\na = 1\n+++\n", "markdown") == [("frontmatter", "toml", "a = 1\n")]
    assert found("---\n```py\nx\n```\n", "markdown") == [("fence", "python", "x\n")]
    assert found("\n---\na: 1\n---\n", "markdown") == []


def test_nested_documents_carry_the_offsets_of_the_file():
    text = b"> ```html\n> <p>\n> <script>\n> a()\n> b()\n> </script>\n> ```\n"
    (outer,) = find_segments(text, "markdown")
    (inner,) = outer.segments
    assert (outer.language, inner.language) == ("html", "javascript")
    assert inner.text(text) == b"\na()\nb()\n"
    assert [text[start:end] for start, end in inner.ranges] == [b"\n", b"a()\n", b"b()\n"]
    deep = b"`````md\n````md\n```html\n<script>x</script>\n```\n````\n`````\n"
    first = find_segments(deep, "markdown")[0]
    second = first.segments[0]
    third = second.segments[0]
    assert (third.language, third.text(deep), third.segments) == ("html", b"<script>x</script>\n", ())


def check_shape(segments: tuple[Segment, ...], low: int, high: int) -> None:
    at = low
    for segment in segments:
        assert segment.ranges
        for start, end in segment.ranges:
            assert at <= start < end <= high
            at = end
        check_shape(segment.segments, segment.start, segment.end)


MARKUP = [
    "<script",
    ">",
    "</script>",
    "<style>",
    "</style>",
    "<!--",
    "-->",
    ' a="',
    "'",
    " lang=ts",
    "<template lang=html>",
    "---\n",
    "x",
]
MARKDOWN = [
    "```",
    "````",
    "~~~",
    "py\n",
    "html\n",
    "md\n",
    "\n",
    "> ",
    "- ",
    "1. ",
    "    ",
    "\t",
    "<div>",
    "<script>",
    "x",
    "---\n",
    "\r\n",
]


@given(
    st.lists(st.sampled_from(MARKUP + MARKDOWN) | st.text(max_size=3), max_size=40).map("".join),
    st.sampled_from(["html", "vue", "svelte", "astro", "markdown", "mdx"]),
)
def test_segments_are_total_ordered_and_inside(text: str, language: str):
    raw = text.encode("utf-8", "replace")
    check_shape(find_segments(raw, language), 0, len(raw))


@pytest.mark.parametrize(
    ("unit", "language"),
    [
        (b"<script", "html"), (b"<script>", "html"), (b'<script a="', "html"), (b"<a =\"x' ", "vue"),
        (b"<!--", "svelte"),
        (b"</script ", "html"), (b"<template lang=html>", "vue"), (b"<", "astro"), (b"<a ", "html"),
        (b"<a b={", "svelte"), (b'{ "\\"', "svelte"),
        (b"`", "markdown"), (b"```\n", "markdown"), (b"```py\n", "mdx"), (b"> ", "markdown"), (b"- ", "markdown"),
        (b" ", "markdown"), (b"\t", "markdown"), (b"~~~\n```py\n", "markdown"), (b"<a b='c' ", "markdown"),
        (b"- - - \n\n", "markdown"), (b"``` `", "markdown"), (b"```html\n<script>\n", "markdown"),
    ],
)  # fmt: skip
def test_hostile_text_takes_linear_time(unit: bytes, language: str):
    text = unit * (2 * 1024 * 1024 // len(unit))
    start = time.perf_counter()
    check_shape(find_segments(text, language), 0, len(text))
    assert time.perf_counter() - start < 20


def test_deep_containers_with_many_blank_lines_take_linear_time():
    start = time.perf_counter()
    find_segments(b"- " * 200 + b"```py\n" + b"\n" * 500_000 + b" " * 500_000, "markdown")
    assert time.perf_counter() - start < 20
