"""What lies in the archives that fetch.py left: sources, tests and pages by path, and whether their licence lets us use
them. Nothing of them runs."""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path

import msgspec

from training.fetch import is_excluded

LANGUAGES = {
    ".py": "python", ".rs": "rust", ".ts": "typescript", ".tsx": "tsx", ".mts": "typescript",
    ".js": "javascript", ".mjs": "javascript", ".jsx": "jsx", ".go": "go", ".java": "java", ".c": "c", ".h": "c",
    ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".rb": "ruby", ".php": "php",
}  # fmt: skip
SIZES = (200, 300_000)  # bytes of a file
# Bytes of a package: its sources, and each of its tests and its pages.
MAX_READ = {"npm": (1_200_000, 300_000), "debian": (2_500_000, 400_000), "source": (1_500_000, 400_000)}
MAX_READ_ELSE = (3_000_000, 1_500_000)
SKIPPED_PATH = re.compile(
    r"(^|/)(tests?|testing|__tests__|specs?|e2e|mocks?|__mocks__|fixtures?|testdata|examples?|benches|benchmarks?|node_modules|"
    r"third_party|vendor|_vendor|vendored|extern|externals|umd|amd|bundles?|locales?|i18n)/"
    r"|(^|/)(test_[^/]*|conftest\.py|[^/]*_(tests?|spec)\.[a-z]+|tests\.rs|[A-Z]\w*Tests?\.(java|php)|debian/.*)$"
    r"|\.(min|test|spec|stories|bundle|umd|iife|prod|production)\.[a-z]+$|[.-]min\.js$|_pb2|\.d\.[mc]?ts$"
)
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|0BSD|Unlicense|Zlib|PSF|Python-2|Python Software Foundation|CC0|BSL-1|Boost|HPND|BlueOak|"
    r"Unicode|WTFPL|NCSA|Public[- ]Domain|CNRI|Artistic-2|Expat|X11)",
    re.I,
)
COPYLEFT = re.compile(
    r"\b(A|L)?GPL|General Public License|Mozilla Public|\bMPL\b|\bEPL\b|Eclipse Public|\bCDDL\b|\bEUPL\b|ShareAlike|"
    r"\bCC-BY-SA|\bOSL-|\bSSPL|Commons Clause|Business Source|Elastic License|\bCeCILL|Sleepycat|\bproprietary\b",
    re.I,
)


TEST_PATH = re.compile(
    r"(^|/)(tests?|__tests__|specs?)/|(^|/)test_[^/]*\.(py|rb)$|_tests?\.(py|rs|go|rb)$|_spec\.rb$|\.(test|spec)\.[a-z]+$|"
    r"Tests?\.(java|php)$"
)
PAGE = re.compile(r"(?i)\.(rst|md)$|(^|/)(changes|changelog|history|news|release[-_]?notes)(\.txt)?$")
NO_PAGE = re.compile(r"(?i)licen[cs]e|copying|notice|contribut|code_of_conduct|security|authors|node_modules/|vendor")


class Archive(msgspec.Struct):
    registry: str
    name: str
    version: str
    licence: str
    files: dict[str, bytes]
    tests: dict[str, bytes] = {}
    pages: dict[str, bytes] = {}


def chosen_files(archive: Archive, kind: str = "files") -> Iterator[tuple[str, bytes]]:
    """In an order that mixes folders, so that a cap takes a bit of everything."""
    files: dict[str, bytes] = getattr(archive, kind)
    most = MAX_READ.get(archive.registry, MAX_READ_ELSE)[kind != "files"]
    read = 0
    for name in sorted(files, key=lambda name: hashlib.sha1(name.encode()).digest()):
        text = files[name]
        if any(is_excluded(part) for part in name.removesuffix(".py").split("/")):
            continue
        if not COPYLEFT.search(text[:3000].decode("utf-8", "replace")) and b"DO NOT EDIT" not in text[:1000]:
            yield name, text
            read += len(text)
            if read > most:
                return


def is_permissive(licence: str) -> bool:
    """`A OR B` by its best choice, `A AND B` by its worst."""
    if "proprietary" in licence.lower():
        return False
    choices = re.split(r"\bor\b|/", licence, flags=re.I)
    return any(PERMISSIVE.search(choice) and not COPYLEFT.search(choice) for choice in choices)


