"""Text in, facts out: pure, total, one document at a time. Nothing here reads a file or knows a path."""

from cq.syntax.chunks import embedding_text, full_source
from cq.syntax.extract import extract_facts
from cq.syntax.registry import LANGUAGES, get_language

__all__ = ["LANGUAGES", "embedding_text", "extract_facts", "full_source", "get_language"]
