"""JSON Schema: the public suite, the reference validator as oracle, and what is refused at registration."""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from cases import load
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentkit.schema import Problem, SchemaError, canonical, compile_contract, compile_schema, show
from agentkit.tools import ToolSpec


def accepts(schema: Any, value: Any) -> bool:
    return compile_schema(schema).problem(value) is None


def problem(schema: Any, value: Any) -> Problem:
    found = compile_schema(schema).problem(value)
    assert found is not None
    return found


# --- the public suite ---------------------------------------------------------------------------
def test_every_case_of_the_public_json_schema_suite_has_the_expected_verdict() -> None:
    records = load("json_schema_suite")
    wrong = [case["id"] for case in records if accepts(case["schema"], case["data"]) != case["valid"]]
    assert len(records) >= 210
    assert wrong == []


# --- jsonschema as an independent oracle --------------------------------------------------------
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([0.0, 1.0, 1.5, -2.0, 2.5, 1e20]),
    st.sampled_from(["", "a", "ab", "b", "aab", "é", "7"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def optional(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name.rstrip("_"): part for name, part in keywords.items()})


def compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    branches = st.lists(inner, min_size=1, max_size=3)
    return optional(
        properties=st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        required=st.lists(st.sampled_from("abc"), unique=True, max_size=2),
        additionalProperties=inner,
        items=inner,
        prefixItems=st.lists(inner, max_size=2),
        allOf=branches,
        anyOf=branches,
        oneOf=branches,
        not_=inner,
    )


small = st.integers(0, 3)
leaf_schemas = st.booleans() | optional(
    type=st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), unique=True, min_size=1, max_size=3),
    enum=st.lists(values, min_size=1, max_size=3),
    const=values,
    minimum=st.integers(-3, 3),
    maximum=st.sampled_from([-1.5, 0, 2, 2.5]),
    exclusiveMinimum=st.integers(-3, 3),
    exclusiveMaximum=st.integers(-3, 3),
    multipleOf=st.sampled_from([1, 2, 3, 0.5, 1.5]),
    minLength=small,
    maxLength=small,
    pattern=st.sampled_from(["a", "^a*$", "b", "^[ab]+", r"\d"]),
    minItems=small,
    maxItems=small,
    uniqueItems=st.booleans(),
    minProperties=small,
    maxProperties=small,
)
schemas = st.recursive(leaf_schemas, compound, max_leaves=6)


@settings(max_examples=200, deadline=None)
@given(schema=schemas, value=values)
def test_any_schema_and_any_value_get_the_verdict_of_the_reference_validator(schema: Any, value: Any) -> None:
    assert accepts(schema, value) == Draft202012Validator(schema).is_valid(value)


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}
nodes = st.recursive(
    st.fixed_dictionaries({"value": scalars}),
    lambda inner: st.fixed_dictionaries({"value": scalars, "next": inner | scalars}),
    max_leaves=5,
)


@settings(deadline=None)
@given(value=nodes)
def test_a_schema_that_refers_to_itself_agrees_with_the_reference_validator(value: Any) -> None:
    assert accepts(TREE, value) == Draft202012Validator(TREE).is_valid(value)


@settings(max_examples=100, deadline=None)
@given(value=st.decimals(-1000, 1000, places=4), step=st.decimals("0.0001", 10, places=4).filter(bool))
def test_multiple_of_is_decided_on_the_decimal_digits(value: Any, step: Any) -> None:
    expected = Fraction(str(value)) % Fraction(str(step)) == 0
    assert accepts({"multipleOf": float(step)}, float(value)) == expected


@pytest.mark.parametrize(
    ("value", "step"), [(0.3, 0.1), (0.0075, 0.0001), (19.99, 0.01), (1e308, 0.5), (4, 0.1)]
)
def test_a_decimal_multiple_is_one_although_binary_floats_disagree(value: float, step: float) -> None:
    assert accepts({"multipleOf": step}, value)


