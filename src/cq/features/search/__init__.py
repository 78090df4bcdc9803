"""Where is this name or text: every mention, classed by what it is, best first, the shown ones enriched."""

from cq.features.search.assemble import search
from cq.features.search.scan import PROFILES, Limits, SearchOptions

__all__ = ["PROFILES", "Limits", "SearchOptions", "search"]
