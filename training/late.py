"""Trains the table of the late interaction beside the table that train.py wrote: which of the best candidates has, word
by word, what the question asks for. Reads what tokens.py wrote; half an hour of one core, no GPU."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cq.embed.late import ASKED, BODY, LIMITS
from cq.embed.static import StaticEmbedder
from training.blend import load_embedder
from training.train import STYLES, VARIED, load, pad, say

SEED = 7
DIMS = 128
NARROW = 24  # tokens of a question while learning
KEPT = 32  # passages that are hard to tell from the right one
FIRST = np.array([4.1, 6.1, 4.4])  # what words, whole and head weigh in finding these, near to what is fitted
WORDS = np.array([2.0, 5.0, 1.0, 1.0])  # what a word counts in path, name, signature and body
BACK = (1, 2)  # name and signature are asked, the other way round, whether the question has their words
SHOWN, HIDDEN = 60, 0.1  # a right passage behind so many others is learned from so often: it would not be seen
LEFT_OUT = 0.05  # tokens of question and passage in a step
RATE = 2e-3


class Texts:
    """Token numbers one behind the other, cut into rows of as many fields as `sizes` has columns."""

    def __init__(self, tokens: np.ndarray, sizes: np.ndarray):
        self.tokens, self.sizes = tokens, sizes.astype(np.int64).reshape(len(sizes), -1)
        ends = np.cumsum(self.sizes.ravel())
        self.starts = (ends - self.sizes.ravel()).reshape(self.sizes.shape)

    def __len__(self) -> int:
        return len(self.sizes)

    def of(self, row: int, fields: int) -> np.ndarray:
        """The tokens of the first fields."""
        start = self.starts[row, 0]
        return self.tokens[start : start + self.sizes[row, :fields].sum()]

    def cut(self, field: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, tokens) of the first tokens of a field of all rows."""
        counts = np.minimum(self.sizes[:, field], limit)
        rows = np.repeat(np.arange(len(self)), counts)
        return rows, self.tokens[self.starts[rows, field] + _count_up(counts)]


def _count_up(counts: np.ndarray) -> np.ndarray:
    """0, 1, … as often as each count says."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def fill_slots(passages: Texts) -> tuple[np.ndarray, list[int]]:
    """What is read of every passage as rows of numbers from 1, 0 where there is nothing; and where fields begin."""
    ends = [0, *np.cumsum([*LIMITS[:3], BODY]).tolist()]
    slots = np.zeros((len(passages), ends[-1]), np.int16)
    for field, limit in enumerate(LIMITS):
        rows, tokens = passages.cut(field, limit)
        if field == 3:
            first = np.sort(np.unique(rows * 2**16 + tokens, return_index=True)[1])
            rows, tokens = rows[first], tokens[first]
        columns = _count_up(np.bincount(rows, minlength=len(passages)))
        kept = columns < ends[field + 1] - ends[field]
        slots[rows[kept], ends[field] + columns[kept]] = tokens[kept] + 1
    return slots, ends


def embed(texts: Texts, embedder: StaticEmbedder, fields: int, weights: np.ndarray) -> np.ndarray:
    found = np.zeros((len(texts), embedder.dimensions), np.float32)
    for at in range(0, len(texts), 64):
        rows = range(at, min(at + 64, len(texts)))
        found[at : at + 64] = embedder.sum(
            [(texts.of(row, fields), np.repeat(weights[:fields], texts.sizes[row, :fields])) for row in rows]
        )
    return found


def mine(passages: Texts, questions: Texts, about: np.ndarray, owners: np.ndarray, languages: np.ndarray,
         stems: np.ndarray, embedder: StaticEmbedder,
         weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Of every question the passages of its package that words and vectors put first, but the right one and those about
    which the same is asked; the score by words of the right one and of these; and how many come before the right one,
    -1 where there are too few to choose from."""
    wholes, heads = (embed(passages, embedder, fields, weights) for fields in (4, 3))
    vectors = embed(questions, embedder, 1, np.ones(1))
    say("embedded")
    hard = np.zeros((len(questions), KEPT), np.int32)
    words = np.zeros((len(questions), KEPT + 1), np.float32)
    ranks = np.full(len(questions), -1, np.int32)
    by_passage = np.argsort(about, kind="stable")
    starts = np.searchsorted(about[by_passage], np.arange(len(passages) + 1))
    places = np.zeros(len(passages), np.int64)
    for pool in _pools(owners, languages):
        asked = np.concatenate([by_passage[starts[number] : starts[number + 1]] for number in pool])
        if not len(asked) or len(pool) < KEPT + 2:
            continue
        likeness = vectors[asked]
        lexical = _unit(score_words(passages, pool, questions, asked, stems))
        every = np.stack([lexical, _unit(likeness @ wholes[pool].T), _unit(likeness @ heads[pool].T)], 2)
        scores, rows = every @ FIRST, np.arange(len(asked))
        places[pool] = np.arange(len(pool))
        right = places[about[asked]]
        ranks[asked] = (scores > scores[rows, right][:, None]).sum(1)
        same, other = np.nonzero(likeness @ likeness.T > 0.93)
        scores[same, right[other]] = -1
        scores[rows, right] = -1
        best = np.argpartition(-scores, KEPT, axis=1)[:, :KEPT]
        hard[asked] = pool[best]
        words[asked] = np.take_along_axis(lexical, np.column_stack([right, best]), 1)
    return hard, words, ranks


