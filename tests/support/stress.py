"""What breaks an index, as often as one likes: kills, damage, edits, writers beside readers. Tests run a few rounds;
`python -m tests.support.stress kills 100` runs as many as are asked for, over any source.

Every check compares with an index made afresh: what is exported must be the same bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cq.store import database
from cq.store.head import find_data
from cq.store.read import Reader
from cq.workspace import Workspace

_TIME = re.compile(rb'"generatedAt": "[^"]*"|"timingsMs": \{[^}]*\}')
_OF_VECTORS = ("dense_vectors", "index_state", "manifest")  # they tell of vectors
SECONDS = 120  # after which a command that hangs is a failure

SOURCES = {
    "base.py": "class Base:\n    def close(self): ...\nclass Other:\n    def close(self): ...\ndef known(): ...\n",
    "app.py": 'from base import known\ndef run(thing):\n    "ä"; thing.close()\n    known()\n',
    "web/list.ts": "export class List<T> {\n  add(x: T) { return push(x) }\n}\nfunction push<T>(x: T) { return x }\n",
    "src/lib.rs": "pub fn twice(x: u32) -> u32 { once(x) + once(x) }\nfn once(x: u32) -> u32 { x }\n",
    "README.md": "# Words\n\n```python\nprint(1)\n```\n",
}


def make_root(root: Path, size: int = 12, seed: int = 0) -> Path:
    """A small repository in several languages, with something in it that an index from elsewhere can settle."""
    rng = random.Random(seed)
    files = dict(SOURCES)
    for number in range(size):
        lines = [f"from pkg.m{other} import f{other}" for other in sorted(rng.sample(range(size), 2))]
        lines += [f"def f{number}(x):\n    return x and f{rng.randrange(size)}(x)", f"class C{number}:"]
        lines += [f"    def m{each}(self): return f{number}({each})" for each in range(rng.randrange(1, 9))]
        files[f"pkg/m{number}.py"] = "\n".join(lines) + "\n"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def write_scip(path: Path) -> Path:
    """What a compiler would say of `app.py`: that `thing` is an Other."""
    from tests.support.scip import new_index

    index = new_index()
    base = index.documents.add(relative_path="base.py")
    for line, start, end, name in ((0, 6, 10, "Base#"), (1, 8, 13, "Base#close()."), (2, 6, 11, "Other#"),
                                   (3, 8, 13, "Other#close().")):  # fmt: skip
        base.occurrences.add(range=[line, start, end], symbol=f"x . . . base/{name}", symbol_roles=1)
    app = index.documents.add(relative_path="app.py")
    app.occurrences.add(range=[1, 4, 7], symbol="x . . . app/run().", symbol_roles=1)
    app.occurrences.add(range=[2, 15, 20], symbol="x . . . base/Other#close().")
    path.write_bytes(index.SerializeToString())
    return path


class Bench:
    """One repository, the index under attack, and what is needed to compare it."""

    def __init__(self, folder: Path, root: Path, seed: int = 0, *, scip: bool = True) -> None:
        self.root, self.folder, self.rng = root, folder, random.Random(seed)
        folder.mkdir(parents=True, exist_ok=True)
        self.cache, self.scip = folder / "cache", write_scip(folder / "index.scip") if scip else None
        self.vectors = False
        self._fresh: tuple[str, Any] | None = None

    def open(self, cache: Path | None = None, **options: Any) -> Workspace:
        return Workspace.open(self.root, index_dir=cache or self.cache, **options)

    def prepare(self) -> None:
        with self.open() as workspace:
            workspace.refresh()
            if self.scip is not None:
                workspace.ingest(self.scip)

    @property
    def index(self) -> Path:
        return next(self.cache.glob("*/index.db"))

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "CQ_INDEX_DIR": os.fspath(self.cache), "XDG_CACHE_HOME": f"{self.folder}/xdg",
                       "XDG_RUNTIME_DIR": f"{self.folder}/run", **options.pop("env", {})}  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "cq", *arguments, "--root", os.fspath(self.root)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            start_new_session=True, **options,
        )  # fmt: skip

    def run(self, *arguments: str, **options: Any) -> tuple[int, str, str]:
        with self.start(*arguments, **options) as child:
            out, err = child.communicate(timeout=SECONDS)
        return child.returncode, out.decode(), err.decode()

    def ask(self, *question: str) -> Any:
        """What a command answers, without what may differ: how long it took, and that the index was made anew."""
        code, out, err = self.run(*question, "--format", "json")
        assert "internal" not in err and "Traceback" not in err, (question, err)  # noqa: PT018
        assert code in (0, 1), (question, err)
        answer = json.loads(out)
        if "sections" not in answer:
            return code
        return code, {
            name: value for name, value in answer.items() if name not in ("run", "degraded", "artifacts", "insight")
        }

    def export(self, cache: Path | None = None) -> dict[str, str]:
        """Digests of every exported file; vectors are a cache beside it, and in it where they are asked for."""
        vectors = self.vectors
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            with self.open(cache) as workspace:
                if vectors:
                    workspace.embed()
                workspace.export(out)
                assert not workspace.index.last or not workspace.index.last.busy, "somebody is writing"
            if os.environ.get("STRESS"):
                shutil.rmtree(self.folder / f"seen-{bool(cache)}", ignore_errors=True)
                shutil.copytree(out, self.folder / f"seen-{bool(cache)}")
            return {
                path.relative_to(out).as_posix(): hashlib.sha1(_TIME.sub(b"", path.read_bytes())).hexdigest()
                for path in sorted(Path(out).rglob("*"))
                if path.is_file() and (vectors or not path.name.startswith(_OF_VECTORS))
            }

    def fresh(self) -> dict[str, str]:
        """The export of an index made afresh, and told the same."""
        state = hashlib.sha1()
        for path in sorted(self.root.rglob("*")):
            if path.is_file() and (".git" not in path.parts or path.name == "exclude"):
                state.update(f"{path}\0".encode("utf-8", "surrogateescape") + path.read_bytes())
        if self._fresh is None or self._fresh[0] != state.hexdigest():
            with tempfile.TemporaryDirectory(dir=self.folder) as cache:
                with self.open(Path(cache)) as workspace:
                    workspace.refresh()
                    if self.scip is not None:
                        workspace.ingest(self.scip)
                self._fresh = state.hexdigest(), self.export(Path(cache))
        return self._fresh[1]

    def evidence(self) -> list[tuple[Any, ...]]:
        """Everything ingested, as questions find it."""
        with contextlib.closing(database.connect(self.index)) as connection:
            tree = Reader(connection, os.fspath(self.root)).tree()
            assert tree is not None
            rows = connection.execute("SELECT * FROM evidence WHERE tree=?", (tree.id,)).fetchall()
            return sorted(
                rows + connection.execute("SELECT * FROM asked WHERE tree=?", (tree.id,)).fetchall(), key=repr
            )

    def problems(self) -> list[tuple[str, str]]:
        """(path, code) of what was not understood."""
        with contextlib.closing(Reader(database.connect(self.index), os.fspath(self.root))) as reader, reader:
            tree = reader.tree()
            return [
                (file.path, problem.code)
                for file in (reader.files(tree.id) if tree else ())
                for document in reader.documents(file.content)
                for problem in document.problems
            ]

    def check(self) -> None:
        """The next command answers right, and exports what a fresh index does."""
        found, expected = self.export(), self.fresh()
        if found != expected:
            names = [name for name in {*found, *expected} if found.get(name) != expected.get(name)]
            raise AssertionError(f"exports differ: {sorted(names)}; problems: {self.problems()}")

    def edit(self) -> None:
        """One file says something else; those that evidence is about stay as they are."""
        path = self.rng.choice(sorted(self.root.glob("pkg/*.py")))
        with path.open("a", encoding="utf-8") as file:
            file.write(f"def g{self.rng.randrange(10**6)}(): return f1(2)\n")


# -- kills -----------------------------------------------------------------------------------------------------

COMMANDS: dict[str, tuple[str, ...]] = {
    "index": ("index",),
    "full": ("index", "--full"),
    "ingest": ("ingest", "scip", "SCIP"),
    "export": ("export", "--out", "OUT"),
    "watch": ("watch",),
    "embed": ("index", "--embed"),
}


def kill(bench: Bench, name: str, rounds: int, *, full_time: float = 0.0) -> int:
    """Kills the command at a random point so often, and checks after each; how many were killed at work."""
    arguments = [str(bench.scip) if each == "SCIP" else str(bench.folder / "out") if each == "OUT" else each
                 for each in COMMANDS[name]]  # fmt: skip
    bench.vectors = name == "embed"
    bench.prepare()
    before = bench.evidence() if bench.scip is not None else []
    if not full_time:
        bench.edit()
        started = time.monotonic()
        if name != "watch":
            code, _, err = bench.run(*arguments)
            assert code == 0, err
        full_time = time.monotonic() - started if name != "watch" else 2.0
    killed = 0
    for _ in range(rounds):
        bench.edit()
        with bench.start(*arguments) as child:
            if name == "watch":
                time.sleep(0.5)
                bench.edit()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(bench.rng.uniform(0.1, full_time * 1.05))
            if child.poll() is None:
                killed += 1
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        bench.check()
        assert not bench.scip or bench.evidence() == before, "what was ingested is lost"
    return killed


# -- damage ----------------------------------------------------------------------------------------------------


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _random_bytes(rng: random.Random, path: Path) -> None:
    size = path.stat().st_size
    for _ in range(60):
        _overwrite(path, rng.randrange(size), rng.randbytes(1))


def _one_bit(rng: random.Random, path: Path) -> None:
    at = rng.randrange(path.stat().st_size)
    _overwrite(path, at, bytes([path.read_bytes()[at] ^ 1 << rng.randrange(8)]))


def _truncate(rng: random.Random, path: Path) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def _zeros(rng: random.Random, path: Path) -> None:
    size = path.stat().st_size
    at = rng.randrange(size)
    _overwrite(path, at, bytes(min(rng.choice([16, 512, 8192, 65536]), size - at)))


def _swap_pages(rng: random.Random, path: Path) -> None:
    data, pages = path.read_bytes(), path.stat().st_size // 8192
    if pages > 1:
        one, two = rng.sample(range(pages), 2)
        for at, other in ((one, two), (two, one)):
            _overwrite(path, at * 8192, data[other * 8192 : (other + 1) * 8192])


def _append(rng: random.Random, path: Path) -> None:
    with path.open("ab") as file:
        file.write(rng.randbytes(rng.choice([1, 100, 8192])))


def _garbage(rng: random.Random, path: Path) -> None:
    path.write_bytes(rng.randbytes(path.stat().st_size // 2))


def _remove(_: random.Random, path: Path) -> None:
    path.unlink()


DAMAGE: tuple[Callable[[random.Random, Path], None], ...] = (
    _random_bytes, _one_bit, _truncate, _zeros, _swap_pages, _append, _garbage, _remove,
)  # fmt: skip


def damage(bench: Bench, rounds: int, *, same_time: bool = False) -> dict[str, int]:
    """Damages the index so often, each time asking what the intact one answers; how often each way."""
    bench.prepare()
    questions = [
        ("calls", "Other.close"), ("search", "thing"), ("q", "entity=method"), ("neighborhood", "known"), ("status",),
        ("graph", "f1"), ("index",), ("validate", "--strict"), ("references", "once"), ("find", "push"),
    ]  # fmt: skip
    before, done = bench.evidence(), dict[str, int]()
    for number in range(rounds):
        if number % 3 == 0:
            _leave_log(bench)
        question = bench.rng.choice(questions)
        expected = bench.ask(*question)
        data = find_data(bench.index)
        log = Path(f"{data}-wal")
        others = [path for path in (bench.index, log, *bench.index.parent.glob("*.log")) if path.exists()]
        path, how = (
            bench.rng.choice([data] * 5 + [path for path in others if path.stat().st_size]),
            bench.rng.choice(DAMAGE),
        )
        if path.suffix == ".log" and how is _remove:
            how = _one_bit  # who removes it means to
        status = path.stat()
        how(bench.rng, path)
        if same_time and path.exists():
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        what = f"{how.__name__[1:]} of {re.sub('-[0-9]+', '', path.name)}"
        if os.environ.get("STRESS"):
            sys.stderr.write(f"{number} {what} {question}\n")
        found = bench.ask(*question)
        assert found == expected, (what, question)
        bench.check()
        assert bench.evidence() == before, what
        # Damage that no question has met must not add up: where both copies are damaged at once, both are lost.
        bench.ask("index")
        done[what] = done.get(what, 0) + 1
    return done


def _leave_log(bench: Bench) -> None:
    """An index whose log could not be emptied, because somebody was reading."""
    with contextlib.closing(database.connect(bench.index)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM file").fetchone()
        for _ in range(2):
            bench.edit()
            with bench.open() as workspace:
                workspace.refresh()


# -- edits -----------------------------------------------------------------------------------------------------


def _git(root: Path, *arguments: str) -> str:
    setting = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *setting, *arguments], cwd=root, capture_output=True, check=True)
    return done.stdout.decode()


def edit(bench: Bench, rounds: int, every: int) -> int:
    """Random edits to the root, each taken up; every so many, the export is compared. How often it was."""
    root, rng, checks = bench.root, bench.rng, 0
    if not (root / ".git").exists():
        _git(root, "init", "-q", "-b", "main")
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "--allow-empty", "-m", "0")
    bench.prepare()
    for number in range(1, rounds + 1):
        rng.choice(EDITS)(bench, number)
        with bench.open() as workspace:
            assert not workspace.refresh().busy
        if number % every == 0:
            bench.check()
            checks += 1
    return checks


def _pick(bench: Bench) -> Path:
    # Half a cq.toml is an error that is said.
    files = [path for path in bench.root.rglob("*") if path.is_file() and not {".git", "cq.toml"} & {*path.parts}]
    return bench.rng.choice(sorted(files))


def _rename(bench: Bench, number: int) -> None:
    path = _pick(bench)
    path.rename(path.with_name(f"{path.stem[:40]}_{number}{path.suffix}"))


def _move(bench: Bench, number: int) -> None:
    path, folder = _pick(bench), bench.rng.choice([_pick(bench).parent, bench.root / f"dir{number % 7}"])
    folder.mkdir(exist_ok=True)
    if not (folder / path.name).exists():
        path.rename(folder / path.name)


def _move_folder(bench: Bench, number: int) -> None:
    folder = _pick(bench).parent
    if folder != bench.root:
        folder.rename(folder.with_name(f"{folder.name[:20]}{number}"))


def _delete(bench: Bench, _: int) -> None:
    _pick(bench).unlink()


def _copy(bench: Bench, number: int) -> None:
    path = _pick(bench)
    shutil.copyfile(path, path.with_name(f"copy_{number}{path.suffix}"))


def _half_typed(bench: Bench, _: int) -> None:
    """A file ends in the middle of something, or has it in the middle of a line."""
    ends = (b"def half(", b"class Half:", b"\nx = {", b'"""', b"import ", b"function f() {", b"<div", b"def f():")
    path = _pick(bench)
    data = path.read_bytes()
    at = bench.rng.randrange(len(data) + 1)
    path.write_bytes(data[:at] + bench.rng.choice(ends) + (data[at:] if bench.rng.random() < 0.5 else b""))


