"""Where is this name or text: every mention, classed by what it is, best first, the shown ones enriched."""

from cq.questions.search.assemble import search
from cq.questions.search.scan import PROFILES, Limits, SearchOptions

__all__ = ["PROFILES", "Limits", "SearchOptions", "search"]
