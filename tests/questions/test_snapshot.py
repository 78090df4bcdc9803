"""Snapshots: a target in full, in its headers, with what it uses of its file and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import Workspace
from cq.questions.find import FindOptions
from tests.support.find import check_random_snapshots, check_snapshot

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

SERVICE = """
    //- src/auth/tokenService.ts
    import jwt from 'jsonwebtoken';
    import fs from 'fs';
    import { JwtPayload } from '../models/auth';
    import { RefreshTokenStore } from './refreshStore';

    const TOKEN_EXPIRY = 3600;
    const OTHER = 1;

    export class TokenService extends BaseValidator {
      private secret: string;
      private unused: number;
      private store: RefreshTokenStore;

      async validateToken(token: string): Promise<JwtPayload | null> {
        try {
          return jwt.verify(token, this.secret, TOKEN_EXPIRY) as JwtPayload;
        } catch {
          return null;
        }
      }

      sibling() {
        return fs;
      }

      async refreshToken(token: string): Promise<string> {
        const payload = await this.validateToken(token);
        return this.store.sign(payload);
      }
    }
    """


def test_a_method_with_what_it_uses(tmp_path: Path):
    check_snapshot(
        tmp_path,
        SERVICE,
        "TokenService.validateToken",
        """
import jwt from 'jsonwebtoken';
import { JwtPayload } from '../models/auth';

const TOKEN_EXPIRY = 3600;

export class TokenService extends BaseValidator {
  private secret: string;

  async validateToken(token: string): Promise<JwtPayload | null> {
    try {
      return jwt.verify(token, this.secret, TOKEN_EXPIRY) as JwtPayload;
    } catch {
      return null;
    }
  }
}
""",
    )


def test_a_field_brings_the_import_of_its_type_and_a_method_its_header(tmp_path: Path):
    check_snapshot(
        tmp_path,
        SERVICE,
        "TokenService.refreshToken",
        """
import { RefreshTokenStore } from './refreshStore';

export class TokenService extends BaseValidator {
  private store: RefreshTokenStore;

  async validateToken(token: string): Promise<JwtPayload | null> { /* ... */ }

  async refreshToken(token: string): Promise<string> {
    const payload = await this.validateToken(token);
    return this.store.sign(payload);
  }
}
""",
    )


def test_python_headers_fields_and_only_the_lines_of_an_import_that_are_used(tmp_path: Path):
    check_snapshot(
        tmp_path,
        """
        #- app.py
        from typing import (
            Any,
            Iterator,
        )
        import os

        LIMIT: Any = 3

        class Reader(Base):
            '''Reads.'''

            kind = "r"

            def __init__(self, path):
                self.path = path
                if path:
                    self.mode = "x"

            def helper(self):
                return 1

            def read(self) -> Iterator[str]:
                return self.helper() + LIMIT + self.path + self.mode
        """,
        "Reader.read",
        """
from typing import (
    Any,
    Iterator,
)

LIMIT: Any = 3

class Reader(Base):
    def __init__(self, path):
        self.path = path
        if path:
            self.mode = "x"

    def helper(self):
        ...

    def read(self) -> Iterator[str]:
        return self.helper() + LIMIT + self.path + self.mode
""",
    )


def test_a_function_inside_a_function_with_what_it_closes_over(tmp_path: Path):
    check_snapshot(
        tmp_path,
        """
        #- app.py
        import a, b
        if TYPE_CHECKING:
            from x import X
            from y import Y

        def outer(n):
            kept = n + 1
            dropped = 2

            def inner(q: X):
                return kept + q + b.z
            return inner
        """,
        "outer.inner",
        """
import a, b
if TYPE_CHECKING:
    from x import X

def outer(n):
    kept = n + 1

    def inner(q: X):
        return kept + q + b.z
""",
    )


def test_rust_structs_and_impls(tmp_path: Path):
    check_snapshot(
        tmp_path,
        """
        //- lib.rs
        use std::fmt;
        use std::io;

        const N: u32 = 3;
        const M: u32 = 4;

        /// What it is.
        pub struct Foo {
            a: u32,
        }

        impl Foo {
            pub fn new(a: u32) -> Self {
                Foo { a }
            }

            /// The sum.
            fn get(&self) -> u32 {
                self.a + N + Self::new(1).a
            }
        }
        """,
        "Foo.get",
        """
const N: u32 = 3;

pub struct Foo {
    a: u32,
}

impl Foo {
    pub fn new(a: u32) -> Self { /* ... */ }

