"""Pairs (first sentence of the documentation, code without its documentation) from the archives that fetch.py left.

The syntax is cq's own: a pair is a chunk with its path, qualified name, signature and collapsed text. Everything is
in order and capped by counts, so the same archives give the same pairs.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import sys
import tarfile
import zipfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from email.parser import HeaderParser
from io import BytesIO
from pathlib import Path

import msgspec

from cq.embed import Passage
from cq.embed.words import split_words
from cq.model.facts import FileFacts, Symbol
from cq.syntax import embedding_text, extract_facts
from training.fetch import CACHE, HERE, PACKAGES, is_excluded
from training.sets import Query, Set

CAPS = {"python": 500, "rust": 5_000, "typescript": 3_000}
LANGUAGES = {
    ".py": "python", ".rs": "rust", ".ts": "typescript", ".tsx": "tsx", ".mts": "typescript",
    ".js": "javascript", ".mjs": "javascript", ".jsx": "jsx",
}  # fmt: skip
SIZES = (200, 300_000)  # bytes of a file
MAX_READ = {"npm": 900_000, "pypi": 1_500_000}  # bytes of a package; 4 MB elsewhere
BODY_WORDS = 230  # what the models read, and a little more
REST_WORDS = 60
SKIPPED_PATH = re.compile(
    r"(^|/)(tests?|testing|__tests__|specs?|e2e|mocks?|__mocks__|fixtures?|examples?|benches|benchmarks?|node_modules|"
    r"third_party|vendor|_vendor|vendored|extern|externals|umd|amd|bundles?|locales?|i18n)/"
    r"|(^|/)(test_[^/]*|conftest\.py|[^/]*_tests?\.(py|rs)|tests\.rs)$"
    r"|\.(min|test|spec|stories|bundle|umd|iife|prod|production)\.[a-z]+$|[.-]min\.js$|_pb2|\.d\.[mc]?ts$"
)
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|0BSD|Unlicense|Zlib|PSF|Python-2|Python Software Foundation|CC0|BSL-1|Boost|HPND|BlueOak|"
    r"Unicode|WTFPL|NCSA|Public Domain|CNRI|Artistic-2)",
    re.I,
)
COPYLEFT = re.compile(
    r"\b(A|L)?GPL|General Public License|Mozilla Public|\bMPL\b|\bEPL\b|Eclipse Public|\bCDDL\b|\bEUPL\b|ShareAlike|"
    r"\bCC-BY-SA|\bOSL-|\bSSPL|Commons Clause|Business Source|Elastic License|\bCeCILL|Sleepycat|\bproprietary\b",
    re.I,
)


REPORTED = {"django": "django", "tokio": "src", "rxjs": "src", "nest": ""}  # corpus -> the part that is no test


class Pair(msgspec.Struct, array_like=True):
    package: str
    language: str
    query: str
    rest: str  # more of the documentation
    path: str
    name: str
    signature: str
    body: str


class Archive(msgspec.Struct):
    registry: str
    name: str
    version: str
    licence: str
    files: dict[str, bytes]


def main(destination: Path, sets: Path) -> None:
    """Writes the pairs, and the sets: packages to choose on and, never chosen on, those that are reported."""
    archives = sorted(
        path for registry in ("pypi", "pypi_rust", "npm", "debian") for path in (CACHE / registry).iterdir()
    )
    sentences: Counter[str] = Counter()
    codes: set[str] = set()
    rows: list[str] = []
    totals: Counter[str] = Counter()
    with ProcessPoolExecutor(2) as pool, lzma.open(destination, "wt", preset=2, encoding="utf-8") as out:
        for header, pairs in pool.map(collect_once, archives, chunksize=4):
            kept = 0
            for pair in [] if crate_of(header[1]) in PACKAGES["tuning"] else pairs:
                code = hashlib.sha1(f"{pair.name}\0{pair.body}".encode()).hexdigest()
                sentences[pair.query] += 1
                if sentences[pair.query] > 2 or code in codes:
                    continue
                codes.add(code)
                kept += 1
                totals[pair.language] += 1
                out.write("\t".join(msgspec.to_builtins(pair)) + "\n")
            if kept or crate_of(header[1]) in PACKAGES["tuning"]:
                registry, name, version, licence = header
                rows.append(
                    f'[[package]]\nregistry = "{registry}"\nname = "{name}"\nversion = "{version}"\n'
                    f'licence = "{licence}"\npairs = {kept}\n'
                )
    (HERE / "manifest.toml").write_text(
        "# What the models were trained on and, with 0 pairs, chosen on.\n\n" + "\n".join(rows)
    )
    print(dict(totals), sum(totals.values()), len(rows), "packages")
    sets.write_bytes(msgspec.msgpack.encode([*_tuning_sets(archives), *reported_sets()]))


def _tuning_sets(archives: list[Path]) -> Iterator[Set]:
    for path in archives:
        # By the file's name first: most archives need not be opened.
        if any(
            word in path.name for tuned in PACKAGES["tuning"] for word in [tuned.removeprefix("@").replace("/", "-")]
        ):
            archive = read_archive(path)
            if crate_of(archive.name) in PACKAGES["tuning"]:
                found = build_set(crate_of(archive.name), "", dict(chosen_files(archive)), 200)
                if len(found.queries) >= 60:
                    yield found


def reported_sets(questions: int = 500) -> Iterator[Set]:
    """The pinned packages of the bench that nothing is trained or chosen on."""
    from bench.corpora import fetch

    for name, tree in REPORTED.items():
        yield build_set(name, "", read_tree(fetch(name), tree), questions)


def collect_once(path: Path) -> tuple[tuple[str, str, str, str], list[Pair]]:
    """As `collect`, from the cache where this archive was read before."""
    kept = CACHE / "pairs" / f"{path.parent.name}-{path.name}"
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        scratch = kept.with_name(kept.name + ".new")
        scratch.write_bytes(msgspec.msgpack.encode(collect(path)))
        scratch.rename(kept)
    return msgspec.msgpack.decode(kept.read_bytes(), type=tuple[tuple[str, str, str, str], list[Pair]])


def collect(path: Path) -> tuple[tuple[str, str, str, str], list[Pair]]:
    """Every pair of one archive, none where its licence does not allow it."""
    try:
        archive = read_archive(path)
    except (OSError, KeyError, StopIteration, ValueError, zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        print(f"{path.name}: {error!r}", file=sys.stderr)
        return ("", "", "", ""), []
    header = (archive.registry, archive.name, archive.version, archive.licence)
    name = crate_of(archive.name)
    if is_excluded(name) or not is_permissive(archive.licence):
        return header, []
    pairs: list[Pair] = []
    counts: Counter[str] = Counter()
    for name, text in chosen_files(archive):
        family = family_of(name)
        if counts[family] >= CAPS[family]:
            continue
        for symbol, passage in passages(name, text):
            query, rest = sentence_of(symbol.doc)
            if query and len(passage.body) >= 60 and counts[family] < CAPS[family]:
                counts[family] += 1
                pairs.append(
                    Pair(
                        archive.name, family, query, " ".join(split_words(rest)[:REST_WORDS]),
                        " ".join(split_words(passage.path)), " ".join(split_words(passage.name)),
                        " ".join(split_words(passage.signature)[:60]), " ".join(split_words(passage.body)[:BODY_WORDS]),
                    )
                )  # fmt: skip
    return header, pairs


def chosen_files(archive: Archive) -> Iterator[tuple[str, bytes]]:
    """In an order that mixes folders, so that a cap takes a bit of everything."""
    read = 0
    for name in sorted(archive.files, key=lambda name: hashlib.sha1(name.encode()).digest()):
        text = archive.files[name]
        if any(is_excluded(part) for part in name.removesuffix(".py").split("/")):
            continue
        if not COPYLEFT.search(text[:3000].decode("utf-8", "replace")):
            yield name, text
            read += len(text)
            if read > MAX_READ.get(archive.registry, 4_000_000):
                return


def passages(path: str, text: bytes) -> Iterator[tuple[Symbol, Passage]]:
    """Every function, class and type of a file as a model reads it, its documentation taken out."""
    facts = extract_facts(text, LANGUAGES[Path(path).suffix])
    bare = without_docs(text, facts)
    for index, chunk in enumerate(facts.chunks):
        if chunk.symbol < 0:
            continue
        symbol = facts.symbols[chunk.symbol]
        if symbol.kind_group in ("function", "method", "class", "type") and symbol.kind != "impl":
            body = re.sub(r"\s+", " ", embedding_text(bare, facts, index))
            yield symbol, Passage(path, symbol.qualified_name, symbol.signature, body)


def build_set(name: str, language: str, files: Mapping[str, bytes], queries: int = 500) -> Set:
    found: list[Passage] = []
    targets: dict[str, list[int]] = defaultdict(list)
    for path in sorted(files):
        for symbol, passage in passages(path, files[path]):
            sentence, _ = sentence_of(symbol.doc)
            if sentence and symbol.kind_group in ("function", "method") and len(passage.body) >= 60:
                targets[sentence].append(len(found))
            found.append(passage)
    # An overload is the function, whichever of them bears the documentation.
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, passage in enumerate(found):
        named[passage.path, passage.name].append(number)
    for numbers in targets.values():
        numbers[:] = sorted({twin for number in numbers for twin in named[found[number].path, found[number].name]})
    chosen = sorted(targets, key=lambda text: hashlib.sha1(text.encode()).digest())[:queries]
    return Set(name, language, tuple(found), tuple(Query(text, tuple(targets[text])) for text in chosen))


def read_tree(root: Path, tree: str = "") -> dict[str, bytes]:
    """The sources under a folder that count, by path; tests do not."""
    named = {path.relative_to(root).as_posix(): path for path in (root / tree).rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(named.items()) if _wanted(name, path.stat().st_size)}


def without_docs(text: bytes, facts: FileFacts) -> bytes:
    """The text with documentation blanked, byte for byte, so that offsets stay."""
    blank = bytearray(text)
    quiet = facts.references.quiet
    if quiet is not None:
        for start, end, kind in zip(array("I", quiet.starts), array("I", quiet.ends), quiet.kinds, strict=True):
            if kind == 1:
                blank[start:end] = b" " * (end - start)
    for symbol in facts.symbols:
        for match in re.finditer(
            rb"/\*\*.*?\*/|//[/!][^\n]*|#\[doc[^\n]*", text[symbol.start : symbol.head], re.DOTALL
        ):
            start, end = symbol.start + match.start(), symbol.start + match.end()
            blank[start:end] = b" " * (end - start)
    return bytes(blank)


def sentence_of(doc: str) -> tuple[str, str]:
    """The first sentence, if it says something in words, and what follows it."""
    doc = re.split(r"\n\s*(?:@\w+|:param|Args:|Parameters\n|# Examples|```|>>>)", doc, maxsplit=1)[0].strip()
    if not doc or doc.startswith(("@", "#", "!", ".. ")):
        return "", ""
    first, *others = re.split(r"\n\s*\n", doc, maxsplit=1)
    first = re.sub(r"\s+", " ", first)
    first = re.sub(r"\{@\w+ ([^}|]*)[^}]*\}", r"\1", first)  # {@link Name}
    first = re.sub(r":\w+(?::\w+)*:`~?([^`<]*)[^`]*`", r"\1", first)  # :class:`~Name`
    first = re.sub(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?", r"\1", first)
    first = first.replace("`", "").replace("*", "").replace("<", " ").replace(">", " ")
    match = re.match(r"(.+?[.!?])(?=\s+[A-Z(]|$)", first)
    sentence = (match.group(1) if match else first).strip()
    rest = first[match.end() :] if match else ""
    words = sentence.split()
    letters = sum(char.isascii() and (char.isalpha() or char == " ") for char in sentence)
    if (
        not 3 <= len(words) <= 40
        or letters < 0.75 * len(sentence)
        or re.search(r"copyright|eslint|TODO|http", sentence)
    ):
        return "", ""
    return sentence, " ".join([rest, *others])


def is_permissive(licence: str) -> bool:
    """`A OR B` by its best choice, `A AND B` by its worst."""
    if "proprietary" in licence.lower():
        return False
    choices = re.split(r"\bor\b|/", licence, flags=re.I)
    return any(PERMISSIVE.search(choice) and not COPYLEFT.search(choice) for choice in choices)


def crate_of(name: str) -> str:
    return name.removeprefix("librust-").removesuffix("-dev") if name.startswith("librust-") else name


def family_of(path: str) -> str:
    return {"python": "python", "rust": "rust"}.get(LANGUAGES[Path(path).suffix], "typescript")


# -- archives --------------------------------------------------------------------------------------------------------


def read_archive(path: Path) -> Archive:
    match path.parent.name:
        case "npm":
            return _read_npm(path)
        case "debian":
            return _read_debian(path)
        case "pypi":
            return _read_wheel(path)
        case _:
            return _read_sdist(path)


def _wanted(name: str, size: int) -> bool:
    return Path(name).suffix in LANGUAGES and SIZES[0] < size < SIZES[1] and not SKIPPED_PATH.search(name)


def _read_wheel(path: Path) -> Archive:
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        metadata = next(name for name in names if name.count("/") == 1 and name.endswith(".dist-info/METADATA"))
        info = HeaderParser().parsestr(file.read(metadata).decode("utf-8", "replace"))
        files = {
            item.filename: file.read(item)
            for item in file.infolist()
            if item.filename.endswith(".py") and _wanted(item.filename, item.file_size)
        }
    return Archive("pypi", info["Name"].lower(), info["Version"], _licence_of(info), files)


def _licence_of(info: object) -> str:
    get, get_all = info.get, info.get_all  # pyright: ignore
    if get("License-Expression"):
        return _one_line(get("License-Expression"))
    classifiers = [line.rsplit("::", 1)[1].strip() for line in get_all("Classifier") or [] if "License ::" in line]
    licence = _one_line(get("License") or "")
    return " AND ".join(classifiers) if classifiers else licence


def _one_line(text: str) -> str:
    return re.sub(r"[\"\\\s]+", " ", text.strip().split("\n\n")[0])[:100].strip()


def _read_tar(data: bytes | Path, wanted: re.Pattern[str]) -> dict[str, bytes]:
    with tarfile.open(data) if isinstance(data, Path) else tarfile.open(fileobj=BytesIO(data)) as tar:
        return {
            member.name: file.read()
            for member in tar
            if member.isfile()
            and (wanted.search(member.name) or _wanted(member.name, member.size))
            and (file := tar.extractfile(member))
        }


def _read_npm(path: Path) -> Archive:
    found = _read_tar(path, re.compile(r"^[^/]+/package\.json$"))
    info = msgspec.json.decode(
        next(data for name, data in found.items() if name.count("/") == 1 and name.endswith("/package.json"))
    )
    files = {name.partition("/")[2]: data for name, data in found.items() if not name.endswith(".json")}
    if sum(name.endswith((".ts", ".tsx")) for name in files) >= 3:
        files = {name: data for name, data in files.items() if name.endswith((".ts", ".tsx"))}
    licence = info.get("license") or ""
    if isinstance(licence, dict):
        licence = licence.get("type", "")
    return Archive("npm", info["name"], info["version"], _one_line(str(licence)), files)


def _read_sdist(path: Path) -> Archive:
    found = _read_tar(path, re.compile(r"^[^/]+/PKG-INFO$"))
    metadata = next(data for name, data in found.items() if name.endswith("/PKG-INFO"))
    info = HeaderParser().parsestr(metadata.decode("utf-8", "replace"))
    files = {name.partition("/")[2]: data for name, data in found.items() if name.endswith(".rs")}
    return Archive("pypi_rust", info["Name"].lower(), info["Version"], _licence_of(info), files)


def _read_debian(path: Path) -> Archive:
    found = _read_tar(_member(path.read_bytes(), b"data.tar"), re.compile(r"/Cargo\.toml$"))
    manifest = min((name for name in found if name.endswith("/Cargo.toml")), key=lambda name: name.count("/"))
    info = msgspec.toml.decode(found[manifest])["package"]
    root = manifest.removesuffix("Cargo.toml")
    files = {
        name.removeprefix(root): text for name, text in found.items() if name.startswith(root) and name.endswith(".rs")
    }
    # One crate under its own name: its folder stands for the package, and its path begins as in a repository.
    package, version = path.name.split("_")[:2]
    return Archive("debian", package, version.replace("%3a", ":"), _one_line(str(info.get("license", ""))), files)


def _member(archive: bytes, name: bytes) -> bytes:
    """Of an `ar` archive: 8 bytes of magic, then members with a header of 60 bytes, at even offsets."""
    at = 8
    while at < len(archive):
        size = int(archive[at + 48 : at + 58])
        if archive[at : at + 16].startswith(name):
            return archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise ValueError(f"no {name.decode()} in it")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