# --- equality, integers, numbers ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1.0, True, False),
        ([1], [True], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": [0]}, {"a": [False]}, False),
        ("1", 1, False),
        (None, 0, False),
        ([], {}, False),
        ([["object"]], [{}], False),
        (["boolean", True], True, False),
        (9007199254740993, 9007199254740992.0, False),
        (10**300, 1e300, False),
        (int(1e300), 1e300, True),
        (0, -0.0, True),
        ("[1]", [1], False),
        ("'a','b'", ["a", "b"], False),
        (["a','b"], ["a", "b"], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a:1,b": 2}, {"a": 1, "b": 2}, False),
    ],
)
def test_equality_is_that_of_json(left: Any, right: Any, equal: bool) -> None:
    assert accepts({"const": left}, right) is equal
    assert accepts({"enum": [right]}, left) is equal
    assert accepts({"uniqueItems": True}, [left, right]) is not equal


@pytest.mark.parametrize("value", [True, False, "7", 1.5, None, [1], {"a": 1}, math.inf, math.nan, 2 + 0j])
def test_only_whole_numbers_are_integers(value: Any) -> None:
    assert problem({"type": "integer"}, value).kind == "type"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True])
def test_numbers_are_finite_and_no_booleans(value: Any) -> None:
    assert problem({"type": "number"}, value).kind == "type"


def test_a_whole_float_passes_as_an_integer_and_is_normalised_wherever_an_integer_is_declared() -> None:
    schema = compile_schema(
        {
            "properties": {
                "n": {"type": "integer"},
                "x": {"type": "number"},
                "list": {"items": {"type": ["integer", "null"]}, "prefixItems": [{"type": "string"}]},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "deep": {"$ref": "#/$defs/box"},
            },
            "additionalProperties": {"type": "integer"},
            "$defs": {"box": {"properties": {"n": {"type": "integer"}, "box": {"$ref": "#/$defs/box"}}}},
        }
    )
    value = {
        "n": 1.0,
        "x": 1.0,
        "list": ["a", 2.0, None],
        "either": 3.0,
        "deep": {"box": {"n": 4.0}},
        "more": 5.0,
    }
    assert schema.problem(value) is None
    fixed = schema.normalise(value)
    assert repr(fixed) == repr(
        {"n": 1, "x": 1.0, "list": ["a", 2, None], "either": 3, "deep": {"box": {"n": 4}}, "more": 5}
    )
    assert value["n"] == 1.0 and isinstance(value["n"], float), "the given value is not changed"


@settings(max_examples=200, deadline=None)
@given(schema=schemas, value=values)
def test_a_normalised_value_stays_equal_and_a_valid_one_stays_valid(schema: Any, value: Any) -> None:
    compiled = compile_schema(schema)
    fixed = compiled.normalise(value)
    assert accepts({"const": value}, fixed)
    if compiled.problem(value) is None:
        assert compiled.problem(fixed) is None


# --- numbers beyond floats, and beyond what Python writes ----------------------------------------
@pytest.mark.parametrize("digits", [400, 5000])
def test_an_integer_of_any_length_is_judged_exactly_and_quoted_briefly(digits: int) -> None:
    value = 10**digits
    assert accepts({"multipleOf": 2}, value)
    assert not accepts({"multipleOf": 3}, value)
    assert accepts({"type": "integer", "exclusiveMinimum": 0.5, "minimum": value}, value)
    for schema in ({"multipleOf": 3}, {"maximum": 7}, {"enum": [7]}, {"minimum": value + 1}):
        assert len(problem(schema, value).message) < 250
    assert len(show([value])) < 100


@pytest.mark.parametrize(
    ("schema", "fitting", "other"),
    [
        ({"enum": [10**5000, "a"]}, 10**5000, 10**5000 + 1),
        ({"const": {"n": [10**5000]}}, {"n": [10**5000]}, {"n": [1]}),
        ({"multipleOf": 10**5000}, 3 * 10**5000, 10**4999),
        ({"maxLength": 10**5000, "minLength": 1}, "a", ""),
        ({"maximum": 10**5000}, 1.5, 10**5001),
        ({"not": {"const": 10**5000}}, 1, 10**5000),
    ],
    ids=["enum", "const", "multipleOf", "length", "maximum", "not"],
)
def test_a_schema_may_hold_an_integer_of_any_length(schema: Any, fitting: Any, other: Any) -> None:
    assert accepts(schema, fitting)
    assert len(problem(schema, other).message) < 250


