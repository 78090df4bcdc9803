"""What the standard library of Rust gives: names in scope everywhere, and what methods of its types return.

A shape says what a method gives, from the parameters of its receiver:

    "same"           the receiver itself
    0, 1             its first or second parameter
    ("Option", 0)    that, in an Option (or Iterator, tuple, …)
    "result"         what the closure that is passed returns; "result.inner" what that holds
    "written"        what `collect::<…>()` says
"""

from __future__ import annotations

from typing import Any

Shape = Any


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


STD_CRATES = frozenset({"std", "core", "alloc", "proc_macro", "test"})
PRIMITIVES = frozenset(_words("bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 f16 f128"))
PRELUDE = frozenset(
    _words(
        "Option Some None Result Ok Err Vec String Box ToString ToOwned Clone Copy Send Sync Sized Drop Fn "
        "FnMut FnOnce AsyncFn AsyncFnMut AsyncFnOnce Iterator IntoIterator Extend DoubleEndedIterator "
        "ExactSizeIterator AsRef AsMut Into From Default Eq PartialEq Ord PartialOrd TryFrom TryInto "
        "FromIterator Debug Hash drop Unpin Future IntoFuture"
    )
)
MACROS = frozenset(
    _words(
        "panic println print eprintln eprint format vec assert assert_eq assert_ne debug_assert "
        "debug_assert_eq debug_assert_ne write writeln matches todo unreachable unimplemented include "
        "include_str include_bytes concat stringify env option_env cfg line column file module_path dbg "
        "format_args thread_local compile_error try addr_of addr_of_mut"
    )
)
ATTRIBUTES = frozenset(
    _words(
        "Debug Clone Copy PartialEq Eq Hash PartialOrd Ord Default test cfg cfg_attr allow warn deny expect "
        "forbid inline must_use derive non_exhaustive deprecated ignore should_panic repr doc macro_use "
        "macro_export no_mangle path global_allocator cold track_caller proc_macro proc_macro_derive "
        "proc_macro_attribute automatically_derived recursion_limit feature bench target_feature default link"
    )
)

# Types that are what they hold, for every method that matters.
TRANSPARENT = frozenset(
    _words(
        "Box Rc Arc Cow Ref RefMut MutexGuard RwLockReadGuard RwLockWriteGuard Pin ManuallyDrop LazyLock "
        "LazyCell Lazy Reverse NonNull Wrapping"
    )
)
KINDS = {
    **dict.fromkeys(
        _words(
            "Vec VecDeque LinkedList HashSet BTreeSet FxHashSet IndexSet FxIndexSet SmallVec ThinVec ArrayVec "
            "BinaryHeap OrderedSet"), "Vec"),
    **dict.fromkeys(_words("HashMap BTreeMap FxHashMap IndexMap FxIndexMap FxHashMapExt DashMap OrderMap"), "Map"),
    **dict.fromkeys(
        _words(
            "Iterator IntoIterator DoubleEndedIterator ExactSizeIterator FusedIterator Peekable Rev "
            "ParallelIterator IntoParallelIterator"), "Iterator"),
    **dict.fromkeys(_words("RefCell Mutex RwLock Cell OnceCell OnceLock UnsafeCell"), "Cell"),
    "Option": "Option", "Result": "Result", "str": "str", "String": "str", "char": "char",
}  # fmt: skip
ARITIES = {"Map": 2, "Result": 2, "str": 0, "char": 0}  # parameters of a kind, where that is not one
# Under which names impls for a kind stand.
HOLDERS = {"Vec": ("Vec", "[T]"), "Map": ("HashMap", "BTreeMap", "FxHashMap"), "str": ("str", "String"),
           "Iterator": (), "Collected": (), "Entry": (), "Cell": ("RefCell",), "char": ("char",),
           "tuple": ("()",)}  # fmt: skip

