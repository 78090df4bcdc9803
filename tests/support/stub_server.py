"""A language server that misbehaves on purpose: `python stub_server.py MODE`. Well-behaved in mode `good`.

A hover is answered with the line and character it was asked at, so that an answer joined to the wrong question shows.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from typing import Any

MODE = sys.argv[1]
_lock = threading.Lock()
_numbers = itertools.count(1)
_seen: list[Any] = []  # what the client answered to our requests, and told us


def main() -> None:
    if MODE == "crash":
        sys.stderr.write("no licence for this machine\n")
        raise SystemExit(3)
    if MODE == "slow_start":
        time.sleep(60)
    if MODE == "family":  # a child in the same group that would go on holding the streams
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if MODE == "chatty":
        sys.stderr.write("x" * 1_000_000 + "\nthe end of it\n")
    asked: list[Any] = []
    while (message := read()) is not None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            _seen.append(message)
        elif method == "initialize":
            answer(number, {"capabilities": CAPABILITIES, "serverInfo": {"name": "stub", "version": "1"}})
            if MODE == "deaf":
                time.sleep(600)
        elif method == "initialized":
            start()
        elif method == "shutdown":
            answer(number, None)
        elif method == "exit":
            return
        elif number is None:
            _seen.append(message)
            if MODE == "pushes" and method in ("textDocument/didOpen", "textDocument/didChange"):
                document = message["params"]["textDocument"]
                push(document["uri"], document["version"])
            if MODE == "late" and method == "$/cancelRequest":
                answer(message["params"]["id"], {"contents": "too late"})
        else:
            asked.append(number)
            respond(number, method, message["params"], len(asked))


def respond(number: Any, method: str, params: Any, count: int) -> None:
    if method != "textDocument/hover":
        result = result_of(number, method, params)
        if result is not NotImplemented:
            answer(number, result)
        return
    position = params["position"]
    text = {"contents": f"{position['line']}:{position['character']}"}
    if MODE == "silent" or (MODE == "late" and count == 1) or (MODE == "hangs_later" and count > 2):
        return
    if MODE == "dies":
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": text})
        raw(f"Content-Length: {len(body)}\r\n\r\n{body[:10]}".encode())
        sys.stdout.flush()
        raise SystemExit(7)
    if MODE == "huge" and count == 1:
        text = {"contents": "x" * 3_000_000}
    if MODE == "garbage":
        raw(b"warning: something\n\n\r\nContent-Length: nonsense\r\n\r\n")
        raw(b"Content-Length: 12\r\n\r\n{not json at}")
        raw(b"Content-Length: 4\r\nX-Header: y\r\n\r\nnull")
        raw(b"Content-Length: 6\r\n\r\n[1, 2]" + b"\xff\xfe\x00" * 100)
        deep = b"[" * 100_000
        raw(b"Content-Length: %d\r\n\r\n%b" % (len(deep), deep))
    if MODE == "wrong_ids":
        for other in (number + 1000, str(number), None, -number, 10**30, True, [number]):
            send({"jsonrpc": "2.0", "id": other, "result": {"contents": "wrong"}})
    if MODE == "shuffled":
        # Answers in another order than the questions.
        threading.Timer(0.001 * (7 - count % 7), answer, (number, text)).start()
        return
    if MODE == "odd":
        text = ODD[count % len(ODD)]
    answer(number, text)
    if MODE == "wrong_ids":
        answer(number, {"contents": "twice"})


def result_of(number: Any, method: str, params: Any) -> Any:
    if method == "textDocument/definition":
        position = params["position"]
        return {"uri": params["textDocument"]["uri"], "range": {"start": position, "end": position}}
    if method == "textDocument/diagnostic":
        return {"kind": "full", "items": []}
    if method == "stub/seen":
        return _seen
    if method == "textDocument/references":
        threading.Timer(1.0, answer, (number, [])).start()
        return NotImplemented
    return None


def start() -> None:
    if MODE == "asks":
        for method, params in REQUESTS:
            send({"jsonrpc": "2.0", "id": f"s{next(_numbers)}", "method": method, "params": params})
    if MODE == "flood":
        threading.Thread(target=flood, daemon=True).start()


def push(uri: str, version: int) -> None:
    """First what is stale, then what is true."""
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 4}}
    for number in (version - 1, version):
        rows = [{"range": span, "message": f"version {number}", "severity": 2}]
        params = {"uri": uri, "version": number, "diagnostics": rows}
        send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})


def flood() -> None:
    for number in itertools.count():
        uri = f"file:///nowhere/{number}.py"
        send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": []}})
        send({"jsonrpc": "2.0", "method": f"$/unknown{number}", "params": {"token": number}})
        begin = {"token": number, "value": {"kind": "begin", "title": "work"}}
        send({"jsonrpc": "2.0", "method": "$/progress", "params": begin})


def read() -> Any:
    length = 0
    while line := sys.stdin.buffer.readline():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        elif not line.strip():
            return json.loads(sys.stdin.buffer.read(length))
    return None


def answer(number: Any, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": number, "result": result})


def send(message: Any) -> None:
    body = json.dumps(message).encode()
    raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def raw(data: bytes) -> None:
    with _lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


CAPABILITIES = {
    "hoverProvider": {},
    "definition_provider": True,
    "referencesProvider": True if MODE == "heavy" else None,
    "documentSymbolProvider": False,
    "positionEncoding": {"utf-32": "utf-32"}.get(sys.argv[2] if len(sys.argv) > 2 else "", "utf-16"),
}
REQUESTS = [
    ("workspace/configuration", {"items": [{"section": "python.analysis"}, {"section": "nothing"}, {}]}),
    ("workspace/workspaceFolders", None),
    ("window/workDoneProgress/create", {"token": 1}),
    ("workspace/applyEdit", {"edit": {}}),
    (
        "client/registerCapability",
        {"registrations": [{"id": "1", "method": "textDocument/references", "registerOptions": {}}]},
    ),
    ("stub/unknown", {}),
]
ODD: list[Any] = [
    None, [], {}, 7, "text", {"contents": None}, {"contents": [[[]]]}, {"contents": {"value": 1}}, [{"contents": 1}],
    {"contents": "x", "range": {"start": {"line": -1, "character": 10**12}, "end": None}},
]  # fmt: skip

if __name__ == "__main__":
    main()