    /// The sum.
    fn get(&self) -> u32 {
        self.a + N + Self::new(1).a
    }
}
""",
    )


def test_two_targets_of_a_file_are_one_snapshot(tmp_path: Path):
    check_snapshot(
        tmp_path,
        "#- a.py\nX = 1\nY = 2\nZ = 3\n\ndef f():\n    return X\n\ndef g():\n    return Y\n\ndef h():\n    return Z\n",
        "f g",
        "X = 1\nY = 2\n\ndef f():\n    return X\n\ndef g():\n    return Y\n",
    )


def test_what_stands_in_a_statement_comes_with_it(tmp_path: Path):
    check_snapshot(
        tmp_path,
        "#- a.py\ntry:\n    import fast\nexcept ImportError:\n    fast = None\n\ndef f():\n    return fast\n",
        "f",
        "try:\n    import fast\nexcept ImportError:\n    fast = None\n\ndef f():\n    return fast\n",
    )


def test_what_follows_dots_is_a_name_of_its_own(tmp_path: Path):
    check_snapshot(
        tmp_path,
        "#- a.ts\nimport { Tuple } from './t';\nimport { no } from './no';\nconst more = [1];\n"
        "export function f<A>(rest: [...Tuple<A>]) {\n    return [...more, rest];\n}\n",
        "f",
        "import { Tuple } from './t';\nconst more = [1];\n"
        "export function f<A>(rest: [...Tuple<A>]) {\n    return [...more, rest];\n}\n",
    )
    check_snapshot(
        tmp_path,
        "#- a.rs\nconst LIMIT: u32 = 3;\nconst OTHER: u32 = 4;\n\nfn f() -> u32 {\n    (0..LIMIT).sum()\n}\n",
        "f",
        "const LIMIT: u32 = 3;\n\nfn f() -> u32 {\n    (0..LIMIT).sum()\n}\n",
    )


@pytest.mark.parametrize("languages", [{"python"}])
def test_random_symbols_of_this_repository(tmp_path: Path, languages: set[str]):
    assert check_random_snapshots(ROOT / "src", tmp_path, languages, 150) == 150


CONSTANTS = """
    //- sizes.ts
    export const SIZES = {
      small: 1,
      large: 2,
    } as const;
    const CHECKED = {
      small: 1,
    } satisfies Record<string, number>;
    const STATED: Record<string, number> = {
      small: 1,
    };
    const HANDLERS = {
      onClick() {
        return 1;
      },
      other: 3,
    };
    export function measure() {
      return [SIZES, CHECKED, STATED, HANDLERS.other];
    }
    """


def test_constants_are_never_shown_empty(tmp_path: Path):
    check_snapshot(
        tmp_path,
        CONSTANTS,
        "measure",
        """
export const SIZES = {
  small: 1,
  large: 2,
} as const;
const CHECKED = {
  small: 1,
} satisfies Record<string, number>;
const STATED: Record<string, number> = {
  small: 1,
};
const HANDLERS = {
  onClick() {
    return 1;
  },
  other: 3,
};
export function measure() {
  return [SIZES, CHECKED, STATED, HANDLERS.other];
}
""",
    )


def test_a_body_that_is_left_out_is_marked(tmp_path: Path):
    check_snapshot(
        tmp_path,
        """
        //- area.js
        const double = (side) => {
          return side * 2;
        };
        function square(side) {
          return side * side;
        }
        export function area(side) {
          return double(square(side));
        }
        """,
        "area",
        """
const double = (side) => { /* ... */ };
function square(side) { /* ... */ }
export function area(side) {
  return double(square(side));
}
""",
    )


@pytest.mark.parametrize(
    ("path", "head", "entry", "tail", "mark"),
    [
        ("a.ts", "const TABLE = {", "  key{}: {},", "} as const;", "/* ... {} more lines */"),
        ("a.ts", "const TABLE = Object.freeze([", "  [{}, {}],", "]);", "/* ... {} more lines */"),
        ("a.ts", "interface TABLE {", "  key{}: {};", "}", "/* ... {} more lines */"),
        ("a.py", "TABLE: dict[str, int] = {", "    'key{}': {},", "}", "# ... {} more lines"),
        ("a.py", "TABLE = [", "    ('key{}', {}),", "]", "# ... {} more lines"),
        ("a.rs", "const TABLE: &[(i32, i32)] = &[", "    ({}, {}),", "];", "/* ... {} more lines */"),
    ],
)
def test_a_long_value_is_shown_by_its_first_lines(
    tmp_path: Path, path: str, head: str, entry: str, tail: str, mark: str
):
    user = {
        "ts": "function user(it: TABLE) {\n  return TABLE;\n}\n",
        "py": "def user():\n    return TABLE\n",
        "rs": "fn user() -> i32 {\n    TABLE[0].0\n}\n",
    }[path[2:]]
    entries = [entry.format(number, number) for number in range(100)]
    indent = " " * (len(entry) - len(entry.lstrip()))
    (tmp_path / path).write_text("\n".join([head, *entries, tail, user]))
    expected = "\n".join([head, *entries[:8], indent + mark.format(92), tail, user])
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        answer = workspace.find(FindOptions("symbol = user"))
    assert [shot.source for shot in answer.snapshots] == [expected]


LONG_BODIES = {
    "a.ts": "".join(
        ["function run() {\n", *(f"  const v{n} = {n};\n" for n in range(999)), "  function inner() {}\n}\n"]
    ),
    "a.py": "".join(["def run():\n", *(f"    v{n} = {n}\n" for n in range(999)), "    def inner(): ...\n"]),
}


@pytest.mark.parametrize("path", LONG_BODIES)
@pytest.mark.parametrize("budget", [800, 300, 150])
def test_a_function_that_the_budget_does_not_hold_is_not_shown_empty(tmp_path: Path, path: str, budget: int):
    (tmp_path / path).write_text(LONG_BODIES[path])
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        answer = workspace.find(FindOptions("symbol = run", budget=budget))
    assert int(answer.summary["tokens"]) <= budget
    (shot,) = answer.snapshots
    assert "v0 = 0" in shot.source
    assert "more lines" in shot.source
