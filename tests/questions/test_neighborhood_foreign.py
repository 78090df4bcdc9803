"""Neighbours in another language: PyO3, ctypes and cffi, wasm-bindgen, napi."""

from __future__ import annotations

from pathlib import Path

from cq.languages.rust.foreign import find_foreign_names
from cq.model.neighborhood import Bundle, BundleEdge
from tests.support.checks import check_neighborhood, facts_of

MIXED = """
//- Cargo.toml
[lib]
name = "_core"
//- pyproject.toml
[tool.maturin]
module-name = "shop._native"
//- src/lib.rs
#[pyfunction]
fn {add}(a: u32) -> u32 {{ a }}
{add_mark}
#[pyclass(name = "Cart")]
struct PyCart {{ size: u32 }}
{cart_mark}
#[pymethods]
impl PyCart {{
    #[new]
    fn new() -> Self {{ PyCart {{ size: 1 }} }}
    fn {total}(&self) -> u32 {{ self.size }}
    {total_mark}
}}
#[pymodule]
fn _core(m: &Bound<PyModule>) -> PyResult<()> {{ Ok(()) }}
//- shop/__init__.py
from shop._native import add, Cart
{more}
"""


def ffi(bundle: Bundle) -> dict[str, list[BundleEdge]]:
    found = {part.kind: [edge for edge in part.edges if edge.edge_kind == "ffi"] for part in bundle.slices}
    return {kind: edges for kind, edges in found.items() if edges}


def mixed(more: str, **marks: str) -> str:
    names = {"add": "add", "total": "total", "add_mark": "", "cart_mark": "", "total_mark": ""}
    return MIXED.format(**names | marks, more=more)


def test_what_python_calls_in_rust(tmp_path: Path):
    bundle = check_neighborhood(
        tmp_path / "repo",
        mixed("def bu$0y():\n    add(1)\n    return Cart()", add_mark="//< callees", cart_mark="//< callees"),
    )
    assert {edge.evidence_source for edge in ffi(bundle)["callees"]} == {"ffi.pyo3"}
    assert [edge.metadata["sites"] for edge in ffi(bundle)["callees"]] == [
        ["shop/__init__.py:3"],
        ["shop/__init__.py:4"],
    ]


def test_what_calls_rust_from_python(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        mixed(
            "def buy():\n//< callers\n    add(1)\n//- tests/test_shop.py\nfrom shop._native import add\n"
            "def test_add():\n//< callers tests\n    add(2)",
            add="a$0dd",
        ),
    )


def test_a_stub_stands_for_what_it_declares(tmp_path: Path):
    stub = "//- shop/_native.pyi\nclass Cart:\n    def tot$0al(self) -> int: ...\n"
    bundle = check_neighborhood(tmp_path / "one", mixed(stub, total_mark="//< implementations"))
    assert ffi(bundle)["implementations"][0].evidence_source == "ffi.pyo3"
    user = "def pay(cart: Cart):\n//< callers\n    return cart.total()\n"
    stub = "//- shop/_native.pyi\nclass Cart:\n    def total(self) -> int: ...\n    //< related\n"
    check_neighborhood(tmp_path / "two", mixed(user + stub, total="tot$0al"))


def test_a_library_loaded_by_ctypes(tmp_path: Path):
    bundle = check_neighborhood(
        tmp_path / "repo",
        """
        //- native/sum.c
        int add(int a, int b) { return a + b; }
        //< callees
        //- app.py
        import ctypes
        lib = ctypes.CDLL("libsum.so")
        def to$0tal():
            return lib.add(1, 2)
        """,
    )
    assert [edge.evidence_source for edge in ffi(bundle)["callees"]] == ["ffi.c"]


def test_a_library_of_cffi(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        //- src/lib.rs
        #[no_mangle]
        pub extern "C" fn ad$0d(a: i32) -> i32 { a }
        //- app.py
        from _sum import ffi, lib
        def total():
        //< callers
            return lib.add(1)
        """,
    )


def test_javascript_calls_rust_by_wasm_bindgen(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        //- Cargo.toml
        [package]
        name = "fast-sum"
        //- src/lib.rs
        #[wasm_bindgen(js_name = addAll)]
        pub fn add_all(a: u32) -> u32 { a }
        //< callees
        //- web/main.js
        import init, { addAll } from "./pkg/fast_sum.js";
        export function ru$0n() { return addAll(1); }
        """,
    )


def test_javascript_calls_rust_by_napi(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        //- Cargo.toml
        [package]
        name = "fast-sum"
        //- src/lib.rs
        #[napi]
        pub fn add_a$0ll(a: u32) -> u32 { a }
        //- main.js
        const { addAll } = require("./fast-sum.node");
        function run() { return addAll(1); }
        //< callers
        """,
    )


def test_names_on_the_other_side():
    facts = facts_of(
        "rust",
        """
        #[pyo3::pyfunction]
        #[pyo3(name = "hi", signature = (a))]
        fn hello(a: u8) {}
        #[pyclass(name = "Box", module = "a.b")]
        struct PyBox;
        #[pymethods]
        impl PyBox {
            #[new]
            fn make() -> Self { PyBox }
            #[getter]
            fn get_size(&self) -> u8 { 1 }
            #[pyo3(name = "put")]
            fn put_it(&self) {}
        }
        #[unsafe(no_mangle)]
        pub extern "C" fn plain() {}
        #[export_name = "other"]
        pub extern "C" fn renamed() {}
        #[napi]
        fn sum_two() {}
        #[test]
        fn pyfunction_is_only_a_name() {}
        """,
    )
    found = [(each.boundary, each.name, facts.symbols[each.symbol].name) for each in find_foreign_names(facts.symbols)]
    assert found == [
        ("pyo3", "hi", "hello"),
        ("pyo3", "Box", "PyBox"),
        ("pyo3", "Box.__new__", "make"),
        ("pyo3", "Box.size", "get_size"),
        ("pyo3", "Box.put", "put_it"),
        ("c", "plain", "plain"),
        ("c", "other", "renamed"),
        ("napi", "sumTwo", "sum_two"),
    ]