def _pools(owners: np.ndarray, languages: np.ndarray) -> list[np.ndarray]:
    """Packages, small ones of a language together."""
    pools: list[np.ndarray] = []
    small: dict[int, list[np.ndarray]] = {}
    for numbers in np.split(np.arange(len(owners)), np.flatnonzero(np.diff(owners)) + 1):
        if len(numbers) >= 100:
            pools += np.split(numbers, range(4000, len(numbers), 4000))
        else:
            small.setdefault(int(languages[numbers[0]]), []).append(numbers)
    for parts in small.values():
        numbers = np.concatenate(parts)
        pools += np.split(numbers, range(400, len(numbers), 400))
    return pools


def score_words(
    passages: Texts, pool: np.ndarray, questions: Texts, asked: np.ndarray, stems: np.ndarray
) -> np.ndarray:
    """BM25 of the fields of these passages, by the stems of tokens: near enough to what ranks beside the models."""
    sizes = passages.sizes[pool]
    owners = np.repeat(np.arange(len(pool)), sizes.sum(1))
    found = stems[np.concatenate([passages.of(number, 4) for number in pool])]
    counts = np.repeat(np.tile(WORDS, len(pool)), sizes.ravel())
    owners, found, counts = owners[found > 0], found[found > 0], counts[found > 0]
    keys, inverse = np.unique(found * len(pool) + owners, return_inverse=True)
    terms, holders = np.bincount(inverse, counts), keys % len(pool)
    lengths = np.bincount(owners, minlength=len(pool))
    values = terms / (terms + 1.2 * (0.25 + 0.75 * lengths / max(lengths.mean(), 1))[holders])
    scores = np.zeros((len(asked), len(pool)), np.float32)
    for row, question in enumerate(asked):
        for stem in set(stems[questions.of(question, 1)].tolist()) - {0}:
            low, high = np.searchsorted(keys, [stem * len(pool), (stem + 1) * len(pool)])
            rare = np.log(1 + (len(pool) - (high - low) + 0.5) / (high - low + 0.5))
            scores[row, holders[low:high]] += rare * values[low:high]
    return scores


def _unit(scores: np.ndarray) -> np.ndarray:
    low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
    return (scores - low) / (high - low + 1e-9)


