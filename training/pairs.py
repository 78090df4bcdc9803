"""Questions and the code they are about, from the archives that fetch.py left.

The syntax is cq's own: a passage is a chunk with its path, qualified name, signature and collapsed text, its
documentation taken out. Everything is in order and capped by counts, so the same archives give the same pairs.
"""

from __future__ import annotations

import hashlib
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from cq.embed.words import split_words
from training.archives import Archive, chosen_files, crate_of, family_of, is_permissive, read_archive, read_tree
from training.fetch import BATCH, CACHE, HERE, PACKAGES, is_excluded_package
from training.sets import OTHER, STYLES, Entry, Query, Set
from training.styles import Definition, ask_by_pages, ask_by_tests, definitions, sentence_of

CAPS = {
    "python": 1_200,
    "rust": 5_000,
    "typescript": 3_000,
    "go": 1_000,
    "java": 1_000,
    "c": 1_000,
    "ruby": 1_000,
    "php": 1_000,
}  # definitions of a package that are asked about
SILENT = 0.5  # definitions that nothing is asked about, beside each of those: real repositories are full of them
BODY_WORDS = 180
REST_WORDS = 60
REPORTED = {"django": "django", "tokio": "src", "rxjs": "", "nest": ""}  # corpus -> the part that is no test
Header = tuple[str, str, str, str]


def main(destination: Path, sets: Path) -> None:
    """Writes the pairs, and the sets: packages to choose on and, never chosen on, those that are reported."""
    archives = sorted(
        path
        for registry in BATCH
        if (CACHE / registry).is_dir()
        for path in (CACHE / registry).iterdir()
        if registry != "source" or path.suffix == ".dsc"
    )
    sentences: Counter[str] = Counter()
    codes: set[str] = set()
    rows: list[str] = []
    totals: Counter[str] = Counter()
    taken: set[tuple[str, str]] = set()
    with ProcessPoolExecutor(2) as pool, lzma.open(destination, "wt", preset=1, encoding="utf-8") as out:
        measured = pool.submit(write_sets, archives, sets)
        for (registry, name, version, licence), entries in pool.map(collect_once, archives, chunksize=4):
            chosen_on = crate_of(name) in PACKAGES["tuning"]
            key = (name, "pypi" if registry == "sdist" else registry)
            if key in taken:
                continue  # two archives of one package: the first
            taken.add(key)
            styles: Counter[str] = Counter()
            for entry in [] if chosen_on else entries:
                code = hashlib.sha1(f"{entry.name}\0{entry.body}".encode()).hexdigest()
                if code in codes:
                    continue
                codes.add(code)
                questions: list[tuple[str, str]] = []
                for style, text in entry.questions:
                    sentences[text.lower()] += 1
                    if sentences[text.lower()] <= 2:
                        questions.append((style, text))
                if entry.questions and not questions:
                    continue
                entry.questions = questions
                out.write(entry.to_lines())
                styles.update(style for style, _ in questions)
                styles["passages"] += 1
                totals.update({f"{entry.language} {style}": 1 for style, _ in questions})
            totals.update(styles)
            if styles or chosen_on:
                counts = ", ".join(f"{style} = {styles[style]}" for style in ("passages", *STYLES) if styles[style])
                rows.append(
                    f'[[package]]\nregistry = "{registry}"\nname = "{name}"\nversion = "{version}"\n'
                    f'licence = "{licence}"\npairs = {{ {counts} }}\n'
                )
        measured.result()
    (HERE / "manifest.toml").write_text(
        "# What the models were trained on and, without pairs, chosen on.\n\n" + "\n".join(rows)
    )
    print(dict(sorted(totals.items())), len(rows), "packages")


def write_sets(archives: list[Path], destination: Path) -> None:
    destination.write_bytes(msgspec.msgpack.encode([*_tuning_sets(archives), *reported_sets()]))


def _tuning_sets(archives: list[Path]) -> Iterator[Set]:
    taken: set[str] = set()  # two registries may have one package
    for path in archives:
        # By the file's name first: most archives need not be opened.
        if any(
            word in path.name for tuned in PACKAGES["tuning"] for word in [tuned.removeprefix("@").replace("/", "-")]
        ):
            archive = read_archive(path)
            if crate_of(archive.name) in PACKAGES["tuning"] and crate_of(archive.name) not in taken:
                taken.add(crate_of(archive.name))
                name, files = crate_of(archive.name), dict(chosen_files(archive))
                found = build_set(name, files, 200)
                if len(found.queries) >= 60:
                    yield found
                    yield build_set(name + OTHER, files, 100, archive)


