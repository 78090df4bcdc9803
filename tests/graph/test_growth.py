"""Programs in which the ways double at every step: whoever went each of them would never come to an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checks import check_calls

pytestmark = pytest.mark.slow

STEPS = 60


def _each(line: str) -> str:
    """The line for every step; `$` is its number, `$+` the next one."""
    return "".join(line.replace("$+", str(n + 1)).replace("$", str(n)) for n in range(STEPS))


PROGRAMS = {
    "decorators.py": (
        "def option(name):\n    def keep(f):\n        return f\n    return keep\n"
        + _each("@option($)\n")
        + "def main(): ...\nmain()\n#< calls main\n"
    ),
    "decorated.py": (
        "def w0(f):\n    def inner(): return f()\n    return inner\n"
        + _each("@w$\n@w$\ndef w$+(f):\n    @w$\n    def inner(): return f()\n    return inner\n")
        + "w0(w0)\n#< calls w0\n"
    ),
    "values.py": (
        "def g(): ...\ndef pick(a, b): return a or b\nx0 = g\n"
        + _each("x$+ = pick(x$, x$) if x$ else x$\n")
        + f"x{STEPS}()\n#< maybe g\n"
    ),
    "functions.py": (
        "def f0(x): return x\n"
        + _each("def f$+(x): return f$(f$(x))\n")
        + f"f{STEPS}(f0)\n#< calls f{STEPS}\n"
    ),
    "containers.py": (
        "def g(): ...\nx0 = {'a': g}\n" + _each("x$+ = {'a': x$, 'b': [x$, x$]}\n") + "x0['a']()\n#< calls g\n"
    ),
    "classes.py": (
        "class A0:\n    def m(self): ...\n"
        + _each("class L$(A$): ...\nclass R$(A$): ...\nclass A$+(L$, R$): ...\n")
        + f"a = A{STEPS}()\na.m()\n# ^ maybe A0.m\n"
    ),
    "stars.py": (
        "".join(
            f"#- m{n}.py\nfrom m{(n + 1) % STEPS} import *\nfrom m{(n * 5 + 2) % STEPS} import *\ndef f{n}(): ...\n"
            for n in range(STEPS)
        )
        + "#- app.py\nfrom m0 import f30\nf30()\n#< calls m30.py:f30\n"
    ),
    "bases.py": (
        "".join(
            f"#- m{n}.py\nfrom m{(n + 1) % STEPS} import *\nfrom m{(n * 5 + 2) % STEPS} import *\n"
            f"class C{n}:\n    def m(self): ...\n"
            for n in range(STEPS)
        )
        + "#- app.py\nfrom m0 import C30, Missing\nclass L(Missing): ...\nclass K(C30): ...\nk = K()\nk.m()\n"
        "# ^ calls m30.py:C30.m\n"
    ),
    "types.ts": (
        "class C { m() {} }\ntype A0 = C;\n"
        + _each("type A$+ = A$ | [A$, A$];\n")
        + "function f(x: A1) {\n  x.m();\n//  ^ maybe C.m\n}\n"
    ),
    "interfaces.ts": (
        "interface I0 { m(): void }\n"
        + _each("interface L$ extends I$ {}\ninterface R$ extends I$ {}\ninterface I$+ extends L$, R$ {}\n")
        + f"class K implements I{STEPS} {{ m() {{}} }}\nnew K().m();\n//      ^ calls K.m\n"
    ),
    "barrels.ts": (
        "".join(
            f"//- m{n}.ts\nexport * from './m{(n + 1) % STEPS}';\nexport * from './m{(n * 5 + 2) % STEPS}';\n"
            f"export function f{n}() {{}}\n"
            for n in range(STEPS)
        )
        + "//- app.ts\nimport { f30 } from './m0';\nf30();\n//< calls m30.ts:f30\n"
    ),
    "bounds.rs": (
        "trait T0 { fn m(&self); }\n"
        + _each("trait L$: T$ {}\ntrait R$: T$ {}\ntrait T$+: L$ + R$ {}\n")
        + f"fn f<X: T{STEPS}>(x: X) {{\n    x.m();\n//    ^ maybe T0.m\n}}\n"
    ),
    "globs.rs": (
        _each("pub mod m$ { pub use super::m$+::*; pub use super::m0::*; pub fn f$() {} }\n")
        + f"pub mod m{STEPS} {{ pub use super::m0::*; }}\n"
        + "use m0::f30;\nfn main() {\n    f30();\n//  ^^^ calls m30.f30\n}\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_many_ways_take_no_longer_than_one(name: str):
    check_calls(PROGRAMS[name], "main" + Path(name).suffix)