def test_large_integers_with_one_hash_are_told_apart_without_comparing_each_with_each() -> None:
    colliding = [place * (2**61 - 1) for place in range(100)]
    assert len({hash(number) for number in colliding}) == 1
    assert len({hash(canonical(number)) for number in colliding}) == 100
    assert accepts({"uniqueItems": True}, colliding)
    assert not accepts({"uniqueItems": True}, [*colliding, float(2**61), 2**61])


# --- the order of telling -----------------------------------------------------------------------
A, B = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "arguments", "kind"),
    [
        ({"properties": {"a": A}, "allOf": [{"properties": {"b": B}, "required": ["b"]}]},
         {"a": "x"}, "missing"),
        ({"properties": {"a": A}, "minProperties": 2, "required": ["a"]}, {}, "missing"),
        ({"properties": {"a": A}, "minProperties": 2}, {"a": "x"}, "type"),
        ({"properties": {"a": {"pattern": "^x", "allOf": [{"enum": ["y"]}]}}}, {"a": "z"}, "enum"),
        ({"properties": {"a": {"minLength": 9, "allOf": [{"pattern": "^x"}]}}}, {"a": "z"}, "pattern"),
        ({"properties": {"a": {"$ref": "#/$defs/long", "enum": ["y"]}}, "$defs": {"long": {"minLength": 9}}},
         {"a": "z"}, "enum"),
        ({"properties": {"a": {"items": A, "maxItems": 1, "enum": [[]]}}}, {"a": ["x", "y"]}, "enum"),
        ({"properties": {"a": {"properties": {"c": A}, "required": ["d"]}, "b": {"items": A}}},
         {"a": {"c": "x"}, "b": ["x"]}, "type"),  # an item of b comes before what is wrong inside a
        ({"properties": {"a": {"properties": {"c": A}, "required": ["d"]}}}, {"a": {"c": "x"}}, "missing"),
    ],
)  # fmt: skip
def test_the_first_problem_is_the_same_wherever_the_schema_states_the_rule(
    schema: Any, arguments: Any, kind: str
) -> None:
    found = compile_contract(schema).problem(arguments)
    assert found is not None and found.kind == kind


def test_of_two_broken_sizes_the_lower_bound_is_told_first() -> None:
    for schema in ({"minLength": 5, "maxLength": 1}, {"maxLength": 1, "minLength": 5}):
        assert problem(schema, "abc").message == "must be at least 5 characters long, got 3"


# --- references that meet again ------------------------------------------------------------------
def recursive(**part: Any) -> dict[str, Any]:
    return {"$ref": "#/$defs/e", "$defs": {"e": part}}


def branch(word: str) -> dict[str, Any]:
    members = {"left": {"$ref": "#/$defs/e"}, "op": {"const": word}, "n": {"type": "integer"}}
    return {"type": "object", "properties": members, "required": ["op"]}


MEETING = {
    "oneOf": recursive(oneOf=[branch("add"), branch("mul")]),
    "anyOf": recursive(anyOf=[branch("add"), {"properties": {"left": {"$ref": "#/$defs/e"}}}]),
    "allOf": recursive(allOf=[{"$ref": "#/$defs/f"}, {"$ref": "#/$defs/f"}]),
}
MEETING["allOf"]["$defs"]["f"] = branch("add")


@pytest.fixture
def steps() -> Iterator[Callable[[Callable[[], Any]], int]]:
    """A function that counts the Python calls which a piece of work makes."""

    def counted(work: Callable[[], Any]) -> int:
        calls = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call"
            if calls > 50_000:
                raise AssertionError("the work grows too fast")

        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(None)
        return calls

    yield counted


