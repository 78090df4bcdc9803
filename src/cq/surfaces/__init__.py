"""Where people and programs meet cq. Surfaces parse arguments, call the workspace and render; they decide nothing.

`surfaces/client.py` is what starts: it imports next to nothing, and where a daemon runs hands it the arguments, the
variables that `source/program` lets other processes have, and the streams themselves, each field behind its length. A
worker of the daemon (`surfaces/daemon.py`) runs the command's own `run` with them, in its main thread, one at a time;
so the bytes are the same by construction and a command need not know. `surfaces/mcp/tools.py` is a table: a tool is a
struct whose fields are the arguments and whose `command` is a command line: every option is one word, `--root` comes
first and only once, and what is asked about follows `--`; the answer is what that command prints as JSON, asked of the
daemon directly where one runs. Cancelling is hanging up, or ending a process. The greeting of an MCP client is answered
before the SDK is imported. What a worker keeps between questions hangs on its reader (`store/warm.py`, `Reader.memory`)
and is forgotten when anything is written to the index; a process that answers one question keeps nothing. What only a
terminal shows is in `render/terminal.py`; `surfaces/printer.py` is the one place where text leaves: to a terminal
everything that would steer it is spelled out, except `ESCAPE` and `RETURN`, which stand for cq's own.

A command raises; only `surfaces/cli` catches. `CqError` is one line `cq: code: message (hint)` and exit code 2; a query
that fails has its places below it. A bug is one line too, with its traceback under `CQ_VERBOSE=1`. A reader that closes
the pipe is no error. Per file, the steps of an extraction (`Steps` in `syntax/extract.py`) each turn a failure into a
problem with a span: it costs the facts of that step. Contents with such a problem are in the table `partial`, and every
answer names their files. A value that cannot be computed for a mistake of ours is unknown (`graph/engine/cells.py`), a
file that cannot be linked for one has no links, and where the reach of a change cannot be found all is linked
(`indexing/link.py`). Each is kept in the table `mistake`, of a value with the functions whose links depend on it; `cq
status`, `cq doctor` and every answer from links tell. A file without links is tried again with every change. Tests are
strict there.
"""
