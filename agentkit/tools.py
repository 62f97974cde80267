# Built by bookkit from chapters/02-tools.md. Edit the chapter, not this file.
# bookkit: cells fbeb777ac35a, body c50cc64d9775
"""Tools."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import json
import math
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agentkit.schema import JSON as JSON  # `as`: the chapters to come take these three from here
from agentkit.schema import (
    Contract,
    SchemaError,
    compile_contract,
    compile_schema,
    describe,
    member_hints,
    parameters_from_hints,
    schema_from_hint,
    type_label,
)
from agentkit.schema import json_type as json_type
from agentkit.schema import show as show

__all__ = [
    "ALLOWED",
    "DECIMAL",
    "LIMIT",
    "LOOKUP",
    "MAX_BITS",
    "MAX_DIGITS",
    "MAX_EXPRESSION",
    "MAX_NESTING",
    "NUMERAL",
    "OPERATORS",
    "POLICY",
    "READ",
    "REFUND",
    "SPELLINGS",
    "STRANGE",
    "TOO_LARGE",
    "TOO_LARGE_FLOAT",
    "TOO_SMALL_FLOAT",
    "WEATHER",
    "WEATHER_SCHEMA",
    "Parameter",
    "Registry",
    "ToolCall",
    "ToolSchema",
    "ToolSpec",
    "Validation",
    "apply_operator",
    "argument_notes",
    "bits",
    "bounded",
    "calculate",
    "calculator",
    "check_call",
    "contract_of",
    "default_of",
    "desk_handlers",
    "desk_tools",
    "evaluate",
    "evaluate_leaf",
    "get_time",
    "get_weather",
    "is_square_root",
    "literal",
    "make_environment",
    "make_lookup_tool",
    "nearest",
    "needs_reviving",
    "own_name",
    "plain_copy",
    "plain_name",
    "power",
    "refuse_unnamed",
    "render_descriptions",
    "render_schema_prompt",
    "revive",
    "reviving",
    "root",
    "safe_calculate",
    "signature_of",
    "square_root",
    "syntax_tree",
    "tool_from_function",
    "tool_schema_json",
    "validate_arguments",
    "validate_call",
    "wire_name",
]


# %% chapters/02-tools.md § Tools

if TYPE_CHECKING:
    from fractions import Fraction


# %% chapters/02-tools.md § What a handler grants

POLICY = "Damaged orders: refund the amount paid, up to 5000 cents automatically."


def desk_handlers(effects: list[dict[str, Any]]) -> dict[str, Callable[..., Any]]:
    """The desk's handlers. `refund_order` leaves a receipt in `effects`; the others read."""
    orders = {"A-17": {"order_id": "A-17", "status": "damaged", "paid_cents": 4999}}

    def lookup_order(order_id: str) -> dict[str, Any]:
        if order_id not in orders:
            raise KeyError(f"no such order: {order_id}")
        return dict(orders[order_id])

    def read_policy() -> str:
        return POLICY

    def refund_order(order_id: str, amount_cents: int) -> dict[str, Any]:
        receipt = {"order_id": order_id, "refunded_cents": amount_cents}
        effects.append(receipt)
        return dict(receipt)

    handlers = (lookup_order, read_policy, refund_order)
    return {handler.__name__: handler for handler in handlers}


# %% chapters/02-tools.md § A contract as data


@dataclass(frozen=True)
class ToolSpec:
    """One tool that the harness may run for a model.

    `schema` says what it accepts, in one of three spellings: a shorthand `{name: type}`, a JSON
    Schema, or a `ToolSchema`. It is compiled here, once; `SchemaError` names what cannot be
    enforced. `handler` is called with the arguments by name and has whatever authority its code
    has. `effectful` marks a tool that changes the world.
    """

    description: str
    schema: Mapping[str, Any] | ToolSchema
    handler: Callable[..., Any]
    effectful: bool = False
    contract: Contract = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "contract", contract_of(self.schema))

    @property
    def parameters(self) -> dict[str, JSON]:
        """What the tool accepts, as JSON Schema."""
        return self.contract.parameters