_ITERATOR = ("Iterator", 0)
_OPTION = ("Option", 0)
_COMMON: dict[str, Shape] = dict.fromkeys(
    _words(
            "clone cloned copied to_owned as_ref as_mut borrow borrow_mut by_ref as_deref as_deref_mut to_vec "
            "as_slice as_mut_slice into_boxed_slice"), "same",
)  # fmt: skip
_RULES: dict[str, dict[str, Shape]] = {
    "Option": {
        **dict.fromkeys(
            _words(
            "unwrap expect unwrap_or unwrap_or_default unwrap_or_else unwrap_unchecked get_or_insert "
            "get_or_insert_with insert"), 0),
        **dict.fromkeys(_words("or or_else filter inspect take replace xor as_pin_mut"), "same"),
        **dict.fromkeys(_words("ok_or ok_or_else"), ("Result", 0)),
        **dict.fromkeys(_words("iter iter_mut into_iter"), _ITERATOR),
        "map": ("Option", "result"), "and_then": "result", "map_or": "result", "map_or_else": "result",
        "flatten": 0, "is_some_and": "none", "is_none_or": "none", "zip": ("Option", ("tuple", 0, "other")),
    },
    "Result": {
        **dict.fromkeys(_words("unwrap expect unwrap_or unwrap_or_default unwrap_or_else"), 0),
        **dict.fromkeys(_words("map_err or_else inspect inspect_err context with_context"), "same"),
        "ok": _OPTION, "err": ("Option", 1), "map": ("Result", "result"), "and_then": "result", "map_or": "result",
        "unwrap_err": 1, "expect_err": 1, "iter": _ITERATOR, "is_ok_and": "none", "is_err_and": "none",
    },
    "Vec": {
        **dict.fromkeys(
            _words("iter iter_mut into_iter drain par_iter into_par_iter difference intersection union extract_if"),
            _ITERATOR),
        **dict.fromkeys(
            _words(
            "first first_mut last last_mut get get_mut pop pop_front pop_back front back front_mut back_mut peek "
            "take shift_remove pop_first pop_last"), _OPTION),
        **dict.fromkeys(_words("remove swap_remove"), 0),
        **dict.fromkeys(_words("split_off rev sorted iter_rev"), "same"),
        **dict.fromkeys(_words("windows chunks chunks_exact rchunks split splitn chunk_by"), ("Iterator", "same")),
        **dict.fromkeys(_words("split_first split_last"), ("Option", ("tuple", 0, "same"))),
        **dict.fromkeys(_words("split_at split_at_mut"), ("tuple", "same", "same")),
        **dict.fromkeys(
            _words(
            "push extend len is_empty retain sort_by_key sort_by sort_unstable_by_key sort_unstable_by "
            "dedup_by_key contains insert clear truncate binary_search_by binary_search_by_key partition_point "
            "join concat reverse sort sort_unstable reserve append push_back push_front starts_with "
            "ends_with"), "none"),
    },
    "Map": {
        **dict.fromkeys(_words("get get_mut remove insert pop"), ("Option", 1)),
        **dict.fromkeys(_words("values values_mut into_values"), ("Iterator", 1)),
        **dict.fromkeys(_words("keys into_keys"), _ITERATOR),
        **dict.fromkeys(_words("iter iter_mut into_iter drain"), ("Iterator", ("tuple", 0, 1))),
        **dict.fromkeys(
            _words("get_key_value first_key_value last_key_value pop_first pop_last remove_entry first last get_index"),
            ("Option", ("tuple", 0, 1))),
        "entry": ("Entry", 1),
        **dict.fromkeys(_words("len is_empty contains_key retain extend clear reserve"), "none"),
    },
    "Entry": {**dict.fromkeys(_words("or_default or_insert or_insert_with or_insert_with_key get get_mut into_mut"), 0),
              "and_modify": "same"},
    "Cell": {**dict.fromkeys(_words("borrow borrow_mut get get_mut into_inner take replace get_or_init"), 0),
             **dict.fromkeys(_words("lock read write try_borrow try_lock"), ("Result", 0))},
    "Iterator": {
        **dict.fromkeys(
            _words(
            "rev skip take filter peekable step_by chain cycle fuse skip_while take_while inspect sorted "
            "sorted_by sorted_by_key sorted_unstable sorted_unstable_by sorted_unstable_by_key dedup dedup_by "
            "unique unique_by into_iter iter take_while_ref peeking_take_while par_bridge with_position"), "same"),
        **dict.fromkeys(
            _words(
            "next last nth find max min max_by max_by_key min_by min_by_key peek next_back nth_back rfind reduce "
            "peek_mut next_if next_if_eq find_or_last at_most_one"), _OPTION),
        "exactly_one": ("Result", 0),
        "map": ("Iterator", "result"), "filter_map": ("Iterator", "result.inner"),
        "map_while": ("Iterator", "result.inner"),
        "flat_map": ("Iterator", "result.item"), "find_map": "result", "flatten": ("Iterator", "flat"),
        "enumerate": ("Iterator", ("tuple", "int", 0)), "zip": ("Iterator", ("tuple", 0, "other")),
        "tuple_windows": ("Iterator", ("tuple", 0, 0)), "collect": "written", "collect_vec": ("Vec", 0),
        "partition": ("tuple", ("Vec", 0), ("Vec", 0)),
        **dict.fromkeys(
            _words(
            "for_each any all position fold count sum product try_for_each try_fold max_by cmp eq join is_empty "
            "len size_hint rposition all_equal is_sorted unzip"), "none"),
    },
    "Collected": {**dict.fromkeys(_words("iter into_iter iter_mut"), _ITERATOR), "len": "none", "is_empty": "none",
                  "join": "none"},
    "str": dict.fromkeys(
        _words(
            "trim trim_start trim_end trim_end_matches trim_start_matches to_string as_str to_lowercase "
            "to_uppercase to_ascii_lowercase replace repeat as_mut_str"), "same"),
    "tuple": {}, "fn": {}, "dyn": {},
}  # fmt: skip


