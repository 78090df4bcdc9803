"""`cq` as its user starts it: asks the daemon where one runs, else does the work itself.

Through the daemon a command costs little more than the start of the interpreter, so this module imports next to
nothing. The daemon is handed the standard streams themselves: what it writes is what the command would have written.
"""

from __future__ import annotations

import os
import sys

from cq import __version__
from cq.opening import read_file

TYPE_CHECKING = False  # of `typing`, which costs more than this module
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Mapping

# These run long, measure themselves or are about the daemon: they are never handed over.
AT_HOME = frozenset({"config", "daemon", "index", "init", "mcp", "watch", "web", "-V", "--version"})
MODES = ("auto", "manual", "off")
MAX_REQUEST = 4 * 1024 * 1024
# What is handed over only to the same code: its version, its place, and the interpreter that runs it.
IDENTITY = f"{__version__} {os.path.dirname(os.path.dirname(__file__))} {sys.version}"  # noqa: PTH120  see above

# What the daemon says, a byte each; after DONE comes the exit status.
WRITING, DONE, REPLACE, REFUSE = b"w", b"x", b"r", b"n"
INTERRUPT = b"i"  # what it is told


def main() -> int:
    try:
        return _run()
    except KeyboardInterrupt:  # before there is a command that could say what it has found
        return 130


def _run() -> int:
    # numpy's matrices are small here: its threads wait for each other longer than they work. On a busy machine with two
    # cores a question with the reranker takes a quarter of the time with one. The daemon is started with this, too.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    argv = sys.argv[1:]
    if argv[:3] == ["completion", "words", "--"] and len(argv) > 4:
        status = _complete(argv[3:])
        if status is not None:
            return status
    before = 2 if argv[:1] == ["--color"] else 1 if argv and argv[0].startswith("--color=") else 0
    if not AT_HOME.intersection(argv[before : before + 1]):
        status = _ask_daemon(argv)
        if status is not None:
            return status
    if "typing_extensions" not in sys.modules:
        # msgspec takes its hints from there where it is installed, which costs a tenth of a start and gives it nothing.
        sys.modules["typing_extensions"] = None  # pyright: ignore[reportArgumentType]
        import msgspec  # noqa: F401  # pyright: ignore[reportUnusedImport]

        del sys.modules["typing_extensions"]
    from cq.surfaces.cli import main as run

    return run(argv)


def _complete(words: list[str]) -> int | None:
    """Offers the names of the index; None for what is no name, or takes more to tell. A shell waits at a key for it, so
    neither the daemon nor the command itself is asked."""
    command, last = words[0], words[-1]
    if not last or not command.isalpha() or command == "help" or last[0] == "-" or words[-2].startswith("--"):
        return None
    from cq.surfaces.names import find_names

    found = find_names(command, last)
    if found is None:
        return None
    try:
        os.write(1, "".join(f"{name}\n" for name in found).encode("utf-8", "surrogateescape"))
    except OSError:
        return 2
    return 0 if found else 1


def find_socket() -> str:
    """In a directory that is the user's alone; "" where there is no daemon: on other systems than Linux."""
    if sys.platform != "linux":
        return ""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    path = f"{base}/cq/daemon/socket"
    return path if path.startswith("/") and len(os.fsencode(path)) < 100 else ""


def find_settings(name: str = "settings.toml", given: Mapping[str, str] = os.environ) -> str:
    """The user's own settings, which no repository decides about."""
    folder = given.get("XDG_CONFIG_HOME") or (given.get("APPDATA") if sys.platform == "win32" else "")
    home = given.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return f"{folder or f'{home}/.config'}/cq/{name}"


def read_mode() -> str:
    """`auto` starts a daemon when one is missing, `manual` uses one that runs, `off` never does."""
    try:
        text = read_file(find_settings(), 4096).decode("utf-8", "replace")
    except (OSError, ValueError):
        return "manual"
    # `cq config` writes it, one line a setting: a parser would cost more than the question.
    return next((mode for mode in MODES if f'daemon = "{mode}"' in text.splitlines()), "manual")


