"""Runs pytest, watches it and writes which function of a folder called which, from where, as JSON lines.

    python trace_suite.py FOLDER OUTPUT tests -q

A line is {"path", "span": [line, column, end line, end column], "callee": [path, line, name], "through": n}: the code
at the span made the callee run, directly or through n functions of other packages. Lines count from 1, columns from 0
in bytes; the line of a callee is that of its first decorator, as Python has it. Generators and coroutines count where
they are made, and where Python has no sys.monitoring (before 3.12) where they are first run. What ran through a test or
through code that was made while running (a template) is no call of the package. A callee of the path "" is a function
from elsewhere, with nothing but a name. This file runs in the environment of the package: only the standard library and
pytest are used.
"""

import atexit
import dis
import json
import os
import sys
import threading
import types
from pathlib import Path

import pytest

_NO_CALLEES = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_FURTHEST = 4  # functions of other packages between the two
_LATE = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator
_NEW_LOCALS = 0x2  # no class body
_HAS_MONITORING = hasattr(sys, "monitoring")
_TOOL = 4
_NATIVE = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType)


class Recorder:
    def __init__(self, folder, output):
        self.output = output
        self.paths = {}  # code -> its path in the folder, or None
        self.starts = {}  # code of a generator -> where it stands when it is first run
        self.libraries = {}  # code -> whether it is of a library
        self.found = set()
        self.foreign = set()  # what the folder calls that is not of it
        self.made = set()  # generators that the folder is seen to make
        self.prefix = os.path.realpath(folder) + os.sep
        self.own = os.path.realpath(Path.cwd()) + os.sep  # the repository, with its tests

    def find_path(self, code):
        path = self.paths.get(code, "")
        if path == "":
            name = os.path.realpath(code.co_filename) if not code.co_filename.startswith("<") else ""
            path = self.paths[code] = name[len(self.prefix) :] if name.startswith(self.prefix) else None
        return path

    def is_library(self, code):
        if code not in self.libraries:
            name = code.co_filename
            is_file = name.endswith(".py") and not os.path.realpath(name).startswith(self.own)
            self.libraries[code] = is_file or name.startswith("<frozen ")
        return self.libraries[code]

    def is_callee(self, code):
        return code.co_name not in _NO_CALLEES and code.co_flags & _NEW_LOCALS and self.find_path(code) is not None

    def note(self, code, caller):
        """A function of the folder begins; `caller` is the frame behind its own."""
        through = 0
        while caller is not None and through <= _FURTHEST:
            around = caller.f_code
            if self.find_path(around) is not None:
                self.found.add((around, caller.f_lasti, code, through))
                return
            if "importlib" in around.co_filename or not self.is_library(around):
                return
            caller, through = caller.f_back, through + 1

    def profile(self, frame, event, _):
        """Where Python has no sys.monitoring: who makes a generator is not seen, but who runs it first."""
        code = frame.f_code
        if event == "call" and self.is_callee(code):
            if code.co_flags & _LATE:
                if code not in self.starts:
                    resumes = (at.offset for at in dis.get_instructions(code) if at.opname == "RESUME")
                    self.starts[code] = min(resumes, default=0)
                if frame.f_lasti > self.starts[code]:
                    return
            self.note(code, frame.f_back)

    def start(self, code, _):
        if not self.is_callee(code):
            caller = sys._getframe(1).f_back
            if code.co_flags & _NEW_LOCALS and caller is not None and self.find_path(caller.f_code) is not None:
                self.foreign.add((caller.f_code, caller.f_lasti, code.co_name))
            if self.find_path(code) is None:
                return
        else:
            self.note(code, sys._getframe(1).f_back)
        if code not in self.starts:
            self.starts[code] = 0
            sys.monitoring.set_local_events(_TOOL, code, sys.monitoring.events.CALL)

    def call(self, code, offset, called, _):
        function = getattr(called, "__func__", called) if type(called) is types.MethodType else called
        if type(function) is types.FunctionType:
            inner = function.__code__
            if inner.co_flags & _LATE and self.is_callee(inner):
                self.made.add((code, offset, inner))
        elif type(function) in _NATIVE:
            self.foreign.add((code, offset, function.__name__))

    def save(self):
        if _HAS_MONITORING:
            sys.monitoring.set_events(_TOOL, 0)
        else:
            sys.setprofile(None)
            threading.setprofile(None)
        positions = {}
        rows = set()
        made = {code for _, _, code in self.made}
        for around, last, callee, through in (
            *(
                (around, last, self.name(code), n)
                for around, last, code, n in self.found
                # A generator that is seen to be made somewhere is called there, not where it is first run.
                if code not in made
            ),
            *((around, last, self.name(code), 0) for around, last, code in self.made),
            *((around, last, ("", 0, name), 0) for around, last, name in self.foreign),
        ):
            if around not in positions:
                positions[around] = list(around.co_positions())
            line, end_line, column, end_column = positions[around][last // 2]
            if None not in (line, end_line, column, end_column):
                rows.add((self.paths[around], (line, column, end_line, end_column), callee, through))
        with Path(f"{self.output}.{os.getpid()}").open("w") as file:
            for path, span, callee, through in sorted(rows):
                file.write(json.dumps({"path": path, "span": span, "callee": callee, "through": through}) + "\n")

    def name(self, code):
        return self.paths[code], code.co_firstlineno, code.co_name

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self):
        """A test may take the profile function away."""
        if not _HAS_MONITORING:
            sys.setprofile(self.profile)

    def begin(self):
        atexit.register(self.save)
        if _HAS_MONITORING:
            events = sys.monitoring.events
            sys.monitoring.use_tool_id(_TOOL, "cq traces")
            sys.monitoring.register_callback(_TOOL, events.PY_START, self.start)
            sys.monitoring.register_callback(_TOOL, events.CALL, self.call)
            sys.monitoring.set_events(_TOOL, events.PY_START)
        else:
            threading.setprofile(self.profile)
            sys.setprofile(self.profile)
        return self


def main():
    folder, output, *arguments = sys.argv[1:]
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(pytest.main(arguments, plugins=[Recorder(folder, output).begin()]))


main()
