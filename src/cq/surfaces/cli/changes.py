"""What differs from a revision, as git tells it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from cq.model.errors import UsageError
from cq.model.history import Change


def read_changes(args: Namespace, root: Path) -> dict[str, Change]:
    """By path; UsageError where git cannot say."""
    from cq.source.checkout import GitError
    from cq.source.git import find_changes

    if args.changed is None:
        return {}
    try:
        return find_changes(root, args.changed)
    except GitError as error:
        raise UsageError(
            f"--changed {args.changed}: {error}", hint="it needs a git repository and a revision of it"
        ) from None