def contract_of(schema: Mapping[str, Any] | ToolSchema) -> Contract:
    """The contract behind any of the three spellings of a tool's schema."""
    contract = getattr(schema, "contract", None)
    if isinstance(contract, Contract):
        return contract
    if not isinstance(schema, Mapping):
        raise SchemaError(f"a tool's schema is {SPELLINGS}, got {json_type(schema)}")
    shorthand = not any(isinstance(part, str | Mapping | list | bool) for part in schema.values())
    return compile_contract(parameters_from_hints(schema) if shorthand else plain_copy(schema))


SPELLINGS = "{name: type} throughout, JSON Schema throughout, or a ToolSchema"


def plain_copy(schema: Mapping[str, Any]) -> dict[str, JSON]:
    """A JSON Schema as it will be sent, and as nobody else can change it."""
    try:
        return dict(json.loads(json.dumps(schema)))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"a tool's schema is {SPELLINGS}; as JSON: {error}") from None


LOOKUP = "Status of an order and what was paid for it."
READ = "The refund policy, as text."
REFUND = "Pay money back for an order. This is real money."


def desk_tools(effects: list[dict[str, Any]]) -> dict[str, ToolSpec]:
    """The support desk's three tools. Only a refund leaves a receipt in `effects`."""
    handlers = desk_handlers(effects)
    refund_fields = {"order_id": str, "amount_cents": int}
    return {
        "lookup_order": ToolSpec(LOOKUP, {"order_id": str}, handlers["lookup_order"]),
        "read_policy": ToolSpec(READ, {}, handlers["read_policy"]),
        "refund_order": ToolSpec(REFUND, refund_fields, handlers["refund_order"], effectful=True),
    }


# %% chapters/02-tools.md § A call, and judging it


@dataclass(frozen=True)
class ToolCall:
    """A parsed proposal to run one tool. It has no authority of its own.

    `arguments` is None when the model's text could not be read; `problem` then says why.
    """

    call_id: str
    name: str
    arguments: dict[str, Any] | None
    problem: str | None = None


def check_call(call: ToolCall, tools: Mapping[str, ToolSpec]) -> tuple[ToolCall | None, str | None]:
    """`(call, None)` with the tool's own name and normalised arguments, or `(None, reason)`."""
    if call.problem is not None or call.arguments is None:
        return None, call.problem or "arguments were not valid JSON"
    name = own_name(tools, call.name) if isinstance(call.name, str) else None
    if name is None:
        available = ", ".join(tools) or "none"
        return None, f"unknown tool: {plain_name(call.name)}. Available: {available}"
    contract = tools[name].contract
    problem = contract.problem(call.arguments)
    if problem is not None:
        return None, describe(problem, name)
    arguments = contract.schema.normalise(call.arguments)
    if arguments is call.arguments and name == call.name:
        return call, None
    return ToolCall(call.call_id, name, arguments), None


def validate_call(call: ToolCall, tools: Mapping[str, ToolSpec]) -> str | None:
    """None for a well-formed call, else a reason that the model can act on. Permits nothing."""
    return check_call(call, tools)[1]