class Late(nn.Module):
    """What cq.embed.late does, to be learned. Tokens are numbered from 1, 0 is nothing."""

    def __init__(self, static: np.ndarray, ends: list[int]):
        super().__init__()
        # Directions begin as those of the table that sums, turned so that the strongest are kept; weights, as lengths.
        lengths = np.linalg.norm(static, axis=1)
        rows = torch.from_numpy(static / lengths[:, None]).float()
        rows = rows @ torch.linalg.eigh(rows.T @ rows)[1][:, -DIMS:]
        self.table = nn.Embedding.from_pretrained(F.pad(F.normalize(rows, dim=1), (0, 0, 1, 0)), False, 0)
        weights = np.concatenate([[0], np.log(np.maximum(lengths / lengths.mean(), 0.05))])
        self.asked = nn.Parameter(torch.from_numpy(weights).float())
        self.told = nn.Parameter(torch.from_numpy(weights).float())
        self.forth = nn.Parameter(torch.tensor([0.3, 1.0, 0.6, 0.5]))
        self.back = nn.Parameter(torch.tensor([0.0, 0.5, 0.2, 0.0]))
        self.common = nn.Parameter(torch.tensor(0.0))
        self.scale = nn.Parameter(torch.tensor(10.0))
        self.words = nn.Parameter(torch.tensor(4.1))
        self.ends = ends

    def forward(self, asked: Tensor, passages: Tensor) -> Tensor:
        """Questions × words, questions × candidates × tokens: of each candidate a score. What differs is compared once,
        and only what is most alike is learned from."""
        words, at = asked.unique(return_inverse=True)
        others, to = passages.unique(return_inverse=True)
        mine, theirs = (F.normalize(self.table(found), dim=1) for found in (words, others))
        like = (mine @ theirs.T).relu().view(-1)
        pairs = at[:, None, :, None] * len(others) + to[:, :, None, :]  # list, candidate, word, slot
        known = like.detach()[pairs]
        forth, back = [], torch.zeros(())
        for field, (start, end) in enumerate(zip(self.ends, self.ends[1:], strict=False)):
            part, seen, tokens = pairs[..., start:end], known[..., start:end], passages[..., start:end]
            forth.append(like[part.gather(3, seen.argmax(3, keepdim=True)).squeeze(3)])
            if field in BACK:
                heavy = self.told[tokens].exp() * (tokens > 0)
                got = like[part.gather(2, seen.argmax(2, keepdim=True)).squeeze(2)]
                back = back + self.back[field] * (got * heavy).sum(2) / (heavy.sum(2) + 1e-6)
        met = torch.stack(forth, 3)  # list, candidate, word, field
        share = met.amax(3).mean(1)  # what all candidates have says little
        heavy = (self.asked[asked] - self.common * share).exp() * (asked > 0)
        heavy = heavy / (heavy.sum(1, keepdim=True) + 1e-6)
        return self.scale * ((met @ self.forth * heavy[:, None]).sum(2) + back)


