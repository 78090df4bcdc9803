"""CSS: custom properties and keyframes as symbols, selectors as references."""

from __future__ import annotations

from cq.syntax.language import Language


class Css(Language):
    id = "css"
    label = "CSS"
    grammar_module = "tree_sitter_css"
    root_kinds = {
        "import_statement": "import", "rule_set": "expression", "declaration": "expression",
        "media_statement": "control", "supports_statement": "control", "at_rule": "control",
    }  # fmt: skip
    doc_prefixes = (b"/*",)
    stub = " { … }"