def wire_name(name: str) -> str:
    """A tool's name as providers accept it: letters, digits, `_` and `-`, at most 64 of them."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def own_name(tools: Mapping[str, ToolSpec], name: str) -> str | None:
    """The name under which `tools` holds a tool that a model calls `name`; None for an invented one."""
    if name in tools:
        return name
    return next((own for own in tools if wire_name(own) == name), None)


def plain_name(name: Any) -> str:
    """An invented name as a message may repeat it: quoted when it is not a plain word."""
    return name if isinstance(name, str) and re.fullmatch(r"[\w.-]{1,64}", name) else show(name)


# %% chapters/02-tools.md § A registry


class Registry(Mapping[str, ToolSpec]):
    """The tools on offer, by name. Two names that would look alike on the wire are refused."""

    def __init__(self, tools: Mapping[str, ToolSpec] | Iterable[tuple[str, ToolSpec]] = ()) -> None:
        self._tools: dict[str, ToolSpec] = {}
        self._own: dict[str, str] = {}
        for name, spec in tools.items() if isinstance(tools, Mapping) else tools:
            self.register(name, spec)

    def register(self, name: str, spec: ToolSpec) -> None:
        """Add a tool. Raises `ValueError` for an empty name and for one taken on the wire."""
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a tool's name must be a string that is not empty, got {show(name)}")
        wire = wire_name(name)
        taken = self._own.get(wire)
        if taken is not None:
            clash = f"{show(name)} collides with {show(taken)}"
            raise ValueError(f"tool {clash}: both are {wire} on the wire")
        self._tools[name] = spec
        self._own[wire] = name

    def own_name(self, name: str) -> str | None:
        """The name under which a tool is registered, given that name or its wire-safe form."""
        return name if name in self._tools else self._own.get(name)

    def find(self, name: str) -> ToolSpec | None:
        """A tool by its own or its wire-safe name."""
        own = self.own_name(name)
        return None if own is None else self._tools[own]

    def __getitem__(self, name: str) -> ToolSpec:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._tools)})"


def make_environment() -> tuple[Registry, list[dict[str, Any]]]:
    """A fresh support desk: its three tools, and the log in which every refund leaves a receipt.

    The log is what really happened. Every claim about safety in this book is checked against
    it, and none against what a model says.
    """
    effects: list[dict[str, Any]] = []
    return Registry(desk_tools(effects)), effects


# %% chapters/02-tools.md § What the model sees


def tool_schema_json(tools: Mapping[str, ToolSpec]) -> list[dict[str, Any]]:
    """The tools as data in a request, in OpenAI's form: everything but the handlers."""
    return [
        {
            "type": "function",
            "function": {
                "name": wire_name(name),
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for name, spec in Registry(tools).items()
    ]


def render_descriptions(tools: Mapping[str, ToolSpec]) -> str:
    """The tools as plain prompt text: a name and a sentence each."""
    return "\n".join(f"- {name}: {spec.description}" for name, spec in tools.items())


# %% chapters/02-tools.md § A typed signature


@dataclass(frozen=True)
class Parameter:
    """One argument of a tool: name, JSON type, what it means, and the rules for its value.

    `rules` holds further JSON Schema keywords, such as `{"minimum": 1}` or `{"items": {"type":
    "string"}}`.
    """

    name: str
    type: str
    description: str = ""
    required: bool = True
    enum: list[JSON] | None = None
    rules: Mapping[str, JSON] = field(default_factory=dict)

    def to_json_schema(self) -> dict[str, JSON]:
        """The parameter as an entry of `properties`."""
        schema: dict[str, JSON] = {"type": self.type}
        if self.description:
            schema["description"] = self.description
        if self.enum is not None:
            schema["enum"] = list(self.enum)
        return {**schema, **self.rules}

    def signature(self) -> str:
        """`name: type`, with a question mark behind an optional name."""
        return signature_of(self.name, self.to_json_schema(), self.required)


def signature_of(name: str, schema: JSON, required: bool) -> str:
    """One parameter as a signature shows it: `units?: enum[celsius|fahrenheit]`."""
    values = schema.get("enum") if isinstance(schema, dict) else None
    label = f"enum[{'|'.join(map(str, values))}]" if values else type_label(schema)
    return f"{name}{'' if required else '?'}: {label}"


@dataclass(frozen=True)
class ToolSchema:
    """The typed signature of one tool: what it is called, what it does, what it accepts."""

    name: str
    description: str
    parameters: list[Parameter]
    contract: Contract = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        contract = compile_contract(self.to_json_schema()["parameters"])
        object.__setattr__(self, "contract", contract)

    def to_json_schema(self) -> dict[str, JSON]:
        """The declaration as a model's API takes it, with the parameters as JSON Schema."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": {
                "type": "object",
                "properties": {each.name: each.to_json_schema() for each in self.parameters},
                "required": [each.name for each in self.parameters if each.required],
            },
        }

    def signature(self) -> str:
        """The tool on one line, as a programmer would declare it."""
        return f"{self.name}({', '.join(parameter.signature() for parameter in self.parameters)})"


WEATHER_SCHEMA = ToolSchema(
    name="get_weather",
    description="Look up the current weather for a place.",
    parameters=[
        Parameter("location", "string", "City and state or country, e.g. 'Boston, MA'."),
        Parameter(
            "units",
            "string",
            "Temperature unit.",
            required=False,
            enum=["celsius", "fahrenheit"],
        ),
    ],
)


def render_schema_prompt(schemas: Iterable[ToolSchema]) -> str:
    """The tools as typed prompt text: a signature, a sentence, and a line for each parameter."""
    blocks = []
    for schema in schemas:
        lines = [f"- {schema.signature()}", f"    {schema.description}"]
        for parameter in schema.parameters:
            need = "required" if parameter.required else "optional"
            lines.append(f"    {parameter.signature()} ({need}) {parameter.description}".rstrip())
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


# %% chapters/02-tools.md § Five calls that parse


@dataclass(frozen=True)
class Validation:
    """A verdict on arguments: the normalised `args`, or the problem's `kind` and a message."""

    ok: bool
    args: dict[str, Any] | None = None
    kind: str | None = None
    message: str | None = None


def validate_arguments(schema: ToolSchema, args: JSON) -> Validation:
    """Judge parsed arguments by a tool's signature; one sentence says what is wrong."""
    problem = schema.contract.problem(args)
    if problem is not None:
        return Validation(False, None, problem.kind, f"Error: {describe(problem, schema.name)}")
    return Validation(True, schema.contract.schema.normalise(args))


# %% chapters/02-tools.md § From a function


def revive(hint: Any, value: JSON) -> Any:
    """A valid JSON value as the object that `hint` asks for: dataclasses and enumerations are built."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return revive(parts[0], value)
    if origin in (typing.Union, types.UnionType):
        fitting = (part for part in parts if compile_schema(schema_from_hint(part)).problem(value) is None)
        return revive(next(fitting), value)
    if isinstance(value, list) and origin is list:
        return [revive(parts[0], item) for item in value]
    if isinstance(value, dict) and origin is dict:
        return {key: revive(parts[1], item) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
        hints = member_hints(hint)
        return hint(**{name: revive(hints[name], item) for name, item in value.items()})
    return value


def reviving(function: Callable[..., Any], hints: Mapping[str, Any]) -> Callable[..., Any]:
    """The function itself, or one that first builds the objects its hints ask for."""
    if not any(needs_reviving(hint) for name, hint in hints.items() if name != "return"):
        return function
    return lambda **arguments: function(
        **{name: revive(hints[name], value) for name, value in arguments.items()}
    )


def needs_reviving(hint: Any) -> bool:
    """Whether a dataclass or an enumeration occurs in a hint."""
    built = isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, enum.Enum))
    inner = member_hints(hint).values() if typing.is_typeddict(hint) else typing.get_args(hint)
    return built or any(needs_reviving(part) for part in inner)


def tool_from_function(
    function: Callable[..., Any], *, description: str = "", effectful: bool = False
) -> ToolSpec:
    """A tool made from a function's hints, defaults and docstring.

    The first line of the docstring describes the tool; its `Args:` section and `Annotated[…,
    "text"]` tell of the parameters, and one with a default is optional. Dataclasses and
    enumerations among the arguments are built before the call. Raises `SchemaError` for a
    parameter without a hint or without a name.
    """
    text = inspect.getdoc(function) or ""
    hints = typing.get_type_hints(function, include_extras=True)
    notes = argument_notes(text)
    properties: dict[str, JSON] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        refuse_unnamed(parameter, hints)
        note = {"description": notes[name]} if name in notes else {}
        properties[name] = {**note, **schema_from_hint(hints[name]), **default_of(parameter)}
        required += [name] if parameter.default is parameter.empty else []
    schema = {"type": "object", "properties": properties, "required": required}
    summary = description or text.split("\n")[0]
    return ToolSpec(summary, schema, reviving(function, hints), effectful)


def refuse_unnamed(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> None:
    """Raise for a parameter that a model cannot be told about."""
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise SchemaError(f"parameter {parameter} cannot be given by name")
    if parameter.name not in hints:
        raise SchemaError(f"parameter {parameter.name} has no type hint")


def default_of(parameter: inspect.Parameter) -> dict[str, JSON]:
    """The default of a parameter as an annotation, when there is one and JSON can hold it."""
    plain = isinstance(parameter.default, str | int | float | None)
    return {"default": parameter.default} if plain else {}


def argument_notes(docstring: str) -> dict[str, str]:
    """The descriptions in the `Args:` section of a docstring."""
    notes: dict[str, str] = {}
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", docstring, re.MULTILINE)
    for line in section[1].splitlines() if section else []:
        entry = re.match(r"\s+(\w+)(?: \([^)]*\))?:\s+(.*)", line)
        if entry:
            notes[entry[1]] = entry[2].strip()
        elif notes and line.strip():
            notes[list(notes)[-1]] += " " + line.strip()
    return notes


# %% chapters/02-tools.md § A calculator that only calculates

MAX_EXPRESSION = 500
MAX_NESTING = 50
ALLOWED = "Allowed are numbers, + - * / **, parentheses and sqrt()."
STRANGE = r"[^ -~]|[#\\]"
NUMERAL = r"(?<![\w.])\.?\d(?:[eE][+-]?\d|[\w.])*"
DECIMAL = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


def syntax_tree(expression: str) -> ast.expr:
    """The parsed expression, with its numbers exactly as they were written."""
    text = " ".join(expression.split())
    for numeral in re.findall(NUMERAL, text):
        if not re.fullmatch(DECIMAL, numeral):
            raise ValueError(f"not a decimal number: {show(numeral)}. {ALLOWED}")
    try:
        if re.search(STRANGE, text):
            raise ValueError
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"not an arithmetic expression: {show(expression)}. {ALLOWED}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = text[node.col_offset : node.end_col_offset]  # the value has been rounded
    return tree


MAX_DIGITS = 1000
TOO_LARGE = f"the result is too large: more than {MAX_DIGITS} digits"
LIMIT = 10**MAX_DIGITS
MAX_BITS = LIMIT.bit_length()


def bits(value: Fraction) -> int:
    """The size of a number: bits in the longer of numerator and denominator."""
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def bounded(value: Fraction) -> Fraction:
    """The value itself unless it has too many digits, above or below the line."""
    if max(abs(value.numerator), value.denominator) >= LIMIT:
        raise ValueError(TOO_LARGE)
    return value


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """`base ** exponent`, refused before it is computed when it would be too large."""
    if exponent.denominator != 1:
        return root(base, exponent)
    if (bits(base) - 1) * abs(exponent.numerator) >= MAX_BITS:
        raise ValueError(TOO_LARGE)
    return bounded(base**exponent.numerator)


def literal(text: str) -> Fraction:
    """A number as it was written: 0.1 is one tenth, not the binary fraction next to it."""
    from fractions import Fraction  # here, because it loads slowly and only the calculator needs it

    digits, _, exponent = text.lower().partition("e")
    shift = max(-2 * MAX_DIGITS, min(int(exponent or 0), 2 * MAX_DIGITS))  # beyond it all are too long
    return bounded(Fraction(f"{digits}e{shift}"))


TOO_LARGE_FLOAT = "the result is too large for a number that is not whole: more than 308 digits"
TOO_SMALL_FLOAT = "the result is too small: closer to zero than a float can be"


def root(base: Fraction, exponent: Fraction) -> Fraction:
    """`base` to a power that is not whole: the nearest float, exact only for the root of a square."""
    if base < 0:
        raise ValueError("the result is not a real number")
    if exponent * 2 == 1:
        return square_root(base)
    result = nearest(base) ** nearest(exponent)
    if base and not result:
        raise ValueError(TOO_SMALL_FLOAT)
    return type(base)(result)


def square_root(value: Fraction) -> Fraction:
    """The exact root of a square, else the nearest float."""
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return type(value)(top, bottom)
    return type(value)(math.sqrt(nearest(value)))


def nearest(value: Fraction) -> float:
    """The nearest float. Raises `OverflowError` above all floats, `ValueError` below them."""
    if value and not float(value):
        raise ValueError(TOO_SMALL_FLOAT)
    return float(value)


def evaluate(node: ast.expr, depth: int) -> Fraction:
    """The exact value of a node. A chain of operators is walked: a long sum is not deep."""
    if depth > MAX_NESTING:
        raise ValueError(f"the expression is nested more than {MAX_NESTING} deep")
    pending: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp):
        pending.append(node)
        node = node.left
    value = evaluate_leaf(node, depth)
    for step in reversed(pending):
        value = apply_operator(step.op, value, evaluate(step.right, depth + 1))
    return value


def evaluate_leaf(node: ast.expr, depth: int) -> Fraction:
    """The value of a number, a sign with its operand, or a square root; nothing else."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return literal(node.kind or "")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = evaluate(node.operand, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and is_square_root(node):
        return root(evaluate(node.args[0], depth + 1), literal("0.5"))
    element = show(node.value) if isinstance(node, ast.Constant) else type(node).__name__
    raise ValueError(f"unsupported expression element: {element}. {ALLOWED}")


OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def apply_operator(symbol: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    """The exact result of one binary operator."""
    if isinstance(symbol, ast.Pow):
        return power(left, right)
    if type(symbol) not in OPERATORS:
        raise ValueError(f"unsupported operator: {type(symbol).__name__}. {ALLOWED}")
    return bounded(OPERATORS[type(symbol)](left, right))


def is_square_root(node: ast.Call) -> bool:
    """Whether a call is `sqrt` with one plain argument."""
    named = isinstance(node.func, ast.Name) and node.func.id == "sqrt"
    return named and len(node.args) == 1 and not node.keywords


def safe_calculate(expression: str) -> int | float:
    """The value of an arithmetic expression, exact as long as every step is rational.

    Whole results are integers. Raises `ValueError`, with one sentence, for what is not
    arithmetic and for arithmetic that is too long, too deep or too large to be done at once.
    """
    if not isinstance(expression, str):
        raise ValueError(f"an expression is a string, got {json_type(expression)}")
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"the expression is longer than {MAX_EXPRESSION} characters")
    try:
        value = evaluate(syntax_tree(expression), 0)
        return value.numerator if value.denominator == 1 else nearest(value)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except OverflowError:
        raise ValueError(TOO_LARGE_FLOAT) from None


def calculator(text: str) -> str:
    """`safe_calculate` from text to text, for prompts in which a tool maps string to string."""
    return str(safe_calculate(text))


def calculate(expression: str) -> dict[str, int | float]:
    """`safe_calculate` with its result under a name, as a JSON object."""
    return {"result": safe_calculate(expression)}


# %% chapters/02-tools.md § Facts and time


def make_lookup_tool(facts: Mapping[str, str]) -> ToolSpec:
    """A tool that returns a fact by its exact key; the description lists the keys."""

    def lookup(key: str) -> str:
        if key not in facts:
            raise KeyError(f"no fact under {show(key)}")
        return facts[key]

    description = f"Look up a fact by exact key. Keys: {', '.join(facts)}."
    return ToolSpec(description, {"key": str}, lookup)


def get_time(clock: Callable[[], datetime]) -> dict[str, str]:
    """The time that `clock` tells, in UTC, as ISO 8601."""
    return {"now": clock().astimezone(UTC).isoformat()}


WEATHER = {
    "Paris": (18, "raining"),
    "Berlin": (21, "cloudy"),
    "Tokyo": (26, "clear"),
    "Boston": (17, "clear"),
}


def get_weather(location: str, units: str = "celsius") -> str:
    """The weather in one of four cities, from a table: `18C and raining in Paris`."""
    city = location.split(",")[0].strip()
    if city not in WEATHER:
        raise ValueError(f"no weather for {show(location)}. Known: {', '.join(WEATHER)}")
    degrees, sky = WEATHER[city]
    reading = f"{degrees}C" if units == "celsius" else f"{round(degrees * 9 / 5 + 32)}F"
    return f"{reading} and {sky} in {city}"