def train(model: Late, arrays: dict[str, np.ndarray], slots: np.ndarray, hard: np.ndarray, words: np.ndarray,
          chances: np.ndarray, options: argparse.Namespace) -> Late:  # fmt: skip
    """Beside words, not beside vectors: those were trained on the very questions, and leave nothing to be learned."""
    rng = torch.Generator().manual_seed(SEED)
    tables = [model.asked, model.told]
    rest = [value for name, value in model.named_parameters() if name not in ("table.weight", "asked", "told")]
    optimizer = torch.optim.Adam([{"params": [model.table.weight]}, {"params": [*tables, *rest]}], betas=(0.9, 0.99))
    asked, other = (
        torch.from_numpy(pad(arrays[kind + ".tokens"], arrays[kind + ".sizes"], ASKED)[:, :NARROW])
        for kind in ("questions", "varied")
    )
    about, of = torch.from_numpy(arrays["about"]).long(), torch.full((len(asked),), -1)
    of[torch.from_numpy(arrays["varied.of"]).long()] = torch.arange(len(other))
    slots, hard, words, chances = (torch.from_numpy(x) for x in (slots, hard, words, chances))
    queries, width, total = options.queries, options.width, 0.0
    target = torch.zeros(queries, dtype=torch.int64)
    for step in range(options.steps):
        for group, share in zip(optimizer.param_groups, (1, 5), strict=True):
            group["lr"] = RATE * share * min((step + 1) / 100, max(1 - step / options.steps, 0.02))
        at = torch.randint(len(about), (6 * queries,), generator=rng)
        at = at[(torch.rand(len(at), generator=rng) < chances[at]).float().topk(queries).indices]
        picks = torch.rand((queries, KEPT), generator=rng).topk(width - 1, 1).indices
        numbers = torch.cat([about[at][:, None], hard[at].gather(1, picks).long()], 1)
        vary = (of[at] >= 0) & (torch.rand(queries, generator=rng) < VARIED)
        question = torch.where(vary[:, None], other[of[at].clamp(min=0)], asked[at]).long()
        # A word here and there is hidden: nobody asks in the very words.
        question = question * (torch.rand(question.shape, generator=rng) > LEFT_OUT)
        tokens = slots[numbers].long()
        tokens = tokens * (torch.rand(tokens.shape, generator=rng) > LEFT_OUT)
        scores = model(question, tokens) + model.words * words[at].gather(1, F.pad(picks + 1, (1, 0)))
        loss = F.cross_entropy(scores, target, label_smoothing=0.03)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if (step + 1) % 250 == 0:
            say(f"late {step + 1}/{options.steps} loss {total / 250:.4f} common {model.common.item():.2f}",
                "fields", model.forth.tolist(), model.back.tolist())  # fmt: skip
            total = 0.0
    return model.eval()


@torch.no_grad()
def save(model: Late, out: Path) -> None:
    """Directions as int8: how long a row is says nothing."""
    rows = model.table.weight[1:].numpy()
    np.save(out / "late_rows.npy", np.rint(rows / np.abs(rows).max(1, keepdims=True) * 127).astype(np.int8))
    scale = model.scale.item()
    np.savez(out / "late.npz", asked=model.asked[1:].numpy().astype(np.float16),
             told=model.told[1:].numpy().astype(np.float16), forth=model.forth.numpy() * np.float32(scale),
             back=model.back.numpy() * np.float32(scale), common=model.common.numpy())  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("out", type=Path, help="the folder with the other weights")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--queries", type=int, default=96)
    parser.add_argument("--width", type=int, default=14, help="candidates of a question in a step")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    arrays, facts = load(options.tokens)
    embedder, fields = load_embedder(options.out), json.loads((options.out / "trained.json").read_text())["fields"]
    rows, scales = np.load(options.out / "static_rows.npy"), np.load(options.out / "static_scales.npy")
    passages = Texts(arrays["passages.tokens"], arrays["passages.sizes"])
    questions = Texts(arrays["questions.tokens"], arrays["questions.sizes"])
    slots, ends = fill_slots(passages)
    hard, words, ranks = mine(passages, questions, arrays["about"].astype(np.int64), arrays["packages"],
                              arrays["languages"], arrays["stems"].astype(np.int64), embedder,
                              np.array([weight for _, weight in fields.values()]))  # fmt: skip
    say(f"mined; right ones first {(ranks == 0).mean():.3f}, among the {SHOWN} {(ranks < SHOWN).mean():.3f}")
    chances = np.array([STYLES[style] for style in facts["styles"]], np.float32)[arrays["styles"]]
    chances *= np.where(ranks < SHOWN, 1, HIDDEN) * (ranks >= 0)
    model = Late(rows * scales[:, None], ends)
    save(train(model, arrays, slots, hard, words, chances, options), options.out)
    trained: dict[str, Any] = {key: facts[key] for key in ("passages", "pairs_sha256", "questions")}
    trained |= {"seed": SEED, "steps": options.steps}
    (options.out / "late.json").write_text(json.dumps(trained))


if __name__ == "__main__":
    main()
