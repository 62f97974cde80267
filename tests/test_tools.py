"""Tools: contracts, registries, calls and the support desk, with the book's own values."""

from __future__ import annotations

import dataclasses
import enum
import json
import typing
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Optional

import pytest
from cases import load
from hypothesis import given
from hypothesis import strategies as st

from agentkit.schema import SchemaError
from agentkit.tools import (
    WEATHER_SCHEMA,
    Parameter,
    Registry,
    ToolCall,
    ToolSchema,
    ToolSpec,
    check_call,
    desk_tools,
    get_time,
    get_weather,
    make_environment,
    make_lookup_tool,
    render_descriptions,
    render_schema_prompt,
    tool_from_function,
    tool_schema_json,
    validate_arguments,
    validate_call,
    wire_name,
)


def tool(schema: Any) -> Registry:
    return Registry({"act": ToolSpec("Acts.", schema, lambda **arguments: arguments)})


def reason(schema: Any, arguments: Any) -> str | None:
    return validate_call(ToolCall("c1", "act", arguments), tool(schema))


# --- the support desk ---------------------------------------------------------------------------
def test_an_unguarded_handler_pays_whatever_it_is_asked_for() -> None:
    tools, effects = make_environment()
    assert tools["lookup_order"].handler(order_id="A-17") == {
        "order_id": "A-17", "status": "damaged", "paid_cents": 4999
    }  # fmt: skip
    tools["refund_order"].handler(order_id="A-17", amount_cents=999999)
    assert effects == [{"order_id": "A-17", "refunded_cents": 999999}]


def test_only_the_refund_is_effectful_and_reads_leave_the_log_empty() -> None:
    tools, effects = make_environment()
    tools["lookup_order"].handler(order_id="A-17")["paid_cents"] = 0
    assert tools["lookup_order"].handler(order_id="A-17")["paid_cents"] == 4999
    assert "5000 cents" in tools["read_policy"].handler()
    assert [name for name, spec in tools.items() if spec.effectful] == ["refund_order"]
    assert effects == []


def test_a_missing_order_is_a_key_error_that_names_it() -> None:
    tools, _ = make_environment()
    with pytest.raises(KeyError, match="no such order: Z-99"):
        tools["lookup_order"].handler(order_id="Z-99")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("refund_order", {"order_id": "A-17", "amount_cents": 4999}, None),
        ("refund_order", {"order_id": "A-17", "amount_cents": 999999}, None),  # well formed is not permitted
        ("refund_order", {"order_id": "A-17", "amount_cents": "lots"},
         'parameter "amount_cents" must be integer, got string.'),
        ("delete_database", {},
         "unknown tool: delete_database. Available: lookup_order, read_policy, refund_order"),
        ("read_policy", {"order_id": "A-17"}, 'unknown parameter "order_id" for read_policy. It takes none.'),
        ("lookup_order", None, "arguments were not valid JSON"),
    ],
)  # fmt: skip
def test_a_proposal_gets_a_verdict_that_the_model_can_act_on(
    name: str, arguments: Any, expected: str | None
) -> None:
    tools, _ = make_environment()
    assert validate_call(ToolCall("c1", name, arguments), tools) == expected
    assert validate_call(ToolCall("c1", name, arguments), dict(tools)) == expected


def test_the_problem_of_an_unreadable_call_is_its_verdict() -> None:
    tools, _ = make_environment()
    call = ToolCall("c1", "lookup_order", None, "arguments were not valid JSON: NaN is not JSON")
    assert validate_call(call, tools) == "arguments were not valid JSON: NaN is not JSON"


def test_the_refund_tool_is_advertised_as_data_without_its_handler() -> None:
    tools, _ = make_environment()
    function = tool_schema_json(tools)[2]["function"]
    assert function["name"] == "refund_order"
    assert function["parameters"] == {
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "amount_cents": {"type": "integer"}},
        "required": ["amount_cents", "order_id"],
    }
    assert json.loads(json.dumps(tool_schema_json(tools))) == tool_schema_json(tools)