def crate_of(name: str) -> str:
    return name.removeprefix("librust-").removesuffix("-dev") if name.startswith("librust-") else name


def family_of(path: str) -> str:
    language = LANGUAGES[Path(path).suffix]
    return {"tsx": "typescript", "javascript": "typescript", "jsx": "typescript", "cpp": "c"}.get(language, language)


def read_tree(root: Path, tree: str = "") -> dict[str, bytes]:
    """The sources under a folder that count, by path; tests do not."""
    named = {path.relative_to(root).as_posix(): path for path in (root / tree).rglob("*") if path.is_file()}
    return {
        name: path.read_bytes() for name, path in sorted(named.items()) if kind_of(name, path.stat().st_size) == "files"
    }


def kind_of(name: str, size: int) -> str:
    """What a file of an archive is to us: one of `files`, `tests`, `pages`, or nothing."""
    if not SIZES[0] < size < SIZES[1]:
        return ""
    if Path(name).suffix in LANGUAGES:
        if not SKIPPED_PATH.search(name):
            return "files"
        return "tests" if TEST_PATH.search(name) and not re.search(r"\.min\.|node_modules|vendor", name) else ""
    return "pages" if PAGE.search(name) and not NO_PAGE.search(name) else ""


def sort_files(found: dict[str, bytes], suffixes: tuple[str, ...]) -> dict[str, dict[str, bytes]]:
    """By what they are, with the sources of these languages only."""
    kinds: dict[str, dict[str, bytes]] = {"files": {}, "tests": {}, "pages": {}}
    for name, data in found.items():
        kind = kind_of(name, len(data))
        if kind and (kind == "pages" or name.endswith(suffixes)):
            kinds[kind][name] = data
    return kinds


def read_archive(path: Path) -> Archive:
    match path.parent.name:
        case "npm":
            return _read_npm(path)
        case "debian":
            return _read_debian(path)
        case "source":
            return _read_source(path)
        case "binary":
            return _read_binary(path)
        case "pypi":
            return _read_wheel(path)
        case _:
            return _read_sdist(path)


def _read_wheel(path: Path) -> Archive:
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        metadata = next(name for name in names if name.count("/") == 1 and name.endswith(".dist-info/METADATA"))
        info = HeaderParser().parsestr(file.read(metadata).decode("utf-8", "replace"))
        found = {item.filename: file.read(item) for item in file.infolist() if kind_of(item.filename, item.file_size)}
    return Archive("pypi", info["Name"].lower(), info["Version"], _licence_of(info), **sort_files(found, (".py",)))


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
            and (wanted.search(member.name) or kind_of(_inside(member.name), member.size))
            and (file := tar.extractfile(member))
        }


def _inside(name: str) -> str:
    """The path below the archive's own folder, whose name says nothing."""
    return name.partition("/")[2]


def _read_npm(path: Path) -> Archive:
    found = _read_tar(path, re.compile(r"^[^/]+/package\.json$"))
    info = msgspec.json.decode(
        next(data for name, data in found.items() if name.count("/") == 1 and name.endswith("/package.json"))
    )
    files = {_inside(name): data for name, data in found.items()}
    typed = sum(name.endswith((".ts", ".tsx")) and kind_of(name, len(data)) == "files" for name, data in files.items())
    kinds = sort_files(files, (".ts", ".tsx") if typed >= 3 else tuple(LANGUAGES))
    licence = info.get("license") or ""
    if isinstance(licence, dict):
        licence = licence.get("type", "")
    return Archive("npm", info["name"], info["version"], _one_line(str(licence)), **kinds)


def _read_sdist(path: Path) -> Archive:
    found = _read_tar(path, re.compile(r"^[^/]+/PKG-INFO$"))
    metadata = next(data for name, data in found.items() if name.endswith("/PKG-INFO") and name.count("/") == 1)
    info = HeaderParser().parsestr(metadata.decode("utf-8", "replace"))
    kinds = sort_files({_inside(name): data for name, data in found.items()}, (".rs", ".py"))
    for name in [name for name in kinds["files"] if name.startswith(("doc/", "docs/")) or name == "setup.py"]:
        del kinds["files"][name]
    return Archive("sdist", info["Name"].lower(), info["Version"], _licence_of(info), **kinds)


