"""Runs pytest under a profile function and writes which function of a folder called which, from where, as JSON lines.

    python trace_suite.py FOLDER OUTPUT tests -q

A line is {"path", "span": [line, column, end line, end column], "callee": [path, line, name], "through": n}: the code
at the span made the callee run, directly or through n functions of other packages. Lines count from 1, columns from 0
in bytes; the line of a callee is that of its first decorator, as Python has it. Generators and coroutines count where
they are first run. This file runs in the environment of the package: only the standard library and pytest are used.
"""

import atexit
import dis
import json
import os
import sys
import threading
from pathlib import Path

import pytest

_NO_CALLEES = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_FURTHEST = 4  # functions of other packages between the two
_LATE = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator
_NEW_LOCALS = 0x2  # no class body


def record(folder, output):
    paths = {}  # code -> its path in the folder, or None
    starts = {}  # code of a generator -> where it stands when it is first run
    found = set()
    prefix = os.path.realpath(folder) + os.sep

    def find_path(code):
        path = os.path.realpath(code.co_filename) if not code.co_filename.startswith("<") else ""
        paths[code] = path[len(prefix) :] if path.startswith(prefix) else None
        return paths[code]

    def find_start(code):
        starts[code] = min((at.offset for at in dis.get_instructions(code) if at.opname == "RESUME"), default=0)
        return starts[code]

    def profile(frame, event, _):
        if event != "call":
            return
        code = frame.f_code
        path = paths[code] if code in paths else find_path(code)
        if path is None or code.co_name in _NO_CALLEES or not code.co_flags & _NEW_LOCALS:
            return
        if code.co_flags & _LATE and frame.f_lasti > (starts[code] if code in starts else find_start(code)):
            return
        caller, through = frame.f_back, 0
        while caller is not None and through <= _FURTHEST:
            around = caller.f_code
            if (paths[around] if around in paths else find_path(around)) is not None:
                found.add((around, caller.f_lasti, code, through))
                return
            if "importlib" in around.co_filename:
                return
            caller, through = caller.f_back, through + 1

    def save():
        sys.setprofile(None)
        threading.setprofile(None)
        positions = {}
        rows = set()
        for around, last, code, through in found:
            if around not in positions:
                positions[around] = list(around.co_positions())
            line, end_line, column, end_column = positions[around][last // 2]
            if None not in (line, end_line, column, end_column):
                span = (line, column, end_line, end_column)
                rows.add((paths[around], span, (paths[code], code.co_firstlineno, code.co_name), through))
        with Path(f"{output}.{os.getpid()}").open("w") as file:
            for path, span, callee, through in sorted(rows):
                file.write(json.dumps({"path": path, "span": span, "callee": callee, "through": through}) + "\n")

    class Keeper:
        """A test may take the profile function away."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self):
            sys.setprofile(profile)

    atexit.register(save)
    threading.setprofile(profile)
    sys.setprofile(profile)
    return Keeper()


def main():
    folder, output, *arguments = sys.argv[1:]
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(pytest.main(arguments, plugins=[record(folder, output)]))


main()