def list_environment(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables a command may see, wherever it runs; see `choose_environment`."""
    from cq.source.program import choose_environment

    return choose_environment(given, _find_keys(given))


def _find_keys(given: Mapping[str, str]) -> list[str]:
    """The variables that hold the keys of hosted models: those of `embed/hosted`, and what the user's file names."""
    names = ["VOYAGE_API_KEY", "OPENAI_API_KEY"]
    try:
        lines = read_file(find_settings("models.toml", given), 65536).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return names
    # A parser would cost more than the question. A variable that is named in another way is not handed over.
    for line in lines:
        key, _, value = line.partition("=")
        value = value.partition("#")[0].strip().strip("\"'")
        if key.strip() == "key_variable" and value.isidentifier():
            names.append(value)
    return names


def pack_request(verb: str, argv: list[str], *, cwd: str = "", pid: int | None = None) -> bytes:
    """Three lists: who asks what and where, the words of the command, the variables it may see. Every list begins with
    how many fields it has, every field and the whole with its length, so that no text can end one and begin another.

    `pid` is of the process whose user waits; 0 where it answers more than one question. OSError where the working
    directory is gone."""
    umask = os.umask(0o77)
    os.umask(umask)
    asker = os.getpid() if pid is None else pid
    head = [IDENTITY, verb, str(asker), str(umask), cwd or os.getcwd()]  # noqa: PTH109
    variables = [word for item in list_environment().items() for word in item]
    body = b"".join(map(_pack_fields, (head, argv, variables)))
    return len(body).to_bytes(4, "big") + body


def _pack_fields(words: list[str]) -> bytes:
    fields = list(map(os.fsencode, words))
    return len(fields).to_bytes(4, "big") + b"".join([len(field).to_bytes(4, "big") + field for field in fields])


def connect(path: str) -> Socket | None:
    """A connection to the daemon of this user, or None."""
    # The module `socket` costs a third of the whole start; what it is made of does as well.
    import _socket

    try:
        folder = os.stat(os.path.dirname(path))  # noqa: PTH116, PTH120
        if folder.st_uid != os.getuid() or folder.st_mode & 0o77:
            return None
        link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        link.connect(path)
    except OSError:
        return None
    return link


def send_request(link: Socket, request: bytes, streams: tuple[int, int, int]) -> bool:
    """With the streams that the command is to have; False where the daemon cannot be told."""
    import _socket

    if len(request) > MAX_REQUEST:
        return False
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in streams)
    try:
        sent = link.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
        if sent < len(request):  # even nothing cannot be sent once the answer is there and the daemon has hung up
            link.sendall(request[sent:])
    except OSError:
        return False
    return True


def spawn_daemon(path: str, options: tuple[str, ...] = ()) -> int:
    """Starts one in the background, in a session of its own; returns its process id."""
    import subprocess

    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
    log = os.open(f"{path}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "cq", "daemon", "run", *options],
            env=list_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, cwd="/",
            start_new_session=True,
        ).pid  # fmt: skip
    finally:
        os.close(log)


def _ask_daemon(argv: list[str]) -> int | None:
    """The exit status, or None where the command is to be done here."""
    path, mode = find_socket(), read_mode()
    if not path or mode == "off":
        return None
    try:
        for stream in (0, 1, 2):
            os.fstat(stream)  # one that the caller closed cannot be handed over, and its number is not ours to take
    except OSError:
        return None
    link = connect(path)
    if link is None:
        if mode == "auto":
            spawn_daemon(path)
        return None
    try:
        return _converse(link, path, argv)
    except KeyboardInterrupt:
        return 130
    finally:
        link.close()


def _converse(link: Socket, path: str, argv: list[str]) -> int | None:
    writing = interrupted = False
    try:
        request = pack_request("run", argv)
    except OSError:  # the working directory is gone: what can be said without one is said here
        return None
    if not send_request(link, request, (0, 1, 2)):
        return None
    while True:
        try:
            said = link.recv(1)
            if said == DONE:
                return ord(link.recv(1))
            if said == WRITING:
                writing = True
            elif said == REPLACE:
                spawn_daemon(path)
                return None
            else:
                break
        except (OSError, TypeError):
            break
        except KeyboardInterrupt:
            if interrupted:
                return 130
            interrupted = True
            try:  # noqa: SIM105  contextlib would cost every start
                link.sendall(INTERRUPT)
            except OSError:
                pass  # it has answered meanwhile; that is what comes next
    if not writing:
        return 130 if interrupted else None
    print("cq: io: the daemon ended before the answer did (ask again)", file=sys.stderr)
    return 2
