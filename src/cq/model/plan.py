"""A plan: several questions, asked one after the other, whose inputs may come from earlier ones.

The keys of a step are the options of the command of the same name, `in` and `-` written as they are there.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

MAX_STEPS = 50
MAX_TEXT = 10_000

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT)]
Words = Annotated[tuple[Text, ...], msgspec.Meta(max_length=100)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class Step(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="type",
    rename={"inside": "in"},
):  # fmt: skip
    """`id` is what later steps call it, by default s1, s2 and so on. `limit` is how many findings are shown."""

    positional: ClassVar[str] = "target"

    id: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z_][\w-]{0,40}\Z")] = ""
    limit: Count = 10


class Narrowed(Step, frozen=True, kw_only=True):
    """A question about some of the files."""

    inside: Words = ()
    include: Words = ()
    exclude: Words = ()
    lang: Words = ()


class SearchStep(Narrowed, frozen=True, kw_only=True, tag="search"):
    positional: ClassVar[str] = "text"
    text: Text
    mode: Text = "auto"
    kind: Words = ()
    include_strings: bool = False


class QueryStep(Step, frozen=True, kw_only=True, tag="q"):
    positional: ClassVar[str] = "query"
    query: Text
    include: Words = ()
    exclude: Words = ()
    lang: Words = ()


class CallsStep(Narrowed, frozen=True, kw_only=True, tag="calls"):
    target: Text
    family: bool = False
    certain: bool = False
    receiver: str = ""
    why: bool = False


class NeighborhoodStep(Step, frozen=True, kw_only=True, tag="neighborhood"):
    target: Text
    top_k: Count = 5
    lang: Words = ()
    no_lsp: bool = False
    slices: Words = ()
    depth: Count = 1
    expand: Words = ()


class ImpactStep(Step, frozen=True, kw_only=True, tag="impact"):
    target: Text
    depth: Count = 3
    edges: Words = ()
    min_confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0


class SignatureStep(Step, frozen=True, kw_only=True, tag="sig-impact"):
    target: Text
    to: Text


class ImportsStep(Step, frozen=True, kw_only=True, tag="imports"):
    positional: ClassVar[str] = ""
    module: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] = ""
    cycles: bool = False


class ExceptionsStep(Step, frozen=True, kw_only=True, tag="exceptions"):
    target: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] = ""
    depth: Count = 6


class EffectsStep(Step, frozen=True, kw_only=True, tag="side-effects"):
    positional: ClassVar[str] = "path"
    path: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] = ""
    pure: bool = False


class ScopesStep(Step, frozen=True, kw_only=True, tag="scopes"):
    target: Text


class BytecodeStep(Step, frozen=True, kw_only=True, tag="bytecode"):
    target: Text


class FindStep(Step, frozen=True, kw_only=True, tag="find"):
    positional: ClassVar[str] = "query"
    query: Text
    path: Words = ()
    lang: Words = ()
    kind: Words = ()
    mode: Text = "auto"


class ContextStep(Step, frozen=True, kw_only=True, tag="context"):
    target: Text
    budget: Count = 4000


AnyStep = (
    SearchStep
    | QueryStep
    | CallsStep
    | NeighborhoodStep
    | ImpactStep
    | SignatureStep
    | ImportsStep
    | ExceptionsStep
    | EffectsStep
    | ScopesStep
    | BytecodeStep
    | FindStep
    | ContextStep
)
STEPS: dict[str, type[Step]] = {
    step.__struct_config__.tag: step  # pyright: ignore[reportAttributeAccessIssue]
    for step in AnyStep.__args__
}


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`stop_on_error` leaves out what stands behind a step that fails; else only what needs it is left out."""

    steps: Annotated[tuple[AnyStep, ...], msgspec.Meta(min_length=1, max_length=MAX_STEPS)]
    title: Annotated[str, msgspec.Meta(max_length=200)] = ""
    stop_on_error: bool = False
    budget: Annotated[int, msgspec.Meta(ge=500, le=1_000_000)] = 8000  # tokens of the whole answer