@pytest.mark.parametrize("keyword", MEETING)
@pytest.mark.parametrize("bottom", [{"op": "add", "n": 1.0}, {"op": "add", "n": "x"}])
def test_a_value_that_several_references_lead_to_is_judged_once(
    keyword: str, bottom: Any, steps: Callable[[Callable[[], Any]], int]
) -> None:
    schema = compile_schema(MEETING[keyword])

    def nested(depth: int) -> Any:
        value = bottom
        for _ in range(depth):
            value = {"left": value, "op": "add", "n": 2.0}
        return value

    def judge(depth: int) -> int:
        value = nested(depth)
        return steps(lambda: schema.normalise(value) if schema.problem(value) is None else None)

    assert judge(80) < 64 * judge(10)  # the square of the depth at most: a path has one step a level
    assert (schema.problem(nested(40)) is None) is Draft202012Validator(MEETING[keyword]).is_valid(nested(5))


def test_a_chain_of_definitions_that_double_is_judged_once_each(
    steps: Callable[[Callable[[], Any]], int],
) -> None:
    defs: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**defs, "d40": {"type": "integer"}}}
    assert steps(lambda: compile_schema(schema).problem(7)) < 10_000


@settings(max_examples=100, deadline=None)
@given(value=nodes, again=nodes)
def test_nothing_is_remembered_from_one_value_to_the_next(value: Any, again: Any) -> None:
    schema = compile_schema(TREE)
    schema.problem(value)
    value["value"] = "changed"
    assert problem(TREE, value) == schema.problem(value)
    assert (schema.problem(again) is None) == accepts(TREE, again)


def test_compiling_nested_alternatives_takes_time_in_proportion(
    steps: Callable[[Callable[[], Any]], int],
) -> None:
    def nested(depth: int) -> Any:
        return {"anyOf": [nested(depth - 1), {"type": "string"}]} if depth else {"type": "integer"}

    short, long = nested(10), nested(60)
    assert steps(lambda: compile_schema(long)) < 20 * steps(lambda: compile_schema(short))
    assert compile_schema(long).normalise(7.0) == 7


# --- patterns -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("b", "abc", True),  # a search, not a full match
        ("^b", "abc", False),
        ("^abc$", "abc\n", False),  # `$` is the very end
        (r"^\d+$", "42", True),
        (r"^\d+$", "४२", False),  # digits are ASCII
        (r"^\D+$", "४२", True),
        (r"^\w+$", "é", False),
        (r"^\W+$", "é", True),
        (r"^\s$", "\ufeff", True),
        (r"^\S+$", "a\u00a0", False),
        (r"^[\S]+$", "a\u2003", False),
        (r"^[\d\-x]+$", "4-x", True),
        (r"^\p{Lu}\p{Ll}+$", "Éric", True),
        (r"^\p{Letter}+$", "π", True),
        (r"^\P{L}+$", "42", True),
        (r"^[\p{L}\d]+$", "é4", True),
        (r"^\p{gc=Nd}$", "४", True),
        (r"^\u{1F432}$", "🐲", True),
        (r"^\cA$", "\x01", True),
        (r"^a.c$", "a\u2028c", False),  # the dot stops at every line terminator
        (r"^[^]$", "\n", True),
        (r"[]", "a", False),
        (r"^(?<year>\d{4})-\k<year>$", "2024-2024", True),
        (r"^[[&~|]+$", "[&~|", True),
        (r"^\/a\.b$", "/a.b", True),
        (r"^x{,3}$", "xx", False),  # no quantifier, but seven characters
        (r"^x{,3}$", "x{,3}", True),
        (r"^x{,}$", "x{,}", True),
        (r"^x{1,3}$", "xx", True),
        (r"^x{2,}?$", "xxx", True),
        (r"^\uD83D\uDE00$", "😀", True),
        (r"^[\uD83D\uDE00-\uD83D\uDE02]$", "😁", True),
        (r"^[\u0041-\x5a]+$", "AZ", True),
        (r"^[(?i)a++{,3}]+$", "(?i)+{,3}", True),  # in a class all of it stands for itself
        (r"^[+--]+$", "+,-", True),
        (r"^[--a]$", "A", True),
        (r"^[^-a]$", "-", False),
        (r"^[\d-x]+$", "4-x", True),
        (r"^(?=a)(?!b)(?:a)(?<=a)(?<!b)$", "a", True),
    ],
)
def test_patterns_follow_ecma_262_and_not_python(pattern: str, value: str, matches: bool) -> None:
    assert accepts({"pattern": pattern}, value) is matches


