"""Runs `main.py` of the folder it is given and prints every call from one function of the folder to another, as JSON.

A caller or callee is a path and the line on which its code begins, 0 for a module, and its name. What a generator or a
coroutine does when it is asked is not seen, nor code of classes.
"""

import json
import runpy
import sys

_OWN_SCOPES = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_NEW_LOCALS = 0x2  # no class body
_LATE = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


def trace(root):
    found = set()

    def place(frame):
        """Of the function whose code runs, behind comprehensions; None for what is not of the folder."""
        while frame is not None and frame.f_code.co_name in _OWN_SCOPES:
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(root):
            return None
        code = frame.f_code
        return code.co_filename[len(root) + 1 :], 0 if code.co_name == "<module>" else code.co_firstlineno, code.co_name

    def profile(frame, event, _):
        code = frame.f_code
        is_function = code.co_flags & _NEW_LOCALS and not code.co_flags & _LATE and code.co_name not in _OWN_SCOPES
        if event != "call" or not is_function:
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(root):
            caller = caller.f_back
        callee, source = place(frame), place(caller)
        if callee and source:
            found.add((source, callee))

    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    sys.setprofile(profile)
    try:
        runpy.run_path(f"{root}/main.py")
    finally:
        sys.setprofile(None)
    json.dump(sorted(found), sys.stdout)


trace(sys.argv[1])