def _read_debian(path: Path) -> Archive:
    found = _read_tar(_member(path.read_bytes(), b"data.tar"), re.compile(r"/Cargo\.toml$"))
    manifest = min((name for name in found if name.endswith("/Cargo.toml")), key=lambda name: name.count("/"))
    info = msgspec.toml.decode(found[manifest])["package"]
    # One crate under its own name: its folder stands for the package, and its path begins as in a repository.
    root = manifest.removesuffix("Cargo.toml")
    kinds = sort_files({n.removeprefix(root): data for n, data in found.items() if n.startswith(root)}, (".rs",))
    package, version = path.name.split("_")[:2]
    licence = _one_line(str(info.get("license", "")))
    return Archive("debian", package, version.replace("%3a", ":"), licence, **kinds)


def _read_source(path: Path) -> Archive:
    """A source package by its .dsc: the sources of its authors, and what Debian wrote down about their licences."""
    text = path.read_text("utf-8", "replace")
    fields = dict(re.findall(r"(?m)^(Source|Version): (\S+)", text))
    names = sorted(set(re.findall(r"(?m)^ [0-9a-f]{64} \d+ (\S+)$", text)))
    origin = next(name for name in names if re.search(r"\.tar\.\w+$", name) and ".debian.tar" not in name)
    debian = next((name for name in names if ".debian.tar" in name), origin)
    copyright = re.compile(r"(^|/)debian/copyright$")
    own = _read_tar(path.with_name(debian), copyright)
    licences = next((data for name, data in own.items() if copyright.search(name)), b"").decode("utf-8", "replace")
    licence, other = read_licences(licences)
    found = {_inside(name): data for name, data in _read_tar(path.with_name(origin), copyright).items()}
    files = {name: data for name, data in found.items() if not any(fnmatchcase(name, glob) for glob in other)}
    return Archive("source", fields["Source"], fields["Version"], licence, **sort_files(files, _SOURCE_SUFFIXES))


def _read_binary(path: Path) -> Archive:
    """A package that installs its sources: below the folder that all of them share they lie as in a repository."""
    copyright = re.compile(r"/usr/share/doc/[^/]+/copyright$")
    found = _read_tar(_member(path.read_bytes(), b"data.tar"), copyright)
    licences = next((data for name, data in found.items() if copyright.search(name)), b"").decode("utf-8", "replace")
    licence, _ = read_licences(licences)
    package, version = path.name.split("_")[:2]
    kinds = sort_files({re.sub(_INSTALLED, "", name): data for name, data in found.items()}, _SOURCE_SUFFIXES)
    return Archive("binary", package, version.replace("%3a", ":"), licence, **kinds)


_INSTALLED = re.compile(
    r"^\./usr/(share|lib)/(gocode/src/[^/]+/[^/]+/|ruby/vendor_ruby/|rubygems-integration/[^/]+/gems/[^/]+/|php/|[^/]+/)"
)
_SOURCE_SUFFIXES = tuple(
    suffix for suffix, name in LANGUAGES.items() if name in ("go", "java", "c", "cpp", "ruby", "php")
)


def read_licences(text: str) -> tuple[str, list[str]]:
    """(licence of the whole, globs of the files that have another which is not permissive), as DEP-5 writes them."""
    licence, other = "", []
    for block in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"(?ms)^(Files|License): *(.*?)(?=^\S|\Z)", block))
        if "Files" in fields and "License" in fields:
            globs, found = fields["Files"].split(), _one_line(fields["License"].split("\n")[0])
            if "*" in globs:
                licence = found
            elif not is_permissive(found):
                other += [glob for glob in globs if not glob.startswith("debian/")]
    return licence, other


def _member(archive: bytes, name: bytes) -> bytes:
    """Of an `ar` archive: 8 bytes of magic, then members with a header of 60 bytes, at even offsets."""
    at = 8
    while at < len(archive):
        size = int(archive[at + 48 : at + 58])
        if archive[at : at + 16].startswith(name):
            return archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise ValueError(f"no {name.decode()} in it")