@pytest.mark.parametrize(
    "pattern",
    ["(", "[a", "a{2,1}", r"\Z", r"\a", r"\p{Klingon}", "*a", r"\p{Script=Greek}", r"[!-\d]", "[a--b]", "\\"],
)
def test_a_pattern_that_does_not_compile_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(SchemaError, match="#/properties/code: pattern"):
        compile_schema({"properties": {"code": {"pattern": pattern}}})


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("a++", "++"),
        ("a*+", "*+"),
        (r"\d{2}+", "{2}+"),
        ("(?i)a", "(?i"),
        ("(?P<x>a)", "(?P"),
        ("(?#c)", "(?#"),
        ("(?>a)", "(?>"),
        ("(a)?(?(1)b|c)", "(?("),
        ("(?i:a)", "(?i"),
    ],
)
def test_what_only_python_can_read_in_a_pattern_is_refused_by_name(pattern: str, named: str) -> None:
    with pytest.raises(SchemaError) as raised:
        compile_schema({"pattern": pattern})
    assert f"{named} is Python's, not ECMA-262" in str(raised.value)


@pytest.mark.parametrize("pattern", ["[+--]", "[--a]", "[a--b]", "[&&~~||]", "[[a]"])
def test_no_pattern_makes_python_warn(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with contextlib.suppress(SchemaError):
            compile_schema({"pattern": pattern})


# --- what is refused at registration ------------------------------------------------------------
UNSUPPORTED = [
    "patternProperties", "dependentRequired", "dependentSchemas", "dependencies", "if", "then", "else",
    "contains",
    "minContains", "maxContains", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
    "$anchor", "additionalItems", "nullable", "minimun", "divisibleBy",
]  # fmt: skip


@pytest.mark.parametrize("keyword", UNSUPPORTED)
def test_a_keyword_that_would_be_ignored_is_refused_by_name_wherever_it_stands(keyword: str) -> None:
    part = {keyword: {}}
    for schema in (part, {"properties": {"a": part}}, {"items": {"anyOf": [part]}}, {"not": part}):
        with pytest.raises(SchemaError, match=f"unsupported keyword '{keyword.replace('$', '[$]')}'"):
            compile_schema(schema)
    with pytest.raises(SchemaError, match="unsupported keyword"):
        ToolSpec("a tool", {"type": "object", "properties": {"a": part}}, print)


def test_annotations_and_extensions_are_accepted_and_constrain_nothing() -> None:
    notes = {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.org/a",
        "title": "t",
        "description": "d", "default": 1, "examples": [1], "$comment": "c", "deprecated": True,
        "readOnly": True,
        "writeOnly": True, "format": "email", "x-order": 3,
    }  # fmt: skip
    assert accepts(notes, "not an address")


REFERENCE = {"$ref": "#/nope"}


@pytest.mark.parametrize("keyword", ["const", "default", "example", "x-order"])
def test_a_reference_among_data_is_data(keyword: str) -> None:
    assert accepts({keyword: REFERENCE}, REFERENCE)
    assert accepts({"properties": {"a": {"enum": [REFERENCE], "examples": [REFERENCE]}}}, {"a": REFERENCE})
    assert accepts({"properties": {"$ref": {"type": "integer"}}}, {"$ref": 7})
    assert not accepts({"properties": {"$ref": {"type": "integer"}}}, REFERENCE)


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"unused": REFERENCE}},
        {"definitions": {"unused": {"items": REFERENCE}}},
        {"$defs": {"const": {"additionalProperties": REFERENCE}}},
        {"x-place": REFERENCE, "items": {"$ref": "#/x-place"}},
    ],
)
def test_a_reference_to_nowhere_is_refused_wherever_a_schema_may_stand(schema: Any) -> None:
    with pytest.raises(SchemaError, match="points at nothing"):
        compile_schema(schema)


