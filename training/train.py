"""Trains the token table, a large reranker that teaches, and the small one, from what tokens.py wrote, and writes the
weights of the table and the small one. Needs numpy and torch alone; a GPU takes minutes, a CPU hours (the counts of
steps make it small). What is done is kept, so that the same command goes on where one that was stopped ended."""

from __future__ import annotations

import argparse
import io
import json
import lzma
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

SEED = 20261116
DIMS = 256
# What the reranker reads: the question behind the place of its answer, then each token of a passage once.
ASKED, HEAD_LIMITS, READ = 32, (10, 16, 40, 224), 96
# Most steps read less, since most questions and passages are short, and are the quicker; the last eighth reads all.
NARROW, WIDE_FROM = (24, 64), 7 / 8
CANDIDATES, POOL = 40, 200
# How often a question of a style is taken, in parts of every time.
STYLES = {"doc": 1.0, "more": 0.4, "page": 0.8, "change": 0.5, "test": 0.5, "comment": 0.4, "error": 0.5, "module": 0.8}
VARIED = 0.35  # of the questions that can be put otherwise are
BESIDE = 2  # to so many questions of a batch one more passage of their package
KEPT = 24  # passages that are hard to tell from the right one
TOLD = 6  # of these, the table learns from so many at once what the teacher makes of them
# A right passage that words and vectors put behind so many others would not be shown to the reranker either.
SHOWN, HIDDEN = 60, 0.25
STARTED = time.time()
CLOCK = {"stop": float("inf")}  # when to end, though not all is done


def say(*words: object) -> None:
    print(f"{time.time() - STARTED:6.1f}s", *words, flush=True)


def leave_time(seconds: float) -> None:
    """Ends here where less is left: what is made next could not be kept."""
    if time.time() + seconds > CLOCK["stop"]:
        say("stopped; the same command goes on")
        raise SystemExit(0)


# -- data ------------------------------------------------------------------------------------------------------------


def pad(tokens: np.ndarray, sizes: np.ndarray, width: int, first: int = 0) -> np.ndarray:
    """Rows of token numbers, from 1 since 0 is nothing, cut at `width`, behind `first` places of nothing."""
    ends = np.cumsum(sizes.astype(np.int64))
    starts = ends - sizes
    kept = np.minimum(sizes, width - first).astype(np.int64)
    rows = np.repeat(np.arange(len(sizes)), kept)
    columns = np.arange(kept.sum()) - np.repeat(np.cumsum(kept) - kept, kept)
    found = np.zeros((len(sizes), width), np.int16)
    found[rows, columns + first] = tokens[starts[rows] + columns].astype(np.int16) + 1
    return found


