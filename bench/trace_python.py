"""Runs `main.py` of the folder it is given and prints every call from one function of the folder to another, as JSON.

A caller or callee is a path and the line on which its code begins, 0 for a module, and its name. Code of classes is no
callee. A generator or a coroutine is called by who makes it, not by who runs it: a decorator of its own sees that.
"""

import ast
import builtins
import functools
import importlib.machinery
import json
import sys
import types

_OWN_SCOPES = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_NEW_LOCALS = 0x2  # no class body
_LATE = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator


def trace(root):
    found = set()
    around = {}  # the code of a comprehension -> the code that it stands in

    def learn(code):
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                if inner.co_name in _OWN_SCOPES:
                    around[inner] = code
                learn(inner)
        return code

    def late(function):
        code = function.__code__
        callee = code.co_filename[len(root) + 1 :], code.co_firstlineno, code.co_name

        @functools.wraps(function)
        def make(*args, **kwargs):
            if source := place(find_caller(sys._getframe(1))):
                found.add((source, callee))
            return function(*args, **kwargs)

        return make

    def find_caller(frame):
        while frame is not None and not frame.f_code.co_filename.startswith(root):
            frame = frame.f_back
        return frame

    def place(frame):
        """Of the function whose code runs, or that holds a comprehension; None for what is not of the folder."""
        code = None if frame is None else frame.f_code
        while code in around:
            code = around[code]
        if code is None or not code.co_filename.startswith(root):
            return None
        return code.co_filename[len(root) + 1 :], 0 if code.co_name == "<module>" else code.co_firstlineno, code.co_name

    def profile(frame, event, _):
        code = frame.f_code
        is_function = code.co_flags & _NEW_LOCALS and not code.co_flags & _LATE and code.co_name not in _OWN_SCOPES
        if event != "call" or not is_function:
            return
        callee, source = place(frame), place(find_caller(frame.f_back))
        if callee and source:
            found.add((source, callee))

    class Loader(importlib.machinery.SourceFileLoader):
        def source_to_code(self, data, path, *, _optimize=-1):
            return learn(compile(_mark(data), path, "exec"))

    builtins._late = late
    hook = importlib.machinery.FileFinder.path_hook((Loader, [".py"]))
    sys.path_hooks.insert(0, lambda path: hook(path) if path.startswith(root) else _refuse(path))
    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__file__ = f"{root}/main.py"
    code = Loader("__main__", main.__file__).get_code("__main__")
    printed, sys.stdout = sys.stdout, sys.stderr
    sys.setprofile(profile)
    try:
        exec(code, main.__dict__)
    finally:
        sys.setprofile(None)
    json.dump(sorted(found), printed)


def _refuse(path):
    raise ImportError(path)


def _mark(source):
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) or (isinstance(node, ast.FunctionDef) and _yields(node)):
            node.decorator_list.append(ast.copy_location(ast.Name("_late", ast.Load()), node))
    return tree


def _yields(function):
    todo = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False


trace(sys.argv[1])