def find_rule(kind: str, method: str) -> Shape | None:
    """What a method of a kind gives; None: the standard library has no such method there, or any type may have it."""
    found = _RULES.get(kind, {}).get(method)
    return _COMMON.get(method) if found is None else found


_FIRST = {0: 0}
# (kind, method) -> closure parameter -> shape
CLOSURE_TAKES: dict[tuple[str, str], dict[int, Shape]] = {
    **{("Iterator", method): _FIRST for method in
       _words(
            "map filter for_each any all find position filter_map flat_map take_while skip_while inspect "
            "map_while max_by_key min_by_key sorted_by_key sorted_unstable_by_key partition find_map rposition "
            "rfind try_for_each unique_by next_if is_sorted_by_key dedup_by_key group_by chunk_by "
            "into_group_map_by find_or_first")},
    **{("Iterator", method): {0: 0, 1: 0} for method in
       _words("max_by min_by sorted_by sorted_unstable_by reduce dedup_by is_sorted_by")},
    ("Iterator", "fold"): {1: 0}, ("Iterator", "try_fold"): {1: 0}, ("Iterator", "scan"): {1: 0},
    **{("Option", method): _FIRST for method in
       _words("map and_then filter is_some_and is_none_or map_or map_or_else inspect then")},
    **{("Result", method): _FIRST for method in _words("map and_then is_ok_and map_or inspect")},
    **{("Result", method): {0: 1} for method in _words("map_err unwrap_or_else or_else inspect_err")},
    **{("Vec", method): _FIRST for method in
       _words(
            "retain retain_mut sort_by_key sort_unstable_by_key sort_by_cached_key partition_point "
            "binary_search_by binary_search_by_key dedup_by_key split chunk_by extract_if")},
    **{("Vec", method): {0: 0, 1: 0} for method in _words("sort_by sort_unstable_by dedup_by")},
    ("Map", "retain"): {0: 0, 1: 1}, ("Entry", "and_modify"): _FIRST,
}  # fmt: skip

# Methods that any value may have from the standard library: on an unknown receiver they mean nothing.
STD_METHODS = frozenset(
    _words(
        "clone to_string to_owned into try_into as_ref as_mut borrow borrow_mut eq ne cmp partial_cmp lt le "
        "gt ge hash fmt default from from_iter from_str try_from into_iter iter iter_mut next map filter "
        "collect unwrap expect unwrap_or unwrap_or_default unwrap_or_else is_some is_none is_ok is_err "
        "is_some_and is_ok_and len is_empty push push_str pop insert remove get get_mut contains contains_key "
        "extend clear first last keys values entry or_default or_insert or_insert_with and_then or_else ok_or "
        "ok_or_else map_err ok err take replace as_str as_bytes chars bytes lines split trim trim_start "
        "trim_end starts_with ends_with find rfind any all fold for_each enumerate zip rev skip chain cloned "
        "copied flat_map filter_map sum count min max position last peekable peek sort sort_by sort_by_key "
        "sort_unstable dedup retain drain join concat to_vec as_slice as_deref as_deref_mut lock read write "
        "send recv deref deref_mut drop index index_mut add sub mul div rem neg not bitand bitor bitxor "
        "bitor_assign add_assign sub_assign shl shr to_lowercase to_uppercase parse strip_prefix strip_suffix "
        "split_once rsplit_once splitn is_ascii_digit is_alphanumeric is_whitespace to_path_buf as_path "
        "exists is_file is_dir file_name extension parent with_extension display to_str to_string_lossy "
        "with_capacity reserve truncate flatten then then_some wrapping_add saturating_sub saturating_add "
        "checked_add checked_sub abs pow clamp type_id by_ref step_by windows chunks get_or_insert_with flush "
        "finish write_str write_fmt write_char build spawn unwrap_err rsplit nth take_while skip_while "
        "partition max_by_key min_by_key find_map swap as_mut_slice append split_at is_ascii is_alphabetic "
        "is_numeric is_uppercase is_lowercase is_control is_ascii_alphabetic is_ascii_uppercase "
        "is_ascii_lowercase is_ascii_hexdigit is_ascii_punctuation is_ascii_whitespace is_digit to_digit "
        "is_ascii_alphanumeric len_utf8 is_char_boundary trim_end_matches trim_start_matches trim_matches "
        "rsplitn split_whitespace as_mut_ptr as_ptr is_positive is_negative to_le_bytes min_by max_by "
        "count_ones leading_zeros is_power_of_two binary_search to_ascii_lowercase eq_ignore_ascii_case "
        "char_indices set"
    )
)