class Passages:
    """Passages as padded token numbers: all fields side by side, and what the reranker reads of them."""

    def __init__(self, arrays: dict[str, np.ndarray], prefix: str, limits: list[int], device: str):
        tokens, sizes = arrays[prefix + "tokens"], arrays[prefix + "sizes"].astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes.ravel())])[:-1].reshape(sizes.shape)
        whole = np.zeros((len(sizes), sum(limits)), np.int16)
        at = 0
        for field, limit in enumerate(limits):
            lengths = np.minimum(sizes[:, field], limit)
            rows = np.repeat(np.arange(len(sizes)), lengths)
            columns = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            whole[rows, at + columns] = tokens[starts[rows, field] + columns].astype(np.int16) + 1
            at += limit
        self.whole = torch.from_numpy(whole).to(device)
        self.fields = torch.cat([torch.full((limit,), n) for n, limit in enumerate(limits)]).to(device)
        self.rarity = rarities(self.whole)
        offsets = np.cumsum([0, *limits])
        seen = np.concatenate([offsets[n] + np.arange(min(limits[n], most)) for n, most in enumerate(HEAD_LIMITS)])
        self.read, self.places = self._read(torch.from_numpy(seen).to(device))

    def _read(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        reads, places = [], []
        place = (self.fields[columns] + 1).to(torch.int8)
        before = torch.ones((len(columns), len(columns)), dtype=torch.bool, device=columns.device).tril(-1)
        for part in self.whole[:, columns].split(512):
            again = ((part[:, :, None] == part[:, None, :]) & before).any(2)
            order = ((part == 0) | again).to(torch.int8).argsort(dim=1, stable=True)[:, :READ]
            kept = ~((part == 0) | again).gather(1, order)
            reads.append(part.gather(1, order) * kept)
            places.append(place[order] * kept)
        return torch.cat(reads), torch.cat(places)

    def __len__(self) -> int:
        return len(self.whole)


class Data:
    """What is trained on: passages, and questions with the number of the passage each is about."""

    def __init__(self, arrays: dict[str, np.ndarray], facts: dict[str, Any], device: str):
        def put(values: np.ndarray) -> Tensor:
            return torch.from_numpy(values).to(device)

        self.device = device
        self.packages: np.ndarray = arrays["packages"]
        self.languages: np.ndarray = arrays["languages"]
        self.passages = Passages(arrays, "passages.", list(facts["limits"].values()), device)
        plain = pad(arrays["questions.tokens"], arrays["questions.sizes"], ASKED, 1)
        self.asked = put(np.stack([plain, plain]))
        varied = put(pad(arrays["varied.tokens"], arrays["varied.sizes"], ASKED, 1))
        self.can_vary = torch.zeros(len(plain), dtype=torch.bool, device=device)
        # What is put otherwise in fewer than two words says too little.
        said = (varied > 0).sum(1) >= 2
        of = put(arrays["varied.of"]).long()[said]
        self.asked[1, of] = varied[said]
        self.can_vary[of] = True
        self.about, self.text_ids = put(arrays["about"]).long(), put(arrays["texts"]).long()
        self.chances = put(np.array([STYLES[style] for style in facts["styles"]], np.float32)[arrays["styles"]])
        # Passages of a package lie together: where it begins and how many there are, of each passage.
        _, first, inverse, sizes = np.unique(self.packages, return_index=True, return_inverse=True, return_counts=True)
        self.spans = put(np.stack([first[inverse], sizes[inverse]], 1))

    def put(self, at: Tensor, rng: torch.Generator) -> Tensor:
        """The tokens of these questions, some of them put otherwise."""
        other = (torch.rand(len(at), generator=rng, device=self.device) < VARIED) & self.can_vary[at]
        return torch.where(other[:, None], self.asked[1, at], self.asked[0, at]).int()

    def __len__(self) -> int:
        return len(self.about)


def rarities(tokens: Tensor) -> Tensor:
    """Of each token, its count in its text to the power -1/2; 0 for padding."""
    found = torch.zeros(tokens.shape, dtype=torch.float16, device=tokens.device)
    for at in range(0, len(tokens), 512):
        part = tokens[at : at + 512]
        counts = (part[:, :, None] == part[:, None, :]).sum(2)
        found[at : at + 512] = torch.where(part > 0, counts.float().rsqrt(), 0).half()
    return found


def batches(data: Data, size: int, group: int, seed: int) -> Iterator[Tensor]:
    """Groups of one package, so that a batch holds neighbours; what is left of a package joins the other leftovers."""
    rng = np.random.default_rng(seed)
    taken = np.flatnonzero(rng.random(len(data)) < data.chances.cpu().numpy())
    owners = data.packages[data.about.cpu().numpy()[taken]]
    order = np.lexsort((rng.random(len(taken)), owners))
    taken, owners = taken[order], owners[order]
    groups, loose = [], []
    for part in np.split(taken, np.flatnonzero(np.diff(owners)) + 1):
        full = len(part) // group * group
        groups += [part[at : at + group] for at in range(0, full, group)]
        loose.append(part[full:])
    rest = rng.permutation(np.concatenate(loose))
    groups += [rest[at : at + group] for at in range(0, len(rest) // group * group, group)]
    shuffled = rng.permutation(len(groups))
    per = size // group
    for at in range(0, len(shuffled) // per * per, per):
        yield torch.from_numpy(np.concatenate([groups[n] for n in shuffled[at : at + per]])).to(data.device)


# -- the token table -------------------------------------------------------------------------------------------------


class Static(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.table = nn.Embedding(size + 1, DIMS, padding_idx=0)
        nn.init.normal_(self.table.weight, std=DIMS**-0.5)
        self.weights = nn.Parameter(torch.tensor([1.0, 1.6, 1.5, 0.5]).log())
        self.scale = nn.Parameter(torch.tensor(20.0).log())

    def sum(self, tokens: Tensor, weights: Tensor) -> Tensor:
        there = tokens > 0
        sizes = there.sum(1)
        found = F.embedding_bag(tokens[there], self.table.weight, sizes.cumsum(0) - sizes, mode="sum",
                                per_sample_weights=weights[there].to(self.table.weight.dtype))  # fmt: skip
        return F.normalize(found, dim=-1)

    def query(self, asked: Tensor) -> Tensor:
        return self.sum(asked, rarities(asked))

    def head(self, passages: Passages, at: Tensor) -> Tensor:
        size = int((passages.fields < 3).sum())
        weights = passages.rarity[at, :size] * self.weights.exp()[passages.fields[:size]]
        return self.sum(passages.whole[at, :size].int(), weights)

    def whole(self, passages: Passages, at: Tensor) -> Tensor:
        return self.sum(passages.whole[at].int(), passages.rarity[at] * self.weights.exp()[passages.fields])


def train_static(model: Static, data: Data, epochs: int, batch: int, rate: float,
                 taught: tuple[Tensor, Tensor] | None = None) -> Static:  # fmt: skip
    """`taught`: of each question the passages that are hard to tell apart, and what the teacher makes of the right one
    and of them. They are learned from by that alone: some are as good as the right one."""
    rng = torch.Generator(device=data.device).manual_seed(SEED + 3)
    model = model.to(data.device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.99), fused=data.device == "cuda")
    order = [at for epoch in range(epochs) for at in batches(data, batch, 32, SEED + epoch)]
    target = torch.arange(batch, device=data.device)
    for step, at in enumerate(order):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / 50, 0.03 + 0.97 * (1 - step / len(order)))
        about, texts = data.about[at], data.text_ids[at]
        same = (about[:, None] == about[None]) | (texts[:, None] == texts[None])
        same.fill_diagonal_(False)
        # And other passages of these packages, asked about or not: real repositories are full of them.
        start, size = data.spans[about[::BESIDE]].T
        beside = start + (torch.rand(len(start), generator=rng, device=data.device) * size).long()
        same = torch.cat([same, about[:, None] == beside[None]], 1)
        query, numbers = model.query(data.put(at, rng)), torch.cat([about, beside])
        whole, head = model.whole(data.passages, numbers), model.head(data.passages, numbers)
        loss = torch.zeros((), device=data.device)
        for found, share in ((whole, 1.0), (head, 0.5)):
            logits = (query @ found.T * model.scale.exp()).masked_fill(same, -1e4)
            back = F.cross_entropy(logits[:, :batch].T, target)
            loss = loss + share * (F.cross_entropy(logits, target) + back) / 2
        if taught is not None:
            hard, told = taught
            picks = torch.rand((batch, hard.shape[1]), generator=rng, device=data.device).topk(TOLD, 1).indices
            others = model.whole(data.passages, hard[at].gather(1, picks).long().view(-1)).view(batch, TOLD, -1)
            found = torch.cat([whole[:batch, None], others], 1)
            scores = (found @ query[:, :, None]).squeeze(2) * model.scale.exp()
            right = told[at].float().gather(1, F.pad(picks + 1, (1, 0))).softmax(1)
            loss = loss + F.kl_div(scores.log_softmax(1), right, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 500 == 0 or step + 1 == len(order):
            say(f"static {step + 1}/{len(order)} loss {loss.item():.3f} scale {model.scale.exp().item():.1f}")
    return model.eval()


def quantize_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.maximum(np.abs(table).max(1), 1e-9) / 127
    return np.rint(table / scales[:, None]).astype(np.int8), scales.astype(np.float32)


# -- what is hard to tell apart --------------------------------------------------------------------------------------


def score_words(passages: Passages, at: Tensor, asked: Tensor, stems: Tensor) -> Tensor:
    """BM25 of the fields of these passages, by the stems of tokens: near enough to what ranks beside the models."""
    size = len(stems)
    counts = torch.tensor([2.0, 5.0, 1.0, 1.0], device=at.device)[passages.fields]
    words = stems[passages.whole[at].int()]
    terms = torch.zeros((len(at), size), device=at.device)
    terms.scatter_add_(1, words, counts.expand_as(words) * (words > 0))
    lengths = (words > 0).sum(1, keepdim=True).float()
    inverse = torch.log(1 + len(at) / ((terms > 0).sum(0) + 0.5))
    terms = terms / (terms + 1.2 * (0.25 + 0.75 * lengths / lengths.mean())) * inverse
    wanted = torch.zeros((len(asked), size), device=at.device)
    wanted.scatter_(1, stems[asked.int()], 1.0)
    wanted[:, 0] = 0
    return wanted @ terms.T


@torch.no_grad()
def mine(data: Data, static: Static, stems: Tensor) -> tuple[Tensor, Tensor]:
    """Of every question the numbers of the passages of its package that words and vectors like best, but the right
    one and those about which the same is asked; and how many of them come before the right one."""
    pools: list[np.ndarray] = []
    small: dict[int, list[np.ndarray]] = defaultdict(list)
    for numbers in np.split(np.arange(len(data.packages)), np.flatnonzero(np.diff(data.packages)) + 1):
        if len(numbers) >= 100:
            pools += np.split(numbers, range(3000, len(numbers), 3000))
        else:
            small[int(data.languages[numbers[0]])].append(numbers)
    for parts in small.values():
        numbers = np.concatenate(parts)
        pools += np.split(numbers, range(400, len(numbers), 400))
    device, passages = data.device, data.passages
    found = torch.zeros((len(data), KEPT), dtype=torch.int32, device=device)
    ranks = torch.zeros(len(data), dtype=torch.int32, device=device)
    by_passage = torch.argsort(data.about)
    starts = torch.searchsorted(data.about[by_passage], torch.arange(len(passages) + 1, device=device)).tolist()
    for pool in pools:
        questions = torch.cat([by_passage[starts[n] : starts[n + 1]] for n in pool.tolist()])
        if not len(questions):
            continue
        if len(pool) <= KEPT + 1:  # too small to be hard: anything
            pool = np.concatenate([pool, np.arange(KEPT + 2)])
        at = torch.from_numpy(pool).to(device)
        asked = data.asked[0, questions]
        vectors = static.query(asked.int())
        scores = _unit(score_words(passages, at, asked, stems)) + _unit(vectors @ static.whole(passages, at).T)
        right = data.about[questions][:, None] == at[None]
        own = scores.masked_fill(~right, -1).max(1, keepdim=True).values
        ranks[questions] = (scores > own).sum(1).int()
        # Where the same is asked about another passage, that is no wrong answer.
        places = torch.zeros(len(passages), dtype=torch.int64, device=device)
        places[at] = torch.arange(len(at), device=device)
        alike = vectors @ vectors.T > 0.93
        wrong = torch.zeros((len(questions), len(at)), device=device)
        wrong.index_add_(1, places[data.about[questions]], alike.float())
        scores.masked_fill_(right | (wrong > 0), -1)
        found[questions] = at[scores.topk(KEPT, 1).indices].int()
    return found, ranks


def _unit(scores: Tensor) -> Tensor:
    low, high = scores.min(1, keepdim=True).values, scores.max(1, keepdim=True).values
    return (scores - low) / (high - low + 1e-9)


# -- the reranker ----------------------------------------------------------------------------------------------------


class Layer(nn.Module):
    def __init__(self, dims: int, heads: int, inner: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.between = nn.LayerNorm(dims), nn.LayerNorm(dims)
        self.look, self.join = nn.Linear(dims, 3 * dims), nn.Linear(dims, dims)
        self.widen, self.narrow = nn.Linear(dims, inner), nn.Linear(inner, dims)

    def forward(self, x: Tensor, mask: Tensor, rest: Tensor | None = None) -> Tensor:
        """What looks, at itself and at the `rest` that does not look any more and is normed already."""
        batch, own, dims = x.shape
        normed = F.layer_norm(x, (dims,)).to(x.dtype)
        # What a norm weighs and adds, the matrix behind it can do as well.
        weight = self.look.weight * self.before.weight
        bias = self.look.bias + (self.look.weight * self.before.bias).sum(1)
        every = normed if rest is None else torch.cat([normed, rest], 1)
        q = F.linear(normed, weight[:dims], bias[:dims]).view(batch, own, self.heads, -1).transpose(1, 2)
        both = F.linear(every, weight[dims:], bias[dims:]).view(batch, every.shape[1], 2, self.heads, -1)
        k, v = both.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + F.dropout(self.join(seen.transpose(1, 2).reshape(batch, own, dims)), self.dropout, self.training)
        inner = F.relu(self.widen(self.between(x)))
        return x + F.dropout(self.narrow(inner), self.dropout, self.training)


class Reranker(nn.Module):
    """A small cross-encoder: question and passage in one sequence, marks where their words meet, a score out. In the
    first layers everything looks at everything, in the `late` ones the question alone goes on looking."""

    def __init__(self, size: int, dims: int, layers: int, late: int, heads: int, dropout: float):
        super().__init__()
        self.table = nn.Embedding(size + 1, DIMS, padding_idx=0)
        self.lift = nn.Identity() if dims == DIMS else nn.Linear(DIMS, dims)
        self.position = nn.Parameter(torch.randn(ASKED + READ, dims) * 0.02)
        self.place = nn.Parameter(torch.randn(5, dims) * 0.02)
        self.meeting = nn.Parameter(torch.randn(6, dims) * 0.02)
        self.share = nn.Parameter(torch.randn(3, dims) * 0.02)
        self.layers = nn.ModuleList(Layer(dims, heads, 4 * dims, dropout) for _ in range(layers + late))
        self.late = late
        self.last = nn.LayerNorm(dims)
        self.sense, self.score = nn.Linear(2 * dims, dims), nn.Linear(dims, 1)
        self.dropout = dropout

    def forward(self, asked: Tensor, tokens: Tensor, places: Tensor, meeting: Tensor, shares: Tensor) -> Tensor:
        """Rows of question and passage, token numbers from 1; asked[:, 0] is the place of the answer."""
        place = torch.cat([torch.zeros_like(asked, dtype=torch.int64), places.long()], 1)
        sequence = torch.cat([asked, tokens], 1)
        long, wide = asked.shape[1], tokens.shape[1]
        x = self.lift(self.table(sequence)) + torch.cat([self.position[:long], self.position[ASKED : ASKED + wide]])
        # By one product, not by look-ups: the gradient of a look-up in six rows adds up one by one.
        marks = torch.cat([F.one_hot(place, 5), F.one_hot(meeting, 6), shares, torch.zeros_like(shares[..., :2])], 2)
        x = x + marks.to(x.dtype) @ F.pad(torch.cat([self.place, self.meeting, self.share]), (0, 0, 0, 2))
        x = F.dropout(x, self.dropout, self.training)
        if torch.is_autocast_enabled("cuda"):
            x = x.bfloat16()
        there = sequence > 0
        there[:, 0] = True
        mask = there[:, None, None, :]
        full = len(self.layers) - self.late
        for layer in self.layers[:full]:
            x = layer(x, mask)
        x, rest = x[:, :long], F.layer_norm(x[:, long:], x.shape[2:]).to(x.dtype)
        for layer in self.layers[full:]:
            x = layer(x, mask, rest)
        x = self.last(x)
        share = (there[:, :long] / there[:, :long].sum(1, keepdim=True)).to(x.dtype)
        mean = (x * share[:, :, None]).sum(1)
        return self.score(torch.tanh(self.sense(torch.cat([mean, x[:, 0]], 1)))).squeeze(1).float()


# How much it says that a word of the question is met in: nothing, path, name, signature, body.
RANK = torch.tensor([0, 2, 4, 3, 1])


@torch.no_grad()
def meet(asked: Tensor, tokens: Tensor, places: Tensor, stems: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Where words of question and passage meet, and what share of the other candidates has the same: of a word of the
    question, whether anywhere and whether in the name; of a token of the passage, whether anywhere. Rows come in lists
    of `width` candidates."""
    words, met = stems[asked], stems[tokens]
    same = (words[:, :, None] == met[:, None, :]) & (words[:, :, None] > 0)
    best = torch.where(same, RANK.to(tokens.device, non_blocking=True)[places.long()][:, None, :], 0).amax(2)
    inside = same.any(1)
    meeting = torch.cat([best, inside.long() * 5], 1)
    lists = len(asked) // width
    holds = torch.zeros((len(asked), len(stems)), dtype=torch.uint8, device=tokens.device)
    holds.scatter_(1, met, 1)
    often = holds.view(lists, width, -1).sum(1, dtype=torch.int32).gather(1, met.view(lists, -1)).view_as(met)
    anywhere, named = best > 0, best == 4

    def others(flags: Tensor) -> Tensor:
        counts = flags.view(lists, width, -1).sum(1, keepdim=True)
        return (counts - flags.view(lists, width, -1).int()).view(len(asked), -1) / max(width - 1, 1)

    by_word = torch.stack([others(anywhere), others(named), torch.zeros_like(words, dtype=torch.float32)], 2)
    token = torch.where(met > 0, (often - 1) / max(width - 1, 1), 0.0)
    by_token = torch.stack([torch.zeros_like(token), torch.zeros_like(token), token], 2)
    return meeting, torch.cat([by_word, by_token], 1)


class Course(NamedTuple):
    """How long a reranker learns: so many steps, or for so many seconds where those are fewer (0: any)."""

    steps: int
    seconds: float
    rate: float
    queries: int
    negatives: int


def train_reranker(model: Reranker, data: Data, hard: Tensor, chances: Tensor, stems: Tensor, course: Course,
                   kept: Path, told: Tensor | None = None) -> Reranker:  # fmt: skip
    """`told`: what a teacher makes of the right passage and of the hard ones, to be learned beside the labels."""
    device, queries, width = data.device, course.queries, course.negatives + 1
    cuda, passages = device == "cuda", data.passages
    table = [model.table.weight]
    others = [p for n, p in model.named_parameters() if not n.startswith("table")]
    optimizer = torch.optim.AdamW([{"params": others, "weight_decay": 0.01}, {"params": table, "weight_decay": 0.0}],
                                  lr=course.rate, betas=(0.9, 0.98), fused=cuda)  # fmt: skip
    step, spent = 0, 0.0
    if kept.is_file():
        before = torch.load(kept, map_location=device)
        model.load_state_dict(before["model"])
        optimizer.load_state_dict(before["optimizer"])
        step, spent = before["step"], before["spent"]
    torch.manual_seed(SEED + 1 + step)
    rng = torch.Generator(device=device).manual_seed(SEED + 2 + step)
    model.train()
    torch._dynamo.config.suppress_errors = True  # what cannot be compiled runs as it is
    scored = torch.compile(model, dynamic=False) if cuda else model
    target = torch.zeros(queries, dtype=torch.int64, device=device)
    total, since, started = torch.zeros((), device=device), step, time.time() - spent
    while True:
        # By time where it is short: nobody knows beforehand what a step takes.
        spent = time.time() - started
        done = max(step / course.steps, spent / course.seconds if course.seconds else 0)
        if done >= 1 or time.time() > CLOCK["stop"]:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step,
                        "spent": spent}, kept)  # fmt: skip
            say(f"{kept.stem}: {step} steps in {spent:.0f} seconds, {done:.3f} of all")
            if done < 1:
                leave_time(0)
            return model.eval()
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = course.rate * min((step + 1) / 300, max(1 - done, 0.01)) * (0.5 if number else 1)
        at = torch.randint(len(data), (4 * queries,), generator=rng, device=device)
        wanted = torch.rand(len(at), generator=rng, device=device) < chances[at]
        at = at[wanted.float().topk(queries).indices]
        picks = torch.rand((queries, hard.shape[1]), generator=rng, device=device).topk(width - 1, 1).indices
        candidates = torch.cat([data.about[at][:, None], hard[at].gather(1, picks).long()], 1).view(-1)
        long, wide = NARROW if done < WIDE_FROM else (ASKED, READ)
        asked = data.put(at, rng)[:, :long].repeat_interleave(width, 0)
        tokens, places = passages.read[candidates, :wide].int(), passages.places[candidates, :wide]
        # A word here and there is hidden: nobody asks in the very words.
        asked = asked * (torch.rand(asked.shape, generator=rng, device=device) > 0.05)
        tokens = tokens * (torch.rand(tokens.shape, generator=rng, device=device) > 0.08)
        meeting, shares = meet(asked, tokens, places, stems, width)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            scores = scored(asked, tokens, places, meeting, shares).view(queries, -1)
            loss = F.cross_entropy(scores, target, label_smoothing=0.03)
            if told is not None:
                right = told[at].float().gather(1, F.pad(picks + 1, (1, 0))).softmax(1)
                loss = 0.4 * loss + 0.6 * F.kl_div(scores.log_softmax(1), right, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        total += loss.detach()
        if step in (1, 100, 400) or step % 1000 == 0:
            say(f"{kept.stem} {step} loss {total.item() / (step - since):.3f} after {done:.3f} of all")
            total.zero_()
            since = step


@torch.no_grad()
def ask_teacher(teacher: Reranker, data: Data, hard: Tensor, stems: Tensor) -> Tensor:
    """Of every question the scores of the right passage and of the hard ones, nothing hidden."""
    cuda, passages, (long, wide) = data.device == "cuda", data.passages, NARROW
    scored = torch.compile(teacher, dynamic=False) if cuda else teacher
    width = hard.shape[1] + 1
    told = torch.zeros((len(data), width), dtype=torch.float16, device=data.device)
    for first in torch.arange(0, len(data), 128, device=data.device):
        at = (first + torch.arange(128, device=data.device)) % len(data)
        candidates = torch.cat([data.about[at][:, None], hard[at].long()], 1).view(-1)
        asked = data.asked[0, at, :long].int().repeat_interleave(width, 0)
        tokens, places = passages.read[candidates, :wide].int(), passages.places[candidates, :wide]
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            told[at] = scored(asked, tokens, places, *meet(asked, tokens, places, stems, width)).view(128, -1).half()
    return told


# -- measuring -------------------------------------------------------------------------------------------------------


class Held:
    """A set to choose on: passages, questions, and which of the passages are right."""

    def __init__(self, arrays: dict[str, np.ndarray], at: int, facts: dict[str, Any], device: str):
        prefix = f"set{at}."
        self.name: str = facts["sets"][at]
        self.passages = Passages(arrays, prefix + "passages.", list(facts["limits"].values()), device)
        asked = pad(arrays[prefix + "questions.tokens"], arrays[prefix + "questions.sizes"], ASKED, 1)
        self.asked = torch.from_numpy(asked).to(device).int()
        self.right = torch.zeros((len(asked), len(self.passages)), dtype=torch.bool, device=device)
        targets = torch.from_numpy(arrays[prefix + "targets"]).to(device).long()
        self.right[targets[:, 0], targets[:, 1]] = True
        self.styles = [facts["styles"][style] for style in arrays[prefix + "styles"]]


class Measured:
    """Features of the best candidates of every question: words, whole, head, and then the reranker. The blend is fitted
    on the very questions: with three or four weights that matters little, and every model has the same help."""

    @torch.no_grad()
    def __init__(self, sets: list[Held], static: Static, stems: Tensor, label: str):
        self.sets, self.stems = sets, stems
        pools: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = []
        for held in sets:
            every = torch.arange(len(held.passages), device=held.asked.device)
            words = score_words(held.passages, every, held.asked, stems)
            query = static.query(held.asked)
            whole = torch.cat([static.whole(held.passages, at) for at in every.split(2048)])
            head = torch.cat([static.head(held.passages, at) for at in every.split(2048)])
            features = torch.stack([words, query @ whole.T, query @ head.T], 2)
            best = features.topk(min(POOL, len(every)), 1).indices.flatten(1).cpu().numpy()
            table, right = features.cpu().numpy().astype(np.float64), held.right.cpu().numpy()
            rows = [np.unique(row) for row in best]
            pools.append([(row, table[n, row], right[n, row]) for n, row in enumerate(rows)])
        self.first = fit([(unit(x), y) for entries in pools for _, x, y in entries])
        self.best = [
            [(p[o], x[o], y[o]) for p, x, y in entries for o in [np.argsort(-(unit(x) @ self.first))[:CANDIDATES]]]
            for entries in pools
        ]
        show(f"{label}: vectors alone", sets, pools, np.array([0, 1.0, 0]))
        show(f"{label}: words and vectors", sets, pools, self.first)

    @torch.no_grad()
    def report(self, label: str, model: Reranker) -> None:
        found: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = []
        for held, entries in zip(self.sets, self.best, strict=True):
            scores = []
            for first in range(0, len(entries), 16):
                numbers = torch.from_numpy(np.stack([p for p, _, _ in entries[first : first + 16]]))
                at, width = numbers.to(held.asked.device).view(-1), numbers.shape[1]
                asked = held.asked[first : first + 16].repeat_interleave(width, 0)
                tokens, places = held.passages.read[at].int(), held.passages.places[at]
                with torch.autocast("cuda", torch.bfloat16, enabled=held.asked.is_cuda):
                    meeting = meet(asked, tokens, places, self.stems, width)
                    scores += model(asked, tokens, places, *meeting).view(-1, width).cpu().numpy().tolist()
            rows = [(p, np.column_stack([x, score]), y) for (p, x, y), score in zip(entries, scores, strict=True)]
            found.append(rows)
        show(f"{label}: alone", self.sets, found, np.array([0, 0, 0, 1.0]))
        show(f"{label}: blend", self.sets, found, fit([(unit(x), y) for rows in found for _, x, y in rows]))


def show(label: str, sets: list[Held], found: list[list[Any]], weights: np.ndarray) -> None:
    """MRR@10 by set and by style."""
    by_set, by_style = {}, defaultdict(list)
    for held, entries in zip(sets, found, strict=True):
        values = reciprocal([unit(x) @ weights for _, x, _ in entries], [y for _, _, y in entries])
        by_set[held.name] = np.mean(values)
        for style, value in zip(held.styles, values, strict=True):
            by_style[style].append(value)
    docs = [value for held, value in by_set.items() if "," not in held]
    rest = [value for held, value in by_set.items() if "," in held]
    say(
        label, np.round(weights, 2).tolist(), f"documentation {np.mean(docs):.4f} other styles {np.mean(rest or 0):.4f}"
    )
    say("   ", {style: f"{np.mean(v):.4f} ({len(v)})" for style, v in by_style.items()})
    say("   ", {name: round(float(value), 3) for name, value in by_set.items()})


def unit(features: np.ndarray) -> np.ndarray:
    low, high = features.min(0, keepdims=True), features.max(0, keepdims=True)
    return (features - low) / (high - low + 1e-9)


def reciprocal(scores: list[np.ndarray], labels: list[np.ndarray]) -> list[float]:
    found = [np.flatnonzero(y[np.argsort(-x, kind="stable")[:10]]) for x, y in zip(scores, labels, strict=True)]
    return [1 / (ranks[0] + 1) if len(ranks) else 0.0 for ranks in found]


def fit(lists: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Linear weights by the likelihood of the right one of its list."""
    lists = [(x, y) for x, y in lists if y.any()]
    longest = max(len(x) for x, _ in lists)
    inputs = torch.zeros(len(lists), longest, lists[0][0].shape[1], dtype=torch.float64)
    mask = torch.full((len(lists), longest), -1e9, dtype=torch.float64)
    right = torch.zeros(len(lists), longest, dtype=torch.bool)
    for n, (x, y) in enumerate(lists):
        inputs[n, : len(x)], mask[n, : len(x)], right[n, : len(x)] = torch.from_numpy(x), 0, torch.from_numpy(y > 0)
    weights = torch.ones(inputs.shape[2], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = (inputs @ weights + mask).log_softmax(1)
        loss = -logits.masked_fill(~right, -1e9).logsumexp(1).mean() + 1e-4 * weights.square().sum()
        loss.backward()
        return loss

    with torch.enable_grad():
        optimizer.step(closure)
    return weights.detach().numpy()


# -- all of it -------------------------------------------------------------------------------------------------------


def load(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as stored:
        arrays = dict(stored)
    return arrays, json.loads(arrays.pop("facts").tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--taught-epochs", type=int, default=6, help="of the table, with what the teacher told")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--teacher", default="384,6,0,6", help="dimensions, layers, late layers, heads")
    parser.add_argument("--teacher-steps", type=int, default=7_000)
    parser.add_argument("--teacher-seconds", type=float, default=0, help="that the steps may take; 0: any")
    parser.add_argument("--student", default="256,2,4,4")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--stop", type=float, default=float("inf"), help="seconds, to be gone on with")
    options = parser.parse_args()
    CLOCK["stop"] = STARTED + options.stop
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    arrays, facts = load(options.tokens)
    say(facts["passages"], "passages", facts["questions"])
    (out / "vocabulary.txt").write_text("\n".join(facts["pieces"]) + "\n", encoding="utf-8")
    data = Data(arrays, facts, device)
    sets = [Held(arrays, at, facts, device) for at in range(len(facts["sets"]))]
    stems = torch.from_numpy(np.concatenate([[0], arrays["stems"]]).astype(np.int64)).to(device)
    cut = f"{(data.passages.read[:, -1] > 0).float().mean():.3f} cut"
    say("tokens of", len(data), "questions,", len(sets), "sets,", cut)
    size = len(facts["pieces"])

    def once(name: str, make: Callable[[], Any]) -> Any:
        """What a run before left, or what is made now."""
        path = out / name
        if not path.is_file():
            torch.save(make(), path)
        return torch.load(path, map_location=device)

    def table(state: dict[str, Tensor]) -> Static:
        found = Static(size)
        found.load_state_dict(state)
        return found.to(device).eval()

    def reranker(shape: str, static: Static) -> Reranker:
        dims, layers, late, heads = map(int, shape.split(","))
        torch.manual_seed(SEED)
        model = Reranker(size, dims, layers, late, heads, 0.1).to(device)
        with torch.no_grad():
            model.table.weight.copy_(static.table.weight * (0.5 / static.table.weight.std()))
            model.table.weight[0] = 0
        return model

    def teach() -> Tensor:
        course = Course(options.teacher_steps, options.teacher_seconds, 6e-4, options.queries, 7)
        teacher = train_reranker(reranker(options.teacher, first), data, hard, chances, stems, course,
                                 out / "teacher.pt")  # fmt: skip
        leave_time(150)
        Measured(sets, first, stems, "first table").report("teacher", teacher)
        told = ask_teacher(teacher, data, hard, stems)
        say("told")
        return told

    torch.manual_seed(SEED)
    first = table(once("first.pt", lambda: train_static(Static(size), data, options.epochs, options.batch, 4e-3)
                       .state_dict()))  # fmt: skip
    hard, ranks = once("hard.pt", lambda: mine(data, first, stems))
    shown, best = (ranks < SHOWN).float().mean(), (ranks == 0).float().mean()
    say(f"mined; right ones among the {SHOWN} {shown:.3f}, first {best:.3f}")
    chances = data.chances * torch.where(ranks < SHOWN, 1.0, HIDDEN)
    told = once("told.pt", teach)
    taught = (hard, told)
    static = table(once("table.pt", lambda: train_static(first, data, options.taught_epochs, options.batch, 2e-3,
                                                         taught).state_dict()))  # fmt: skip
    save_static(static, out, {"seed": SEED, **{k: facts[k] for k in ("passages", "questions", "pairs_sha256")}},
                facts["limits"])  # fmt: skip
    course = Course(options.steps, options.seconds, 1e-3, options.queries, 9)
    model = train_reranker(reranker(options.student, static), data, hard, chances, stems, course, out / "student.pt",
                           told)  # fmt: skip
    save_reranker(model, arrays["stems"], out)
    Measured(sets, static, stems, "table").report("reranker as int8", model)


def save_static(static: Static, out: Path, facts: dict[str, Any], limits: dict[str, int]) -> None:
    table = static.table.weight.detach().float().cpu().numpy()[1:]
    table /= np.abs(table).max() / 0.999
    codes, scales = quantize_rows(table)
    np.save(out / "static_rows.npy", codes)
    np.save(out / "static_scales.npy", scales * 127)
    weights = static.weights.exp().detach().cpu().tolist()
    say("field weights", weights)
    fields = {field: [limit, round(weight, 4)] for (field, limit), weight in zip(limits.items(), weights, strict=True)}
    (out / "trained.json").write_text(json.dumps({**facts, "fields": fields}))


def save_reranker(model: Reranker, stems: np.ndarray, out: Path) -> None:
    """Matrices as int8 with a scale to each row (and back into the model, to be measured), the rest as they are."""
    arrays: dict[str, np.ndarray] = {}
    for name, tensor in model.state_dict().items():
        value = tensor.float().cpu().numpy()
        if value.ndim == 2 and name not in ("place", "meeting", "share", "score.weight"):
            codes, scales = quantize_rows(value)
            tensor.copy_(torch.from_numpy(codes * scales[:, None]))
            arrays[name], arrays[f"{name}.scale"] = codes, scales
        else:
            arrays[name] = value.astype(np.float32)
    np.save(out / "reranker_rows.npy", arrays.pop("table.weight"))
    np.savez(out / "reranker.npz", stems=stems, late=np.array(model.late), **arrays)


if __name__ == "__main__":
    main()
