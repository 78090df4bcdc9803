"""A plan: several questions, asked one after the other, whose inputs may come from earlier ones."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

MAX_STEPS = 50


class Step(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="type"
):  # fmt: skip
    """One question. The type of a step adds what the question may be told, written as its command has it, with `_` for
    `-`. `id` is what later steps call it, by default s1, s2 and so on. `limit` is how many findings are shown."""

    id: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z_][\w-]{0,40}\Z")] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 10


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`stop_on_error` leaves out what stands behind a step that fails; else only what needs it is left out."""

    steps: tuple[Step, ...]
    title: Annotated[str, msgspec.Meta(max_length=200)] = ""
    stop_on_error: bool = False
    budget: Annotated[int, msgspec.Meta(ge=500, le=1_000_000)] = 8000  # tokens of the whole answer


def take_steps(steps: Any) -> type[Plan]:
    """A plan whose steps are of one of these types: what JSON and TOML are read as."""
    several = Annotated[tuple[steps, ...], msgspec.Meta(min_length=1, max_length=MAX_STEPS)]
    fields = [(field.name, field.type, field.default) for field in msgspec.structs.fields(Plan)[1:]]
    kind = msgspec.defstruct("Plan", [("steps", several), *fields], bases=(Plan,), frozen=True)
    assert issubclass(kind, Plan)
    return kind