# --- coercion that others ship ------------------------------------------------------------------
@pytest.mark.parametrize(
    ("hint", "value", "given"),
    [(int, True, "boolean"), (int, "7", "string"), (str, 2.0, "number"), (int, 1.5, "number"),
     (bool, 1, "integer"), (float, "1.5", "string"), (list, "a", "string"),
     (dict, [], "array"), (str, None, "null")],
)  # fmt: skip
def test_no_value_is_silently_coerced(hint: type, value: Any, given: str) -> None:
    message = reason({"x": hint}, {"x": value})
    assert message is not None and message.endswith(f"got {given}.")


def test_one_point_zero_is_an_integer_and_reaches_gate_and_handler_as_one() -> None:
    call, message = check_call(ToolCall("c1", "act", {"n": 1.0}), tool({"n": int}))
    assert message is None and call is not None
    assert call.arguments == {"n": 1} and type(call.arguments["n"]) is int


def test_a_valid_call_that_needs_no_change_is_returned_as_it_is() -> None:
    call = ToolCall("c1", "act", {"n": 1})
    assert check_call(call, tool({"n": int})) == (call, None)
    assert check_call(call, tool({"n": int}))[0] is call


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("hint", [int, float])
def test_nan_and_infinity_are_no_numbers(hint: type, value: float) -> None:
    assert (
        reason({"x": hint}, {"x": value})
        == f'parameter "x" must be {"integer" if hint is int else "number"}, got {value}.'
    )


# --- the fixed order ----------------------------------------------------------------------------
WEATHER_CASES = [
    ({"location": "Boston, MA", "units": "celsius"}, None, None),
    ({"units": "celsius"}, "missing",
     'Error: missing required parameter "location" (string) for get_weather.'),
    ({"location": "Boston", "city": "Boston"}, "unknown",
     'Error: unknown parameter "city" for get_weather. Expected: location, units.'),
    ({"location": 42}, "type", 'Error: parameter "location" must be string, got integer.'),
    ({"location": "Boston", "units": "kelvin"}, "enum",
     "Error: parameter \"units\" must be one of [celsius, fahrenheit]; got 'kelvin'."),
    ({"location": "Boston", "units": "Celsius"}, "enum",
     "Error: parameter \"units\" must be one of [celsius, fahrenheit]; got 'Celsius'."),
    ([], "type", "Error: arguments of get_weather must be a JSON object, got array."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "kind", "message"), WEATHER_CASES)
def test_the_weather_examples_have_their_kinds_and_sentences(
    arguments: Any, kind: str | None, message: str | None
) -> None:
    verdict = validate_arguments(WEATHER_SCHEMA, arguments)
    assert (verdict.ok, verdict.kind, verdict.message) == (kind is None, kind, message)
    assert verdict.args == (arguments if kind is None else None)


BREAKS: dict[str, tuple[Any, Any]] = {
    "type": ({"type": "string"}, 1),
    "enum": ({"enum": ["a", "b"]}, "c"),
    "range": ({"type": "integer", "minimum": 10}, 3),
    "pattern": ({"type": "string", "pattern": "^x"}, "abc"),
    "length": ({"type": "string", "minLength": 9}, "abc"),
    "items": ({"type": "array", "uniqueItems": True}, [1, 1]),
    "nested": ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": 1}),
}


@given(
    order=st.permutations(list(BREAKS)),
    arguments=st.permutations(list(BREAKS)),
    count=st.integers(1, len(BREAKS)),
)
def test_problems_are_told_in_one_fixed_order_however_schema_and_arguments_are_written(
    order: list[str], arguments: list[str], count: int
) -> None:
    broken = arguments[:count]
    schema = {"type": "object", "properties": {f"p_{kind}": BREAKS[kind][0] for kind in order}}
    message = reason(schema, {f"p_{kind}": BREAKS[kind][1] for kind in broken})
    first = next(kind for kind in BREAKS if kind in broken)
    assert message is not None and f'"p_{first}' in message


def test_unknown_comes_before_missing_and_missing_before_type() -> None:
    schema = {"a": int, "b": int}
    assert reason(schema, {"a": "x", "c": 1}) == 'unknown parameter "c" for act. Expected: a, b.'
    assert reason(schema, {"a": "x"}) == 'missing required parameter "b" (integer) for act.'
    assert reason(schema, {"a": "x", "b": 1}) == 'parameter "a" must be integer, got string.'