def reported_sets(questions: int = 500) -> Iterator[Set]:
    """The pinned packages of the bench that nothing is trained or chosen on."""
    from bench.corpora import fetch

    for name, tree in REPORTED.items():
        yield build_set(name, read_tree(fetch(name), tree), questions)


def collect_once(path: Path) -> tuple[Header, list[Entry]]:
    """As `collect`, from the cache where this archive was read before."""
    kept = CACHE / "entries" / f"{path.parent.name}-{path.name}"
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        scratch = kept.with_name(kept.name + ".new")
        scratch.write_bytes(msgspec.msgpack.encode(collect(path)))
        scratch.rename(kept)
    return msgspec.msgpack.decode(kept.read_bytes(), type=tuple[Header, list[Entry]])


def collect(path: Path) -> tuple[Header, list[Entry]]:
    """What one archive holds, nothing where its licence does not allow it."""
    try:
        archive = read_archive(path)
    except (
        OSError,
        KeyError,
        lzma.LZMAError,
        zlib.error,
        StopIteration,
        ValueError,
        zipfile.BadZipFile,
        tarfile.TarError,
        EOFError,
    ) as error:
        print(f"{path.name}: {error!r}", file=sys.stderr)
        return ("", "", "", ""), []
    return collect_from(archive)


def collect_from(archive: Archive) -> tuple[Header, list[Entry]]:
    header = (archive.registry, archive.name, archive.version, archive.licence)
    if is_excluded_package(archive.name) or not is_permissive(archive.licence):
        return header, []
    found = ask(chosen_files(archive), archive)
    entries: list[Entry] = []
    counts: Counter[str] = Counter()
    for definition in found:
        family = family_of(definition.passage.path)
        questions = list(dict.fromkeys(definition.questions))[:6]
        room = CAPS[family] if questions else SILENT * counts[family]
        kind = family if questions else f"silent {family}"
        if len(definition.passage.body) >= 60 and counts[kind] < room:
            counts[kind] += 1
            passage = definition.passage
            entries.append(
                Entry(
                    archive.name, family, " ".join(split_words(passage.path)), " ".join(split_words(passage.name)),
                    " ".join(split_words(passage.signature)[:60]), " ".join(split_words(passage.body)[:BODY_WORDS]),
                    questions,
                )
            )  # fmt: skip
    return header, entries


def ask(files: Iterable[tuple[str, bytes]], archive: Archive | None) -> list[Definition]:
    """Every definition with what is asked about it: by its documentation alone, or also by what lies in its archive."""
    sources = list(files)
    found = [definition for path, text in sources for definition in definitions(path, text, archive is not None)]
    for number, definition in enumerate(found):
        query, rest = sentence_of(_without_name(definition.symbol.doc, definition.symbol.name))
        if query:
            definition.questions.insert(0, ("doc", query))
            if archive is None:
                continue
            if number % 4 == 0:  # keeps the rest of its documentation, as it would in a real repository
                body = " ".join([*split_words(rest)[:REST_WORDS], definition.passage.body])
                definition.passage = msgspec.structs.replace(definition.passage, body=body)
            elif len((more := sentence_of(rest.strip())[0]).split()) >= 5 and more[0].isalnum():
                definition.questions.append(("more", more))
    if archive is not None:
        ask_by_pages(found, chosen_files(archive, "pages"))
        ask_by_tests(found, dict(chosen_files(archive, "tests")), sources)
    return found


def _without_name(doc: str, name: str) -> str:
    """Go's documentation begins with the name of what it is about, which nobody who asks would know."""
    first, _, rest = doc.partition(" ")
    return rest if first == name and rest[:1].islower() else doc


def build_set(name: str, files: Mapping[str, bytes], queries: int = 500, archive: Archive | None = None) -> Set:
    """The first sentences of the documentation as questions, or, with an archive, those of every other style."""
    found = ask(((path, files[path]) for path in sorted(files)), archive)
    passages = [definition.passage for definition in found]
    # An overload is the function, whichever of them bears the documentation.
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, passage in enumerate(passages):
        named[passage.path, passage.name].append(number)
    targets: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for passage, definition in zip(passages, found, strict=True):
        if definition.symbol.kind_group in ("function", "method") and len(passage.body) >= 60:
            for style, text in definition.questions:
                targets[style][text].update(named[passage.path, passage.name])
    chosen: list[Query] = []
    for style in STYLES[:1] if archive is None else STYLES[1:]:
        texts = sorted(targets[style], key=lambda text: hashlib.sha1(text.encode()).digest())
        chosen += [Query(text, tuple(sorted(targets[style][text])), style) for text in texts[:queries]]
    return Set(name, tuple(passages), tuple(chosen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