def _add_code(bench: Bench, number: int) -> None:
    path, other = _pick(bench), _pick(bench).stem
    text = f"\nfunction added{number}() {{ {other}() }}\n"
    if path.suffix == ".py":
        text = f"\nfrom {other} import *\ndef added_{number}(x):\n    return added_{number - 1}(x)\n"
    with path.open("ab") as file:
        file.write(text.encode())


def _encode(bench: Bench, _: int) -> None:
    path, encoding = _pick(bench), bench.rng.choice(["latin-1", "utf-16", "utf-8-sig", "cp1252"])
    path.write_bytes(path.read_bytes().decode("utf-8", "replace").replace("e", "é", 3).encode(encoding, "replace"))


def _change_newlines(bench: Bench, _: int) -> None:
    path = _pick(bench)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


def _switch_branch(bench: Bench, number: int) -> None:
    """All that was done is a commit; then another branch, a new one or one that was there before."""
    _git(bench.root, "add", "-A")
    _git(bench.root, "commit", "-q", "--allow-empty", "-m", str(number))
    branches = _git(bench.root, "branch", "--format=%(refname:short)").split()
    if len(branches) < 4 and bench.rng.random() < 0.5:
        _git(bench.root, "checkout", "-q", "-b", f"b{number}", f"HEAD~{bench.rng.randrange(2)}")
    else:
        _git(bench.root, "checkout", "-q", bench.rng.choice(branches))