def test_a_nested_problem_names_its_path() -> None:
    address = {
        "type": "object",
        "properties": {"zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
        "required": ["zip"],
    }
    schema = {"type": "object", "properties": {"to": {"type": "array", "items": address}}}
    assert (
        reason(schema, {"to": [{"zip": "12345"}, {}]})
        == 'missing required parameter "to[1].zip" (string) for act.'
    )
    assert reason(schema, {"to": [{"zip": "1"}]}) == (
        "parameter \"to[0].zip\" must match the pattern ^[0-9]{5}$, got '1'."
    )


def test_a_megabyte_of_text_is_not_quoted_back() -> None:
    message = reason({"type": "object", "properties": {"x": {"enum": ["a"]}}}, {"x": "é" * 1_000_000})
    assert message is not None and len(message) < 200
    unknown = validate_call(ToolCall("c1", "x" * 1_000_000, {}), tool({}))
    assert unknown is not None and len(unknown) < 200
    stray = reason({"a": int}, {"x" * 1_000_000: 1})
    assert stray is not None and len(stray) < 300


def test_a_call_with_several_faults_is_mended_one_sentence_at_a_time() -> None:
    tools, _ = make_environment()
    steps = [
        {"order": "A-17", "amount_cents": "lots"},
        {"amount_cents": "lots"},
        {"order_id": "A-17", "amount_cents": "lots"},
        {"order_id": "A-17", "amount_cents": 4999},
    ]
    assert [validate_call(ToolCall("c1", "refund_order", step), tools) for step in steps] == [
        'unknown parameter "order" for refund_order. Expected: order_id, amount_cents.',
        'missing required parameter "order_id" (string) for refund_order.',
        'parameter "amount_cents" must be integer, got string.',
        None,
    ]


def test_the_desk_is_the_same_as_a_plain_dict_of_its_tools() -> None:
    effects: list[dict[str, Any]] = []
    desk = desk_tools(effects)
    assert tool_schema_json(desk) == tool_schema_json(make_environment()[0])
    desk["refund_order"].handler(order_id="A-17", amount_cents=1)
    assert effects == [{"order_id": "A-17", "refunded_cents": 1}]


# --- declared and undeclared --------------------------------------------------------------------
def test_an_undeclared_argument_is_invalid_at_the_top_unless_the_schema_lets_it_in() -> None:
    part = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert reason(part, {"a": 1, "z": 1}) is not None
    assert reason({**part, "additionalProperties": True}, {"a": 1, "z": 1}) is None
    assert reason({**part, "additionalProperties": {"type": "integer"}}, {"z": 1}) is None
    assert reason({**part, "additionalProperties": {"type": "integer"}}, {"z": "s"}) is not None
    assert reason({}, {"z": 1}) == 'unknown parameter "z" for act. It takes none.'


def test_nested_objects_follow_json_schema() -> None:
    nested = {
        "type": "object",
        "properties": {"box": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }
    assert reason(nested, {"box": {"a": 1, "z": 1}}) is None


def test_arguments_declared_through_branches_and_references_are_declared() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "allOf": [{"$ref": "#/$defs/more"}, {"anyOf": [{"properties": {"c": {}}}, {"required": ["b"]}]}],
        "$defs": {
            "more": {"properties": {"b": {"type": "string"}}, "$ref": "#/$defs/most"},
            "most": {"properties": {"d": {}}},
        },
    }
    assert reason(schema, {"a": 1, "b": "x", "c": None, "d": 2}) is None
    assert reason(schema, {"e": 1}) == 'unknown parameter "e" for act. Expected: a, b, c, d.'


# --- names and registries -----------------------------------------------------------------------
def test_a_dotted_name_is_advertised_wire_safe_and_found_by_both_names() -> None:
    spec = ToolSpec("Add.", {"a": int}, print)
    for tools in (Registry({"math.add": spec}), {"math.add": spec}):
        assert tool_schema_json(tools)[0]["function"]["name"] == "math_add"
        for name in ("math.add", "math_add"):
            call, message = check_call(ToolCall("c1", name, {"a": 1}), tools)
            assert message is None and call is not None and call.name == "math.add"
    assert Registry({"math.add": spec}).find("math_add") is spec
    assert Registry({"math.add": spec}).find("math-add") is None


@pytest.mark.parametrize(
    ("first", "second"), [("pay", "pay"), ("math.add", "math_add"), ("a b", "a_b"), ("x" * 64, "x" * 65)]
)
def test_names_that_look_alike_on_the_wire_are_refused_at_registration(first: str, second: str) -> None:
    spec = ToolSpec("Acts.", {}, print)
    with pytest.raises(ValueError, match="collides with"):
        Registry([(first, spec), (second, spec)])
    if first != second:
        with pytest.raises(ValueError, match="collides with"):
            tool_schema_json({first: spec, second: spec})


@pytest.mark.parametrize("name", ["", "  ", 7, None, ["pay"]])
def test_a_name_that_is_no_name_is_refused_at_registration(name: Any) -> None:
    with pytest.raises(ValueError, match="must be a string that is not empty"):
        Registry().register(name, ToolSpec("Acts.", {}, print))


@pytest.mark.parametrize("name", [" pay ", "PAY", "", "pay\n", "p\u0430y"])
def test_an_invented_name_is_never_matched_to_something_similar(name: str) -> None:
    message = validate_call(ToolCall("c1", name, {}), {"pay": ToolSpec("Pays.", {}, print)})
    assert message is not None and message.startswith("unknown tool: ") and message.endswith("Available: pay")


@given(st.text())
def test_a_wire_name_is_always_one_that_providers_accept(name: str) -> None:
    assert len(wire_name(name)) <= 64
    assert wire_name(name).replace("_", "a").replace("-", "a").isalnum() or not name
    assert wire_name(wire_name(name)) == wire_name(name)


def test_a_schema_is_compiled_when_the_tool_is_made_and_not_read_again() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tools = tool(schema)
    schema["properties"]["a"]["type"] = "string"
    assert validate_call(ToolCall("c1", "act", {"a": 1}), tools) is None
    with pytest.raises(SchemaError, match="the arguments of a tool are an object"):
        tool({"type": "string"})


# --- signatures and prompts ---------------------------------------------------------------------
def test_the_weather_tool_renders_as_signature_and_as_json_schema() -> None:
    assert WEATHER_SCHEMA.signature() == "get_weather(location: string, units?: enum[celsius|fahrenheit])"
    assert WEATHER_SCHEMA.to_json_schema() == {
        "name": "get_weather",
        "description": "Look up the current weather for a place.",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "City and state or country, e.g. 'Boston, MA'.",
                },
                "units": {
                    "type": "string",
                    "description": "Temperature unit.",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    }


def test_the_plain_prompt_names_a_tool_and_the_typed_one_shows_its_shape() -> None:
    plain = render_descriptions(
        {"get_weather": ToolSpec(WEATHER_SCHEMA.description, WEATHER_SCHEMA, get_weather)}
    )
    typed = render_schema_prompt([WEATHER_SCHEMA])
    assert plain == "- get_weather: Look up the current weather for a place."
    assert WEATHER_SCHEMA.signature() in typed and "units?: enum[celsius|fahrenheit] (optional)" in typed
    assert "units" not in plain


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (5, "got integer"),
        (None, "got null"),
        ([], "got array"),
        ({"x": int, "y": "string"}, "type is not JSON serializable"),
        ({"type": "object", "properties": {"x": {"enum": [{1}]}}}, "set is not JSON serializable"),
        ({"type": "object", "properties": {"x": {"const": 10**5000}}}, "limit"),
    ],
    ids=["integer", "null", "array", "mixed", "set", "long integer"],
)
def test_what_is_none_of_the_three_spellings_is_refused_with_all_three(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        ToolSpec("a tool", schema, print)
    assert "{name: type} throughout, JSON Schema throughout, or a ToolSchema" in str(raised.value)
    assert message in str(raised.value)


def test_shorthand_json_schema_and_tool_schema_are_one_thing_underneath() -> None:
    parameters = [Parameter("order_id", "string"), Parameter("amount_cents", "integer", rules={"minimum": 1})]
    schema = ToolSchema("refund_order", "Refund.", parameters)
    spec = ToolSpec("Refund.", schema, print)
    assert spec.parameters["required"] == ["order_id", "amount_cents"], "declared order"
    assert ToolSpec("Refund.", {"order_id": str, "amount_cents": int}, print).parameters["required"] == [
        "amount_cents", "order_id"
    ], "sorted for the shorthand"  # fmt: skip
    assert ToolSpec("Refund.", spec.parameters, print).parameters == spec.parameters
    assert not validate_arguments(schema, {"order_id": "A-17", "amount_cents": 0}).ok


# --- tools from functions -----------------------------------------------------------------------
class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Address:
    street: str
    zip: Annotated[str, "Five digits."]
    floor: int = 0


class Range(typing.TypedDict):
    low: int
    high: typing.NotRequired[int]


def book(
    name: str,
    guests: Annotated[int, "How many people."],
    where: Address,
    colours: list[Colour],
    window: Range,
    tags: dict[str, int] | None = None,
    kind: Literal["table", "room"] = "table",
    note: Optional[str] = None,  # noqa: UP045
    price: float = 0.0,
    anything: Any = None,
) -> Any:
    """Book a place for a group.

    Longer prose that no model needs.

    Args:
        name: Who books,
            in full.
        kind (str): What is booked.
    """
    return name, guests, where, colours, window, tags, kind, note, price, anything


def test_a_function_becomes_a_tool_by_its_hints_defaults_and_docstring() -> None:
    spec = tool_from_function(book)
    properties = spec.parameters["properties"]
    assert spec.description == "Book a place for a group."
    assert spec.parameters["required"] == ["name", "guests", "where", "colours", "window"]
    assert properties["name"] == {"description": "Who books, in full.", "type": "string"}
    assert properties["guests"] == {"type": "integer", "description": "How many people."}
    assert properties["where"]["required"] == ["street", "zip"]
    assert properties["where"]["properties"]["zip"] == {"type": "string", "description": "Five digits."}
    assert properties["colours"] == {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}
    assert properties["window"]["required"] == ["low"]
    assert properties["tags"]["anyOf"][1] == {"type": "null"}
    assert properties["kind"] == {
        "description": "What is booked.",
        "type": "string",
        "enum": ["table", "room"],
        "default": "table",
    }
    assert properties["note"] == {"type": ["string", "null"], "default": None}
    assert properties["price"] == {"type": "number", "default": 0.0}
    assert properties["anything"] == {"default": None}


def test_dataclasses_and_enumerations_are_built_before_the_call() -> None:
    spec = tool_from_function(book)
    arguments = {
        "name": "Ada",
        "guests": 2.0,
        "where": {"street": "S", "zip": "1"},
        "colours": ["red"],
        "window": {"low": 1},
    }
    call, message = check_call(ToolCall("c1", "book", arguments), {"book": spec})
    assert message is None and call is not None and call.arguments is not None
    result = spec.handler(**call.arguments)
    assert result[1:5] == (2, Address("S", "1", 0), [Colour.RED], {"low": 1})


@dataclasses.dataclass
class Stay:
    UNIT: typing.ClassVar[str] = "nights"
    nights: int
    total: int = dataclasses.field(init=False, default=0)


class Trip(typing.TypedDict):
    stay: Stay
    colours: typing.NotRequired[list[Colour]]


def test_a_field_that_a_dataclass_sets_itself_is_not_advertised() -> None:
    def stay(where: Stay) -> Stay:
        return where

    spec = tool_from_function(stay)
    assert list(spec.parameters["properties"]["where"]["properties"]) == ["nights"]
    assert spec.handler(where={"nights": 2}) == Stay(2)
    given = ToolCall("c1", "stay", {"where": {"nights": 2, "total": 9}})
    assert 'unknown parameter "where.total"' in str(validate_call(given, {"stay": spec}))


def test_dataclasses_and_enumerations_inside_a_typed_dictionary_are_built() -> None:
    def travel(trip: Trip) -> Trip:
        return trip

    spec = tool_from_function(travel)
    trip = {"stay": {"nights": 2}, "colours": ["red"]}
    assert spec.handler(trip=trip) == {"stay": Stay(2), "colours": [Colour.RED]}
    assert spec.handler(trip={"stay": {"nights": 2}}) == {"stay": Stay(2)}


def test_an_argument_that_only_a_constructor_takes_cannot_be_advertised() -> None:
    @dataclasses.dataclass
    class Room:
        beds: dataclasses.InitVar[int]

    def rent(room: Any) -> None: ...

    rent.__annotations__["room"] = Room
    with pytest.raises(SchemaError, match="no JSON Schema"):
        tool_from_function(rent)


def test_a_function_that_needs_no_objects_is_its_own_handler() -> None:
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert tool_from_function(add).handler is add


def test_a_parameter_that_cannot_be_advertised_is_refused() -> None:
    def untyped(a): ...  # type: ignore[no-untyped-def]
    def many(*rest: int) -> None: ...
    def positional(a: int, /) -> None: ...
    def strange(a: complex) -> None: ...

    for function, message in (
        (untyped, "has no type hint"), (many, "by name"), (positional, "by name"), (strange, "no JSON Schema")
    ):  # fmt: skip
        with pytest.raises(SchemaError, match=message):
            tool_from_function(function)


# --- small tools --------------------------------------------------------------------------------
def test_the_lookup_tool_lists_its_keys_and_refuses_others() -> None:
    lookup = make_lookup_tool({"speed of light": "299792458 m/s"})
    assert lookup.description == "Look up a fact by exact key. Keys: speed of light."
    assert lookup.handler(key="speed of light") == "299792458 m/s"
    with pytest.raises(KeyError, match="no fact under"):
        lookup.handler(key="speed of sound")


def test_weather_and_time_come_from_a_table_and_an_injected_clock() -> None:
    assert get_weather("Paris") == "18C and raining in Paris"
    assert get_weather("Boston, MA", "fahrenheit") == "63F and clear in Boston"
    with pytest.raises(ValueError, match=r"no weather for 'Pariss'\. Known: Paris"):
        get_weather("Pariss")
    assert get_time(lambda: datetime(2024, 1, 2, 3, 4, tzinfo=UTC)) == {"now": "2024-01-02T03:04:00+00:00"}


# --- public cases -------------------------------------------------------------------------------
# Four calls of the leaderboard's own answers are labelled invalid, and are: a year "dontcare" where an
# integer is declared, `true` where the string "True" is, null where a string is, and a call that leaves out
# five required lists. All labels hold; none looks wrong.
def test_every_call_of_the_function_calling_leaderboard_has_the_labelled_verdict() -> None:
    records = load("bfcl_calls")
    for case in records:
        tools = Registry(
            {case["name"]: ToolSpec(case["tool"]["description"], case["tool"]["parameters"], print)}
        )
        message = validate_call(ToolCall("c1", wire_name(case["name"]), case["arguments"]), tools)
        assert (message is None) is case["valid"], (case["id"], message)
    assert len(records) >= 600


EXPECTED_WORDS = {
    "missing_required": "missing required parameter",
    "unknown_argument": "unknown parameter",
    "wrong_type": "must be ",
    "enum_violation": "must be ",
}


def test_every_mutation_is_answered_with_its_own_kind_of_sentence_that_names_the_argument() -> None:
    for case in load("bfcl_calls"):
        if case["mutation"]:
            spec = ToolSpec("", case["tool"]["parameters"], print)
            message = validate_call(ToolCall("c1", "t", case["arguments"]), {"t": spec})
            assert message is not None and EXPECTED_WORDS[case["mutation"]] in message, case["id"]
            assert f'"{case["detail"]}' in message, case["id"]


# One record has no schema and no label: the recording kept no tools.
def test_arguments_that_providers_produced_satisfy_the_schemas_they_were_given() -> None:
    labelled = [case for case in load("wire_args_vs_schema") if case["valid"] is not None]
    for case in labelled:
        spec = ToolSpec("", case["schema"], print)
        message = validate_call(ToolCall("c1", "t", case["arguments"]), {"t": spec})
        assert (message is None) is case["valid"], (case["id"], message)
    assert len(labelled) >= 59


# --- calls that nobody parsed -------------------------------------------------------------------
@pytest.mark.parametrize("name", [["act"], None, 7, {}])
def test_a_name_that_is_no_string_is_unknown_and_no_exception(name: Any) -> None:
    assert validate_call(ToolCall("c1", name, {}), tool({})) == f"unknown tool: {name!r}. Available: act"


@pytest.mark.parametrize("arguments", [[], "x", 7, True])
def test_arguments_that_are_no_object_are_invalid_and_no_exception(arguments: Any) -> None:
    message = reason({"n": int}, arguments)
    assert message is not None and message.startswith("arguments of act must be a JSON object, got ")


def test_arguments_nested_deeper_than_the_stack_are_invalid_and_no_exception() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}
    deep: Any = {}
    for _ in range(5000):
        deep = {"next": deep}
    assert reason(tree, {"n": "x", "next": deep}) is not None
    assert reason(tree, deep) is not None