def test_a_circle_behind_a_place_that_only_a_reference_reaches_is_refused() -> None:
    with pytest.raises(SchemaError, match="leads back to itself"):
        compile_schema({"x-a": {"anyOf": [{"$ref": "#/x-a"}]}, "items": {"$ref": "#/x-a"}})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "float"}, "unknown type 'float'"),
        ({"type": "dict"}, "unknown type 'dict'"),
        ({"type": "any"}, "unknown type 'any'"),
        ({"type": []}, "type must be"),
        ({"enum": "a"}, "enum must be a list"),
        ({"minimum": "3"}, "minimum must be a number"),
        ({"minimum": True}, "minimum must be a number"),
        ({"maximum": math.nan}, "maximum must be a number"),
        ({"multipleOf": math.inf}, "multipleOf must be a number"),
        ({"maxLength": math.inf}, "maxLength must be a whole number"),
        ({"items": {"minLength": math.inf}}, "#/items: minLength must be a whole number"),
        ({"items": {"multipleOf": math.inf}}, "#/items: multipleOf must be a number"),
        ({"multipleOf": 0}, "multipleOf must be more than 0"),
        ({"minLength": -1}, "minLength must be a whole number"),
        ({"maxItems": 1.5}, "maxItems must be a whole number"),
        ({"required": "a"}, "required must be a list of names"),
        ({"properties": []}, "properties must be an object"),
        ({"items": [{}]}, "a list of them is prefixItems"),
        ({"anyOf": []}, "anyOf must be a list of at least one schema"),
        ({"uniqueItems": 1}, "uniqueItems must be true or false"),
        ({"pattern": 3}, "pattern must be a string"),
        ({"properties": {"a": 3}}, "#/properties/a: a schema is an object or a boolean, got integer"),
        ({"$ref": "#/$defs/none"}, "points at nothing"),
        ({"$ref": "https://example.org/a"}, "is not local"),
        ({"$ref": "#anchor"}, "is not local"),
        ({"$ref": "#"}, "leads back to itself"),
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
          "properties": {"x": {"$ref": "#/$defs/a"}}}, "leads back to itself"),
        ({"properties": {"a": {"$id": "https://example.org/b"}}}, "unsupported keyword"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_enforced_is_refused_with_its_place(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        compile_schema(schema)
    assert message in str(raised.value)


def test_references_are_pointers_with_escapes() -> None:
    defs = {"a/b": {"type": "integer"}, "c~d": {"type": "string"}, "e%f": {"type": "null"}}
    part = {
        "properties": {
            "x": {"$ref": "#/$defs/a~1b"},
            "y": {"$ref": "#/$defs/c~0d"},
            "z": {"$ref": "#/$defs/e%25f"},
        }
    }
    schema = {**part, "$defs": defs, "prefixItems": [{"$ref": "#/properties/x"}]}
    assert accepts(schema, {"x": 1, "y": "s", "z": None})
    assert not accepts(schema, {"y": 1})
    assert not accepts(schema, ["no integer"])


def test_a_value_nested_deeper_than_the_stack_is_a_problem_and_no_crash() -> None:
    value: Any = {"value": 1}
    for _ in range(5000):
        value = {"value": 1, "next": value}
    assert problem(TREE, value).message == "is nested too deeply"


def test_a_problem_says_where_it_is() -> None:
    schema = {"properties": {"lines": {"items": {"properties": {"zip": {"type": "string"}}}}}}
    assert problem(schema, {"lines": [{}, {"zip": 7}]}).where == "lines[1].zip"