def _edit_rules(bench: Bench, number: int) -> None:
    """What is left out changes: where it stands, what it says, or that it is there."""
    files = (".gitignore", ".ignore", ".cqignore", ".git/info/exclude", "cq.toml", f"{_pick(bench).parent}/.gitignore")
    path, left_out = bench.root / bench.rng.choice(files), _pick(bench).relative_to(bench.root).as_posix()
    if path.exists() and bench.rng.random() < 0.5:
        path.unlink()
    elif path.suffix == ".toml":
        path.write_text(f"[index]\nexclude = [{json.dumps(left_out)}]\n")
    else:
        path.write_text(bench.rng.choice([f"/{left_out}\n", f"*_{number % 10}*\n", "*\n!*.py\n!*/\n", ""]))


EDITS: tuple[Callable[[Bench, int], None], ...] = (
    _rename, _move, _move_folder, _delete, _copy, _half_typed, _half_typed, _add_code, _add_code, _encode,
    _change_newlines, _switch_branch, _edit_rules,
)  # fmt: skip


# -- readers beside writers ------------------------------------------------------------------------------------


def race(bench: Bench, seconds: float, readers: int = 8) -> dict[str, int]:
    """Two writers, one of which builds anew again and again, readers, and files that change: how often each did what
    it does. Fails for any error, and for an answer that is older than its question and does not say so."""
    bench.prepare()
    news = bench.root / "news.py"
    news.write_text("def news_0(): ...\n")
    with bench.open() as workspace:
        workspace.refresh()
    until, counts = time.monotonic() + seconds, {"full": 0, "index": 0, "news": 0, "answers": 0, "marked": 0}
    errors: list[str] = []

    def write(name: str, *arguments: str) -> None:
        while time.monotonic() < until and not errors:
            code, _, err = bench.run("index", *arguments)
            counts[name] += 1
            if code:
                errors.append(f"{name}: {err}")

    def change() -> None:
        while time.monotonic() < until:
            counts["news"] += 1
            draft = bench.folder / "news"
            draft.write_text(f"def news_{counts['news']}(): ...\n")
            draft.replace(news)
            time.sleep(0.05)

    def ask() -> None:
        command = [sys.executable, "-m", "tests.support.stress", "reader", str(seconds), "--root", str(bench.root),
                   "--folder", str(bench.cache)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + SECONDS, check=False)
        if done.returncode:
            errors.append(done.stderr[-1500:])
            return
        for name, count in json.loads(done.stdout).items():
            counts[name] += count

    threads = [threading.Thread(target=write, args=("full", "--full")), threading.Thread(target=write, args=("index",))]
    threads += [threading.Thread(target=change), *(threading.Thread(target=ask) for _ in range(readers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    bench.check()
    return counts


def read_again_and_again(root: Path, cache: Path, seconds: float) -> dict[str, int]:
    """What one reader of `race` does, each time as a new process would."""
    until, counts = time.monotonic() + seconds, {"answers": 0, "marked": 0}
    while time.monotonic() < until:
        before = _read_news(root)
        with Workspace.open(root, index_dir=cache) as workspace:
            answer = workspace.search("def news_")
            marked = any(event.category == "busy" for event in answer.degraded)
        texts = [str(finding) for section in answer.sections for finding in section.findings]
        found = [int(number) for text in texts for number in re.findall(r"news_(\d+)", text)]
        if not found or (max(found) < before and not marked):
            raise AssertionError(f"news_{before} was there before, and the answer has {texts}; {answer.degraded}")
        counts["answers"] += 1
        counts["marked"] += marked
    return counts


def _read_news(root: Path) -> int:
    return int(re.findall(r"\d+", (root / "news.py").read_text())[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=(*COMMANDS, "kills", "damage", "edits", "race", "reader"))
    parser.add_argument("rounds", type=float, help="or seconds")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--root", type=Path, default=None, help="a source tree, of which a copy is taken")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    what, rounds = given.what, int(given.rounds)
    if what == "reader":
        sys.stdout.write(json.dumps(read_again_and_again(given.root, given.folder, given.rounds)))
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="stress-"))
    for command in COMMANDS if what == "kills" else [what]:
        root = folder / command / "repo"
        if given.root is not None:
            shutil.copytree(given.root, root)
        bench = Bench(folder / command, root if given.root else make_root(root), given.seed, scip=given.root is None)
        done: Any
        if what == "damage":
            done = damage(bench, rounds)
        elif what == "race":
            done = race(bench, given.rounds)
        elif what == "edits":
            done = f"{edit(bench, rounds, given.every)} times equal to an index made afresh"
        else:
            done = f"{kill(bench, command, rounds)} of {rounds} killed at work"
        sys.stdout.write(f"{command}: {done}\n")
        sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
