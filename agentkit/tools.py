# Built by bookkit from chapters/02-tools.md. Edit the chapter, not this file.
# bookkit: cells c2f1195345f6, body 8b244ce04f5b
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
import sys
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

__all__ = [
    "ADVICE",
    "ALLOWED",
    "ANNOTATIONS",
    "BUILDERS",
    "CATEGORIES",
    "CONSTRAINTS",
    "DIGIT",
    "FIXERS",
    "INSIDE",
    "JSON",
    "JSON_NAMES",
    "JSON_TYPES",
    "KINDS",
    "KNOWN_ESCAPES",
    "LIMITS",
    "LOOKUP",
    "MAX_BITS",
    "MAX_DIGITS",
    "MAX_EXPRESSION",
    "MAX_NESTING",
    "MISSING",
    "OPERATORS",
    "OUTSIDE",
    "PLAIN_HINTS",
    "POLICY",
    "RANKS",
    "READ",
    "REFUND",
    "SIZES",
    "SPACE",
    "TOKEN",
    "TOO_LARGE",
    "WEATHER",
    "WEATHER_SCHEMA",
    "WORD",
    "Builder",
    "Check",
    "Compiler",
    "Contract",
    "Fix",
    "Parameter",
    "Problem",
    "Ranges",
    "Registry",
    "Schema",
    "SchemaError",
    "ToolCall",
    "ToolSchema",
    "ToolSpec",
    "Validation",
    "anything",
    "applied_in_place",
    "apply_operator",
    "argument_notes",
    "bits",
    "bounded",
    "branches",
    "build_all_of",
    "build_any_of",
    "build_enum",
    "build_items",
    "build_not",
    "build_numbers",
    "build_object",
    "build_one_of",
    "build_pattern",
    "build_ref",
    "build_sizes",
    "build_type",
    "calculate",
    "calculator",
    "canonical",
    "category_ranges",
    "chain",
    "check_call",
    "check_enum",
    "check_limit",
    "check_multiple",
    "check_pattern",
    "check_size",
    "check_type",
    "check_unique",
    "class_schema",
    "class_text",
    "compile_contract",
    "compile_pattern",
    "compile_schema",
    "complement",
    "contract_of",
    "declared_names",
    "default_of",
    "describe",
    "desk_handlers",
    "enum_schema",
    "escape_ranges",
    "evaluate",
    "evaluate_leaf",
    "every",
    "expect",
    "fix_branches",
    "fix_items",
    "fix_object",
    "fix_ref",
    "fix_type",
    "get_time",
    "get_weather",
    "in_place",
    "is_number",
    "is_square_root",
    "json_type",
    "literal",
    "make_environment",
    "make_lookup_tool",
    "merge",
    "must_be_given",
    "needs_reviving",
    "no_branch",
    "nothing",
    "outside_problem",
    "own_name",
    "parameters_from_hints",
    "plain_name",
    "power",
    "rank",
    "references",
    "refuse_endless",
    "refuse_unknown",
    "refuse_unnamed",
    "render_descriptions",
    "render_schema_prompt",
    "revive",
    "reviving",
    "safe_calculate",
    "schema_from_hint",
    "show",
    "signature_of",
    "square_root",
    "step_into",
    "strip_required",
    "syntax_tree",
    "tool_from_function",
    "tool_schema_json",
    "translate_pattern",
    "translate_token",
    "type_label",
    "type_names",
    "unchanged",
    "union_schema",
    "validate_arguments",
    "validate_call",
    "whole",
    "wire_name",
]


# %% chapters/02-tools.md § Tools

JSON = Any
Check = Callable[[JSON], "Problem | None"]
Fix = Callable[[JSON], JSON]


# %% chapters/02-tools.md § What a handler grants

POLICY = "Damaged orders: refund the amount paid, up to 5000 cents automatically."


def desk_handlers(effects: list[dict[str, Any]]) -> dict[str, Callable[..., Any]]:
    """The handlers of the support desk. `refund_order` leaves a receipt in `effects`; the others read."""
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

    return {"lookup_order": lookup_order, "read_policy": read_policy, "refund_order": refund_order}


# %% chapters/02-tools.md § Three traps in one comparison

JSON_NAMES = {
    type(None): "null", bool: "boolean", int: "integer", float: "number",
    str: "string", list: "array", dict: "object",
}  # fmt: skip


def json_type(value: JSON) -> str:
    """The JSON name of a value's type; a Python name for what JSON cannot hold."""
    if type(value) is float and not math.isfinite(value):
        return str(value)
    return JSON_NAMES.get(type(value), type(value).__name__)


def canonical(value: JSON) -> Any:
    """A hashable stand-in that is equal exactly when two JSON values are: 1 is 1.0 and is not true."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, list):
        return ("array", *map(canonical, value))
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    return value


# %% chapters/02-tools.md § A problem is a sentence


def show(value: JSON, limit: int = 60) -> str:
    """A value as a message may quote it: its repr, cut after `limit` characters."""
    if isinstance(value, str) and len(value) > limit:
        value = value[:limit] + "…"
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= limit + 8 else text[:limit] + "…"


class SchemaError(ValueError):
    """A schema that cannot be enforced as written. The message names the place and the keyword."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a value does not satisfy a schema.

    `path` leads to the value (names and positions), `kind` is the rule that failed (unknown, missing, type,
    enum, range, pattern, length, items, nested), `message` is the rest of a sentence about it.
    """

    path: tuple[str | int, ...]
    kind: str
    message: str

    def inside(self, key: str | int) -> Problem:
        """The same problem, seen from the value that holds this one under `key`."""
        return Problem((key, *self.path), self.kind, self.message)

    @property
    def where(self) -> str:
        """The path as `address.lines[0]`."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")


def describe(problem: Problem, tool: str) -> str:
    """One corrective sentence for the model: the parameter, what was expected, what came."""
    if problem.kind == "unknown":
        return f'unknown parameter "{problem.where}" for {tool}. {problem.message}.'
    if problem.kind == "missing":
        return f'missing required parameter "{problem.where}" ({problem.message}) for {tool}.'
    subject = f'parameter "{problem.where}"' if problem.path else f"arguments of {tool}"
    return f"{subject} {problem.message}."


JSON_TYPES: dict[str, frozenset[type]] = {
    "null": frozenset({type(None)}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "string": frozenset({str}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}


def check_type(names: list[str]) -> Check:
    """A check that a value has one of the named JSON types."""
    allowed = frozenset().union(*(JSON_TYPES[name] for name in names))
    whole_floats = "integer" in names and "number" not in names
    expected = " or ".join(names)

    def check(value: JSON) -> Problem | None:
        kind = type(value)
        if kind in allowed and (kind is not float or math.isfinite(value)):
            return None
        if whole_floats and kind is float and value.is_integer():
            return None
        return Problem((), "type", f"must be {expected}, got {json_type(value)}")

    return check


def check_enum(values: list[JSON]) -> Check:
    """A check that a value equals one of `values`, as JSON compares: 1 is 1.0, and neither is true."""
    allowed = frozenset(map(canonical, values))
    plain = frozenset(value for value in values if isinstance(value, str))
    listed = ", ".join(value if isinstance(value, str) else json.dumps(value) for value in values)

    def check(value: JSON) -> Problem | None:
        if type(value) is str and value in plain:
            return None
        if type(value) is not str and canonical(value) in allowed:
            return None
        return Problem((), "enum", f"must be one of [{listed}]; got {show(value)}")

    return check


LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "exclusiveMinimum": (operator.gt, "more than"),
    "exclusiveMaximum": (operator.lt, "less than"),
}


def is_number(value: JSON) -> bool:
    """Whether a value is a JSON number; a boolean is not."""
    return type(value) is int or type(value) is float


def check_limit(keyword: str, limit: float) -> Check:
    """A check of one bound on a number; other values pass."""
    holds, words = LIMITS[keyword]

    def check(value: JSON) -> Problem | None:
        if not is_number(value) or holds(value, limit):
            return None
        return Problem((), "range", f"must be {words} {limit}, got {show(value)}")

    return check


SIZES: dict[str, tuple[type[Any], str, Callable[[int, int], bool], str]] = {
    "minLength": (str, "length", operator.ge, "at least {} characters long"),
    "maxLength": (str, "length", operator.le, "at most {} characters long"),
    "minItems": (list, "items", operator.ge, "a list of at least {} items"),
    "maxItems": (list, "items", operator.le, "a list of at most {} items"),
    "minProperties": (dict, "nested", operator.ge, "an object of at least {} members"),
    "maxProperties": (dict, "nested", operator.le, "an object of at most {} members"),
}


def check_size(keyword: str, limit: int) -> Check:
    """A check of one bound on the size of a string (in code points), a list or an object."""
    sized, kind, holds, words = SIZES[keyword]
    text = f"must be {words.format(limit)}"

    def check(value: JSON) -> Problem | None:
        if type(value) is not sized or holds(len(value), limit):
            return None
        return Problem((), kind, f"{text}, got {len(value)}")

    return check


def check_unique(value: JSON) -> Problem | None:
    """A check that a list holds no two equal JSON values."""
    if type(value) is not list or len(set(map(canonical, value))) == len(value):
        return None
    return Problem((), "items", "must hold no value twice")


def check_multiple(step: float) -> Check:
    """A check that a number is a multiple of `step`, computed on the decimal digits as written."""
    exact = Fraction(str(step))

    def check(value: JSON) -> Problem | None:
        if not is_number(value) or not math.isfinite(value) or Fraction(str(value)) % exact == 0:
            return None
        return Problem((), "range", f"must be a multiple of {step}, got {show(value)}")

    return check


# %% chapters/02-tools.md § Objects


def build_object(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`properties`, `required` and `additionalProperties`."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    expect(isinstance(properties, dict), where, "properties", "an object")
    expect(
        isinstance(required, list) and all(isinstance(n, str) for n in required),
        where,
        "required",
        "a list of names",
    )
    members = [
        (name, compiler.check(part, f"{where}/properties/{name}")) for name, part in properties.items()
    ]
    extra = schema.get("additionalProperties", True)
    outside = compiler.check(extra, f"{where}/additionalProperties")
    absent = [(name, Problem((name,), "missing", type_label(properties.get(name)))) for name in required]
    names, needed = frozenset(properties), frozenset(required)
    stray = f"Expected: {', '.join(properties)}" if properties else "It takes none"

    def check(value: JSON) -> Problem | None:
        if type(value) is not dict:
            return None
        if outside is not anything and not value.keys() <= names:
            problem = outside_problem(value, names, outside, stray)
            if problem is not None:
                return problem
        if not needed <= value.keys():
            return next(problem for name, problem in absent if name not in value)
        for name, member in members:
            if name in value:
                problem = member(value[name])
                if problem is not None:
                    return problem.inside(name)
        return None

    return check


def outside_problem(
    value: dict[str, JSON], names: frozenset[str], outside: Check, stray: str
) -> Problem | None:
    """The first problem with the members of an object that its `properties` do not name."""
    for name, item in value.items():
        if name in names:
            continue
        if outside is nothing:
            return Problem((name,), "unknown", stray)
        problem = outside(item)
        if problem is not None:
            return problem.inside(name)
    return None


def expect(holds: bool, where: str, keyword: str, wanted: str) -> None:
    """Raise when a keyword's own value is not what JSON Schema asks for."""
    if not holds:
        raise SchemaError(f"{where}: {keyword} must be {wanted}")


def build_items(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`prefixItems` for the first items, `items` for the rest."""
    prefix = schema.get("prefixItems", [])
    expect(isinstance(prefix, list), where, "prefixItems", "a list of schemas")
    expect(
        not isinstance(schema.get("items"), list), where, "items", "one schema; a list of them is prefixItems"
    )
    firsts = [compiler.check(part, f"{where}/prefixItems/{at}") for at, part in enumerate(prefix)]
    rest = compiler.check(schema.get("items", True), f"{where}/items")

    def check(value: JSON) -> Problem | None:
        if type(value) is not list:
            return None
        for index, item in enumerate(value):
            problem = (firsts[index] if index < len(firsts) else rest)(item)
            if problem is not None:
                return problem.inside(index)
        return None

    return check


# %% chapters/02-tools.md § What cannot be enforced is refused

CONSTRAINTS = frozenset({
    "type", "enum", "const", "multipleOf", "pattern", "uniqueItems", "properties", "required",
    "additionalProperties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "not", "$ref",
    *LIMITS, *SIZES,
})  # fmt: skip
ANNOTATIONS = frozenset({
    "title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly",
    "format", "discriminator", "$schema", "$id", "$defs", "definitions", "$comment",
    "contentEncoding", "contentMediaType", "contentSchema",
})  # fmt: skip
ADVICE = {"nullable": 'write "type": [..., "null"]'}


def refuse_unknown(schema: dict[str, JSON], where: str) -> None:
    """Raise for a keyword that would be silently ignored."""
    for keyword in schema:
        known = keyword in CONSTRAINTS or keyword in ANNOTATIONS or keyword.startswith("x-")
        if not known or (keyword == "$id" and where != "#"):
            advice = ADVICE.get(keyword, "remove it, or enforce it in the handler or the gate")
            raise SchemaError(f"{where}: unsupported keyword {show(keyword)}; {advice}")


def anything(value: JSON) -> Problem | None:
    """The check of the empty schema: every JSON value passes."""
    return None


def nothing(value: JSON) -> Problem | None:
    """The check of the schema `false`: no value passes."""
    return Problem((), "nested", "is not allowed here")


def every(checks: list[Check]) -> Check:
    """One check out of several: the first problem found, in order."""
    if len(checks) <= 1:
        return checks[0] if checks else anything
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) or second(value)

    def check(value: JSON) -> Problem | None:
        for one in checks:
            problem = one(value)
            if problem is not None:
                return problem
        return None

    return check


def type_names(schema: JSON) -> list[str]:
    """The declared types of a schema, empty when it declares none."""
    names = schema.get("type", []) if isinstance(schema, dict) else []
    return [names] if isinstance(names, str) else list(names)


def type_label(schema: JSON) -> str:
    """A schema's type in a few words: `string`, `array[integer]`, `string or null`, `any`."""
    if not isinstance(schema, dict):
        return "any"
    names = type_names(schema)
    if names == ["array"] and isinstance(schema.get("items"), dict):
        return f"array[{type_label(schema['items'])}]"
    if not names and isinstance(schema.get("anyOf"), list):
        return " or ".join(type_label(branch) for branch in schema["anyOf"])
    return " or ".join(names) or "any"


class Compiler:
    """Turns one JSON Schema document into closures; remembers what its `$ref`s point at."""

    def __init__(self, document: JSON) -> None:
        self.document = document
        self.checks: dict[str, Check | None] = {}
        self.fixes: dict[str, Fix | None] = {}

    def check(self, schema: JSON, where: str) -> Check:
        """The check of one schema; `where` is its place in the document, for error messages."""
        if isinstance(schema, bool):
            return anything if schema else nothing
        if not isinstance(schema, dict):
            raise SchemaError(f"{where}: a schema is an object or a boolean, got {json_type(schema)}")
        refuse_unknown(schema, where)
        return every([build(self, schema, where) for keys, build in BUILDERS if not keys.isdisjoint(schema)])

    def resolve(self, pointer: JSON, where: str) -> JSON:
        """The schema that a local reference such as `#/$defs/address` points at."""
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            raise SchemaError(f"{where}: $ref {show(pointer)} is not local; inline it under $defs")
        from urllib.parse import unquote  # here, because it loads slowly and few schemas have references

        target = self.document
        for step in unquote(pointer).split("/")[1:]:
            target = step_into(target, step.replace("~1", "/").replace("~0", "~"))
            if target is MISSING:
                raise SchemaError(f"{where}: $ref {show(pointer)} points at nothing")
        return target

    def referred_check(self, pointer: str, where: str) -> Check:
        """The check behind a reference, compiled once, also when it refers to itself."""
        if pointer not in self.checks:
            self.checks[pointer] = None
            self.checks[pointer] = self.check(self.resolve(pointer, where), pointer)
        checks = self.checks
        return checks[pointer] or (lambda value: typing.cast(Check, checks[pointer])(value))

    def fix(self, schema: JSON) -> Fix | None:
        """A function that turns 1.0 into 1 where `schema` declares an integer; None if it never does."""
        if not isinstance(schema, dict):
            return None
        fixes = [fix for build in FIXERS if (fix := build(self, schema)) is not None]
        return chain(fixes) if fixes else None

    def referred_fix(self, pointer: str) -> Fix | None:
        """The fix behind a reference; one that is still being compiled is looked up when it is called."""
        if pointer in self.fixes:
            fixes = self.fixes
            return lambda value: (fixes[pointer] or unchanged)(value)
        self.fixes[pointer] = None
        self.fixes[pointer] = self.fix(self.resolve(pointer, pointer))
        return self.fixes[pointer]


MISSING = object()


def step_into(target: JSON, step: str) -> JSON:
    """One step of a JSON pointer, or MISSING."""
    if isinstance(target, dict):
        return target.get(step, MISSING)
    if isinstance(target, list) and step.isdecimal() and int(step) < len(target):
        return target[int(step)]
    return MISSING


def build_type(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`type`: one name or a list of them."""
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    for name in names:
        if not isinstance(name, str) or name not in JSON_TYPES:
            raise SchemaError(f"{where}: unknown type {show(name)}; JSON Schema has {', '.join(JSON_TYPES)}")
    expect(bool(names), where, "type", "a name or a list of names")
    return check_type(names)


def build_enum(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`enum` and `const`."""
    expect(isinstance(schema.get("enum", []), list), where, "enum", "a list")
    checks = [check_enum(schema["enum"])] if "enum" in schema else []
    return every([*checks, check_enum([schema["const"]])] if "const" in schema else checks)


def build_numbers(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`minimum`, `maximum`, their exclusive forms, and `multipleOf`."""
    for keyword in (*LIMITS, "multipleOf"):
        expect(is_number(schema.get(keyword, 1)), where, keyword, "a number")
    checks = [check_limit(keyword, schema[keyword]) for keyword in LIMITS if keyword in schema]
    if "multipleOf" not in schema:
        return every(checks)
    expect(schema["multipleOf"] > 0, where, "multipleOf", "more than 0")
    return every([*checks, check_multiple(schema["multipleOf"])])


def build_sizes(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`minLength` and its five relatives, and `uniqueItems`."""
    checks: list[Check] = []
    for keyword in SIZES.keys() & schema.keys():
        limit = schema[keyword]
        expect(
            is_number(limit) and limit >= 0 and limit == int(limit),
            where,
            keyword,
            "a whole number, 0 or more",
        )
        checks.append(check_size(keyword, int(limit)))
    expect(isinstance(schema.get("uniqueItems", False), bool), where, "uniqueItems", "true or false")
    return every([*checks, check_unique] if schema.get("uniqueItems") else checks)


# %% chapters/02-tools.md § Alternatives and references


def branches(compiler: Compiler, schema: dict[str, JSON], keyword: str, where: str) -> list[Check]:
    """The checks of the alternatives below `allOf`, `anyOf` or `oneOf`."""
    parts = schema[keyword]
    expect(isinstance(parts, list) and bool(parts), where, keyword, "a list of at least one schema")
    return [compiler.check(part, f"{where}/{keyword}/{at}") for at, part in enumerate(parts)]


def build_all_of(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`allOf`: every branch."""
    return every(branches(compiler, schema, "allOf", where))


def build_any_of(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`anyOf`: at least one branch."""
    checks = branches(compiler, schema, "anyOf", where)
    expected = type_label({"anyOf": schema["anyOf"]})

    def check(value: JSON) -> Problem | None:
        problems: list[Problem] = []
        for one in checks:
            problem = one(value)
            if problem is None:
                return None
            problems.append(problem)
        return no_branch(problems, expected, value)

    return check


def no_branch(problems: list[Problem], expected: str, value: JSON) -> Problem:
    """What to say when no branch fits: the expected types, or the problem of the branch that came closest."""
    if all(problem.kind == "type" and not problem.path for problem in problems):
        return Problem((), "type", f"must be {expected}, got {json_type(value)}")
    return max((p for p in problems if p.kind != "type" or p.path), key=lambda problem: len(problem.path))


def build_one_of(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`oneOf`: exactly one branch."""
    checks = branches(compiler, schema, "oneOf", where)
    expected = type_label({"anyOf": schema["oneOf"]})

    def check(value: JSON) -> Problem | None:
        problems = [one(value) for one in checks]
        fitting = problems.count(None)
        if fitting == 1:
            return None
        if fitting == 0:
            return no_branch([problem for problem in problems if problem], expected, value)
        return Problem((), "nested", f"must fit exactly one of {len(checks)} alternatives, fits {fitting}")

    return check


def build_not(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`not`: the schema below must fail."""
    forbidden = compiler.check(schema["not"], f"{where}/not")
    text = f"must not fit {show(json.dumps(schema['not']))}"
    return lambda value: None if forbidden(value) else Problem((), "nested", text)


def build_ref(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`$ref`: the schema elsewhere in the document."""
    compiler.resolve(schema["$ref"], where)
    return compiler.referred_check(schema["$ref"], where)


def references(part: JSON) -> Iterator[str]:
    """Every `$ref` anywhere in a document, with the root itself."""
    yield "#"
    stack = [part]
    while stack:
        node = stack.pop()
        if isinstance(node, dict) and isinstance(node.get("$ref"), str) and node["$ref"][:1] == "#":
            yield node["$ref"]
        stack += node.values() if isinstance(node, dict) else node if isinstance(node, list) else []


def in_place(schema: JSON) -> list[str]:
    """The references that judge the same value as `schema` does."""
    found: list[str] = []
    if isinstance(schema, dict):
        found += [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        for part in applied_in_place(schema):
            found += in_place(part)
    return found


def applied_in_place(schema: dict[str, JSON]) -> list[JSON]:
    """The subschemas that judge the same value as `schema` does."""
    parts = [part for keyword in ("allOf", "anyOf", "oneOf") for part in schema.get(keyword, [])]
    return [*parts, schema["not"]] if "not" in schema else parts


def refuse_endless(document: JSON, compiler: Compiler) -> None:
    """Raise when references lead back to themselves without going into the value: no check would end."""
    for start in references(document):
        trail, frontier = {start}, in_place(compiler.resolve(start, "#"))
        while frontier:
            pointer = frontier.pop()
            if pointer == start:
                raise SchemaError(f"$ref {show(start)} leads back to itself without entering the value")
            if pointer not in trail:
                trail.add(pointer)
                frontier += in_place(compiler.resolve(pointer, "#"))


# %% chapters/02-tools.md § Patterns

Ranges = tuple[tuple[int, int], ...]
TOKEN = re.compile(
    r"\\[pP]\{[^}]*\}|\\u\{[0-9a-fA-F]+\}|\\c[A-Za-z]|\\k<\w+>|\\.|\(\?<(?=[A-Za-z_$])|\[\^?\]?|.", re.DOTALL
)
KNOWN_ESCAPES = frozenset("bBdDwWsSfnrtvxu0123456789")
DIGIT: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE: Ranges = (
    (9, 13), (32, 32), (160, 160), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
CATEGORIES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M",
    "Combining_Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc", "Enclosing_Mark": "Me",
    "Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
    "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd",
    "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf", "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z",
    "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp", "Other": "C",
    "Control": "Cc", "cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs", "Private_Use": "Co",
    "Unassigned": "Cn",
}  # fmt: skip


@lru_cache(maxsize=64)
def category_ranges(name: str) -> Ranges:
    """The code points of a Unicode general category (`L`, `Letter`, `gc=Nd` …) as inclusive ranges."""
    wanted = name.removeprefix("General_Category=").removeprefix("gc=")
    wanted = CATEGORIES.get(wanted, wanted)
    if wanted not in CATEGORIES.values():
        raise SchemaError(f"\\p{{{name}}} is not a Unicode general category")
    prefixes = ("Lu", "Ll", "Lt") if wanted == "LC" else (wanted,)
    return merge(
        code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith(prefixes)
    )


def merge(codes: Iterable[int]) -> Ranges:
    """Ascending code points as inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)


def complement(ranges: Ranges) -> Ranges:
    """All code points outside `ranges`."""
    ends = [-1, *(end for _, end in ranges)]
    starts = [*(start for start, _ in ranges), sys.maxunicode + 1]
    return tuple((low + 1, high - 1) for low, high in zip(ends, starts, strict=True) if low + 1 < high)


def escape_ranges(token: str) -> Ranges | None:
    r"""The code points of `\d`, `\w`, `\s`, `\p{…}` and their negations; None for any other token."""
    if token[:2] in ("\\p", "\\P") and len(token) > 2:
        ranges = category_ranges(token[3:-1])
    elif token.lower() in ("\\d", "\\w", "\\s"):
        ranges = {"d": DIGIT, "w": WORD, "s": SPACE}[token[1].lower()]
    else:
        return None
    return complement(ranges) if token[1].isupper() else ranges


def class_text(ranges: Ranges, in_class: bool) -> str:
    """Ranges in Python's notation, in brackets of their own unless they already stand inside some."""
    text = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return text if in_class else f"[{text}]"


OUTSIDE = {"$": r"\Z", ".": r"[^\n\r\u2028\u2029]", "[]": "(?!)", "[^]": r"[\s\S]", "(?<": "(?P<"}
INSIDE = {"[": r"\[", "&": r"\&", "~": r"\~", "|": r"\|"}


def translate_token(token: str, in_class: bool) -> str:
    """One token of an ECMA-262 pattern in Python's notation."""
    ranges = escape_ranges(token)
    if ranges is not None:
        return class_text(ranges, in_class)
    if token.startswith("\\u{"):
        return f"\\U{int(token[3:-1], 16):08x}"
    if token.startswith("\\c") and len(token) == 3:
        return f"\\x{ord(token[2]) % 32:02x}"
    if token.startswith("\\k<"):
        return f"(?P={token[3:-1]})"
    if token[0] == "\\" and token[1:].isalpha() and token[1:].isascii() and token[1] not in KNOWN_ESCAPES:
        raise SchemaError(f"{token} is not an escape of ECMA-262")
    return (INSIDE if in_class else OUTSIDE).get(token, token)


def translate_pattern(pattern: str) -> str:
    """An ECMA-262 regular expression, as JSON Schema asks for, in the notation of Python's `re`."""
    parts: list[str] = []
    in_class = False
    for token in TOKEN.findall(pattern):
        pieces = list(token) if in_class and token[0] == "[" else [token]
        for piece in pieces:
            parts.append(translate_token(piece, in_class))
            in_class = piece != "]" if in_class else piece in ("[", "[^")
    return "".join(parts)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile an ECMA-262 pattern; a `SchemaError` says why it cannot be."""
    try:
        return re.compile(translate_pattern(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise SchemaError(f"{show(pattern)} does not compile: {error}") from None


def check_pattern(pattern: str) -> Check:
    """A check that a string contains a match of the ECMA-262 regular expression `pattern`."""
    search = compile_pattern(pattern).search

    def check(value: JSON) -> Problem | None:
        if type(value) is not str or search(value):
            return None
        return Problem((), "pattern", f"must match the pattern {pattern}, got {show(value)}")

    return check


def build_pattern(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`pattern`."""
    expect(isinstance(schema["pattern"], str), where, "pattern", "a string")
    try:
        return check_pattern(schema["pattern"])
    except SchemaError as error:
        raise SchemaError(f"{where}: pattern {error}") from None


# %% chapters/02-tools.md § One point zero


def unchanged(value: JSON) -> JSON:
    """The fix of a schema that declares no integer."""
    return value


def whole(value: JSON) -> JSON:
    """1 for 1.0; anything else as it is."""
    return int(value) if type(value) is float and value.is_integer() else value


def chain(fixes: list[Fix]) -> Fix:
    """Several fixes, one after the other."""
    if len(fixes) == 1:
        return fixes[0]

    def fix(value: JSON) -> JSON:
        for one in fixes:
            value = one(value)
        return value

    return fix


def fix_type(compiler: Compiler, schema: dict[str, JSON]) -> Fix | None:
    """A declared integer."""
    return whole if "integer" in type_names(schema) else None


def fix_object(compiler: Compiler, schema: dict[str, JSON]) -> Fix | None:
    """The members of an object; copied only when one of them changes."""
    properties = schema.get("properties", {})
    members = {name: fix for name, part in properties.items() if (fix := compiler.fix(part))}
    outside = compiler.fix(schema.get("additionalProperties"))
    if not members and outside is None:
        return None

    def fix_members(value: JSON) -> JSON:
        if type(value) is not dict:
            return value
        names = members if outside is None else value
        changed = {}
        for name in names:
            if name in value and (one := members.get(name) or (outside if name not in properties else None)):
                after = one(value[name])
                if after is not value[name]:
                    changed[name] = after
        return {**value, **changed} if changed else value

    return fix_members


def fix_items(compiler: Compiler, schema: dict[str, JSON]) -> Fix | None:
    """The items of a list; copied only when one of them changes."""
    firsts = [compiler.fix(part) or unchanged for part in schema.get("prefixItems", [])]
    rest = compiler.fix(schema.get("items")) or unchanged
    if rest is unchanged and all(fix is unchanged for fix in firsts):
        return None

    def fix_each(value: JSON) -> JSON:
        if type(value) is not list:
            return value
        fixed = [(firsts[at] if at < len(firsts) else rest)(item) for at, item in enumerate(value)]
        return fixed if any(new is not old for new, old in zip(fixed, value, strict=True)) else value

    return fix_each


def fix_branches(compiler: Compiler, schema: dict[str, JSON]) -> Fix | None:
    """All branches of `allOf`; of `anyOf` and `oneOf` those that fit the value."""
    always = [fix for part in schema.get("allOf", []) if (fix := compiler.fix(part))]
    choices = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    fitting = [(compiler.check(part, "#"), fix) for part in choices if (fix := compiler.fix(part))]
    if not always and not fitting:
        return None

    def fix_fitting(value: JSON) -> JSON:
        for one in [*always, *(one for check, one in fitting if check(value) is None)]:
            value = one(value)
        return value

    return fix_fitting


def fix_ref(compiler: Compiler, schema: dict[str, JSON]) -> Fix | None:
    """The schema elsewhere in the document."""
    return compiler.referred_fix(schema["$ref"]) if "$ref" in schema else None


FIXERS = (fix_type, fix_object, fix_items, fix_branches, fix_ref)


Builder = Callable[[Compiler, dict[str, JSON], str], Check]
BUILDERS: tuple[tuple[frozenset[str], Builder], ...] = (
    (frozenset({"type"}), build_type),
    (frozenset({"enum", "const"}), build_enum),
    (frozenset({*LIMITS, "multipleOf"}), build_numbers),
    (frozenset({"pattern"}), build_pattern),
    (frozenset({*SIZES, "uniqueItems"}), build_sizes),
    (frozenset({"prefixItems", "items"}), build_items),
    (frozenset({"properties", "required", "additionalProperties"}), build_object),
    (frozenset({"allOf"}), build_all_of),
    (frozenset({"anyOf"}), build_any_of),
    (frozenset({"oneOf"}), build_one_of),
    (frozenset({"not"}), build_not),
    (frozenset({"$ref"}), build_ref),
)


@dataclass(frozen=True)
class Schema:
    """A compiled JSON Schema: `problem(value)` judges, `normalise(value)` turns 1.0 into a declared 1."""

    document: JSON
    check: Check = field(repr=False, compare=False)
    fix: Fix | None = field(repr=False, compare=False)

    def problem(self, value: JSON) -> Problem | None:
        """None when `value` satisfies the schema, else the first problem. Never raises."""
        try:
            return self.check(value)
        except RecursionError:
            return Problem((), "nested", "is nested too deeply")

    def normalise(self, value: JSON) -> JSON:
        """A valid value with whole floats turned into the integers that the schema declares."""
        return self.fix(value) if self.fix else value


def compile_schema(document: JSON) -> Schema:
    """Compile a JSON Schema (an object or a boolean) into closures, once.

    The keywords in `CONSTRAINTS` mean what draft 2020-12 says; a `$ref` stays within the document. Those in
    `ANNOTATIONS`, and names that begin with `x-`, tell readers something and constrain nothing. Raises
    `SchemaError` for any other keyword, an unknown type, a pattern that does not compile, or a `$ref` that
    leads nowhere or round in a circle.
    """
    compiler = Compiler(document)
    try:
        check = compiler.check(document, "#")
        refuse_endless(document, compiler)
        return Schema(document, check, compiler.fix(document))
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None


# %% chapters/02-tools.md § The contract of a tool

KINDS = ("unknown", "missing", "type", "enum", "range", "pattern", "length", "items", "nested")
RANKS = {kind: place for place, kind in enumerate(KINDS)}


def rank(problem: Problem) -> int:
    """The place of a problem in the order in which a model is told of them."""
    if len(problem.path) > 1:
        return RANKS["items"] if isinstance(problem.path[1], int) else RANKS["nested"]
    return RANKS[problem.kind]


@dataclass(frozen=True)
class Contract:
    """What a tool accepts: its JSON Schema, compiled, and the names it declares (None: any name)."""

    parameters: dict[str, JSON]
    schema: Schema = field(repr=False)
    members: dict[str, Schema] = field(repr=False)
    declared: frozenset[str] | None

    def problem(self, arguments: JSON) -> Problem | None:
        """The first problem, in the order of `RANKS`; None when the arguments are in order."""
        if type(arguments) is not dict:
            return Problem((), "type", f"must be a JSON object, got {json_type(arguments)}")
        if self.declared is not None and not arguments.keys() <= self.declared:
            return self.stray(arguments, self.declared)
        found = self.schema.problem(arguments)
        return found if found is None or rank(found) <= RANKS["missing"] else self.first(arguments, found)

    def stray(self, arguments: dict[str, JSON], declared: frozenset[str]) -> Problem:
        """The first undeclared argument."""
        name = next(name for name in arguments if name not in declared)
        names = [*self.members, *sorted(declared - self.members.keys())]
        return Problem((str(name),), "unknown", f"Expected: {', '.join(names)}" if names else "It takes none")

    def first(self, arguments: dict[str, JSON], found: Problem) -> Problem:
        """Of `found` and one problem for each argument, the first by rank, then as declared."""
        problems = [found] if not found.path else []
        for name, member in self.members.items():
            problem = member.problem(arguments[name]) if name in arguments else None
            if problem is not None:
                problems.append(problem.inside(name))
        return min([*problems, found], key=rank)


def compile_contract(parameters: dict[str, JSON]) -> Contract:
    """Compile a tool's JSON Schema. An undeclared argument is invalid unless the schema lets others in."""
    document: dict[str, JSON] = {"type": "object", **parameters}
    if document["type"] != "object":
        raise SchemaError(f"the arguments of a tool are an object, not {show(document['type'])}")
    schema, compiler = compile_schema(document), Compiler(document)
    members = {
        name: Schema(part, compiler.check(part, f"#/properties/{name}"), None)
        for name, part in document.get("properties", {}).items()
    }
    return Contract(document, schema, members, declared_names(compiler, document))


def declared_names(compiler: Compiler, document: JSON) -> frozenset[str] | None:
    """The arguments a schema names, wherever it judges the whole object; None when it lets in others."""
    names: set[str] = set()
    parts, followed = [document], set()
    while parts:
        part = parts.pop()
        if not isinstance(part, dict):
            continue
        if part.get("additionalProperties", False) is not False:
            return None
        names |= part.get("properties", {}).keys()
        parts += applied_in_place({key: value for key, value in part.items() if key != "not"})
        if "$ref" in part and part["$ref"] not in followed:
            followed.add(part["$ref"])
            parts.append(compiler.resolve(part["$ref"], "#"))
    return frozenset(names)


# %% chapters/02-tools.md § Parameters and signatures


@dataclass(frozen=True)
class Parameter:
    """One argument of a tool: its name, JSON type, what it means, and the rules its value must obey.

    `rules` holds further JSON Schema keywords, such as `{"minimum": 1}` or `{"items": {"type": "string"}}`.
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
        object.__setattr__(self, "contract", compile_contract(self.to_json_schema()["parameters"]))

    def to_json_schema(self) -> dict[str, JSON]:
        """The declaration as a model's API takes it: name, description, and the parameters as JSON Schema."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": {
                "type": "object",
                "properties": {parameter.name: parameter.to_json_schema() for parameter in self.parameters},
                "required": [parameter.name for parameter in self.parameters if parameter.required],
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
        Parameter("units", "string", "Temperature unit.", required=False, enum=["celsius", "fahrenheit"]),
    ],
)


# %% chapters/02-tools.md § Judging the call


@dataclass(frozen=True)
class Validation:
    """A verdict on a call's arguments: the normalised `args`, or the `kind` of the problem and a message."""

    ok: bool
    args: dict[str, Any] | None = None
    kind: str | None = None
    message: str | None = None


def validate_arguments(schema: ToolSchema, args: JSON) -> Validation:
    """Judge parsed arguments by a tool's signature; on failure, one sentence that the model can act on."""
    problem = schema.contract.problem(args)
    if problem is not None:
        return Validation(False, None, problem.kind, f"Error: {describe(problem, schema.name)}")
    return Validation(True, schema.contract.schema.normalise(args))


# %% chapters/02-tools.md § Three spellings of one contract


@dataclass(frozen=True)
class ToolSpec:
    """One tool that the harness may run for a model.

    `schema` says what it accepts, in one of three spellings: a shorthand `{name: type}`, a JSON Schema, or a
    `ToolSchema`. It is compiled here, once; `SchemaError` names what cannot be enforced. `handler` is called
    with the arguments by name and has whatever authority its code has. `effectful` marks a tool that changes
    the world.
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
    if isinstance(schema, ToolSchema):
        return schema.contract
    shorthand = not any(isinstance(part, str | Mapping | list | bool) for part in schema.values())
    return compile_contract(parameters_from_hints(schema) if shorthand else json.loads(json.dumps(schema)))


PLAIN_HINTS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def schema_from_hint(hint: Any, above: tuple[Any, ...] = ()) -> dict[str, JSON]:
    """The JSON Schema of a Python type hint. Raises `SchemaError` for one that has none."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, None, type(None)):
        return {} if hint is Any else {"type": "null"}
    if hint in above:
        raise SchemaError(f"{show(hint)} contains itself; write its JSON Schema by hand, with $ref")
    if origin in (typing.Union, types.UnionType):
        return union_schema([schema_from_hint(part, above) for part in parts])
    if origin is typing.Annotated:
        notes = [note for note in parts[1:] if isinstance(note, str)]
        return {**schema_from_hint(parts[0], above), **({"description": notes[0]} if notes else {})}
    if origin is Literal:
        return enum_schema(list(parts))
    if origin in (list, dict):
        inner = {} if parts[-1] is Any else schema_from_hint(parts[-1], above)
        return (
            {"type": "array", "items": inner}
            if origin is list
            else {"type": "object", "additionalProperties": inner}
        )
    if hint in PLAIN_HINTS:
        return {"type": PLAIN_HINTS[hint]}
    return class_schema(hint, (*above, hint))


def union_schema(branches: list[dict[str, JSON]]) -> dict[str, JSON]:
    """Alternatives: one list of types when that says it all, else `anyOf`."""
    if all(branch.keys() == {"type"} for branch in branches):
        return {"type": [branch["type"] for branch in branches]}
    return {"anyOf": branches}


def enum_schema(values: list[JSON]) -> dict[str, JSON]:
    """A closed list of values, with their type when they share one."""
    kinds = {json_type(value) for value in values}
    return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}


def class_schema(hint: Any, above: tuple[Any, ...]) -> dict[str, JSON]:
    """The schema of an enumeration, a dataclass or a TypedDict."""
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return enum_schema([member.value for member in hint])
    if not dataclasses.is_dataclass(hint) and not typing.is_typeddict(hint):
        raise SchemaError(f"no JSON Schema for the hint {show(hint)}; declare the schema by hand")
    hints = typing.get_type_hints(hint, include_extras=True)
    properties = {name: schema_from_hint(strip_required(part), above) for name, part in hints.items()}
    required = [name for name, part in hints.items() if must_be_given(hint, name, part)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def must_be_given(owner: Any, name: str, hint: Any) -> bool:
    """Whether an instance of a dataclass or a TypedDict cannot do without this member."""
    if dataclasses.is_dataclass(owner):
        each = next(each for each in dataclasses.fields(owner) if each.name == name)
        return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    origin = typing.get_origin(hint)
    return origin is typing.Required or (origin is not typing.NotRequired and name in owner.__required_keys__)


def strip_required(hint: Any) -> Any:
    """The hint inside `Required[…]` or `NotRequired[…]`."""
    wrapped = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
    return typing.get_args(hint)[0] if wrapped else hint


def parameters_from_hints(hints: Mapping[str, Any]) -> dict[str, JSON]:
    """The shorthand `{name: type}` as a JSON Schema: every name is required, and listed in sorted order."""
    return {
        "type": "object",
        "properties": {name: schema_from_hint(hint) for name, hint in hints.items()},
        "required": sorted(hints),
    }


# %% chapters/02-tools.md § A registry


def wire_name(name: str) -> str:
    """A tool's name as providers accept it: letters, digits, `_` and `-`, at most 64 of them."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


class Registry(Mapping[str, ToolSpec]):
    """The tools on offer, by name. Two names that would look alike on the wire are refused."""

    def __init__(self, tools: Mapping[str, ToolSpec] | Iterable[tuple[str, ToolSpec]] = ()) -> None:
        self._tools: dict[str, ToolSpec] = {}
        self._own: dict[str, str] = {}
        for name, spec in tools.items() if isinstance(tools, Mapping) else tools:
            self.register(name, spec)

    def register(self, name: str, spec: ToolSpec) -> None:
        """Add a tool. Raises `ValueError` for an empty name, and for one that is taken on the wire."""
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a tool's name must be a string that is not empty, got {show(name)}")
        taken = self._own.get(wire_name(name))
        if taken is not None:
            raise ValueError(
                f"tool {show(name)} collides with {show(taken)}: both are {wire_name(name)} on the wire"
            )
        self._tools[name] = spec
        self._own[wire_name(name)] = name

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


# %% chapters/02-tools.md § From a function


def tool_from_function(
    function: Callable[..., Any], *, description: str = "", effectful: bool = False
) -> ToolSpec:
    """A tool made from a function's hints, defaults and docstring.

    The first line of the docstring describes the tool; its `Args:` section and `Annotated[…, "text"]` tell of
    the parameters, and one with a default is optional. Dataclasses and enumerations among the arguments are
    built before the call. Raises `SchemaError` for a parameter without a hint or without a name.
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
    return ToolSpec(description or text.split("\n")[0], schema, reviving(function, hints), effectful)


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
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = typing.get_type_hints(hint, include_extras=True)
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
    return built or any(needs_reviving(part) for part in typing.get_args(hint))


# %% chapters/02-tools.md § A call, and what may be said about it


@dataclass(frozen=True)
class ToolCall:
    """A parsed proposal to run one tool. It has no authority of its own.

    `arguments` is None when the model's text could not be read; `problem` then says why.
    """

    call_id: str
    name: str
    arguments: dict[str, Any] | None
    problem: str | None = None


def own_name(tools: Mapping[str, ToolSpec], name: str) -> str | None:
    """The name under which `tools` holds a tool that a model calls `name`; None for an invented one."""
    if name in tools:
        return name
    if isinstance(tools, Registry):
        return tools.own_name(name)
    return next((own for own in tools if wire_name(own) == name), None)


def plain_name(name: Any) -> str:
    """An invented name as a message may repeat it: quoted when it is not a plain word."""
    return name if isinstance(name, str) and re.fullmatch(r"[\w.-]{1,64}", name) else show(name)


def check_call(call: ToolCall, tools: Mapping[str, ToolSpec]) -> tuple[ToolCall | None, str | None]:
    """Validate a proposal: `(call, None)` with its own name and normalised arguments, or `(None, reason)`."""
    if call.problem is not None or call.arguments is None:
        return None, call.problem or "arguments were not valid JSON"
    name = own_name(tools, call.name) if isinstance(call.name, str) else None
    if name is None:
        return None, f"unknown tool: {plain_name(call.name)}. Available: {', '.join(tools) or 'none'}"
    contract = tools[name].contract
    problem = contract.problem(call.arguments)
    if problem is not None:
        return None, describe(problem, name)
    arguments = contract.schema.normalise(call.arguments)
    if arguments is call.arguments and name == call.name:
        return call, None
    return ToolCall(call.call_id, name, arguments), None


def validate_call(call: ToolCall, tools: Mapping[str, ToolSpec]) -> str | None:
    """Is the call well formed? None, or a reason that the model can act on. Says nothing of permission."""
    return check_call(call, tools)[1]


LOOKUP = "Status of an order and what was paid for it."
READ = "The refund policy, as text."
REFUND = "Pay money back for an order. This is real money."


def make_environment() -> tuple[Registry, list[dict[str, Any]]]:
    """A fresh support desk: its three tools, and the log in which every refund leaves a receipt.

    The log is what really happened. Every claim about safety in this book is checked against it, and none
    against what a model says.
    """
    effects: list[dict[str, Any]] = []
    handlers = desk_handlers(effects)
    refund_fields = {"order_id": str, "amount_cents": int}
    tools = Registry()
    tools.register("lookup_order", ToolSpec(LOOKUP, {"order_id": str}, handlers["lookup_order"]))
    tools.register("read_policy", ToolSpec(READ, {}, handlers["read_policy"]))
    tools.register("refund_order", ToolSpec(REFUND, refund_fields, handlers["refund_order"], effectful=True))
    return tools, effects


# %% chapters/02-tools.md § What the model sees


def tool_schema_json(tools: Mapping[str, ToolSpec]) -> list[dict[str, Any]]:
    """The tools as data in a request (OpenAI's form): names, descriptions, schemas, and no handler."""
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


# %% chapters/02-tools.md § A calculator that only calculates

MAX_EXPRESSION = 500
MAX_NESTING = 50
MAX_DIGITS = 1000
MAX_BITS = 3322
ALLOWED = "Allowed are numbers, + - * / **, parentheses and sqrt()."
TOO_LARGE = f"the result is too large: more than {MAX_DIGITS} digits"


def safe_calculate(expression: str) -> int | float:
    """The value of an arithmetic expression, exact as long as every step is rational.

    Whole results are integers. Raises `ValueError`, with one sentence, for what is not arithmetic and for
    arithmetic that is too long, too deep or too large to be done at once.
    """
    if not isinstance(expression, str):
        raise ValueError(f"an expression is a string, got {json_type(expression)}")
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"the expression is longer than {MAX_EXPRESSION} characters")
    try:
        value = evaluate(syntax_tree(expression), 0)
        return value.numerator if value.denominator == 1 else float(value)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except OverflowError:
        raise ValueError(TOO_LARGE) from None


def syntax_tree(expression: str) -> ast.expr:
    """The parsed expression; one sentence for whatever Python's parser has to say about it."""
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"not an arithmetic expression: {show(expression)}. {ALLOWED}") from None


def evaluate(node: ast.expr, depth: int) -> Fraction:
    """The exact value of one node. A chain of operators is walked, not descended: a long sum is not deep."""
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
    """The value of a number, a signed expression or a square root; nothing else is arithmetic here."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return literal(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = evaluate(node.operand, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and is_square_root(node):
        return square_root(evaluate(node.args[0], depth + 1))
    raise ValueError(f"unsupported expression element: {type(node).__name__}. {ALLOWED}")


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """`base ** exponent`, refused before it is computed when it would be too large."""
    if exponent.denominator != 1:
        if base < 0:
            raise ValueError("the result is not a real number")
        return bounded(Fraction(float(base) ** float(exponent)))
    if base in (0, 1, -1) or bits(base) * abs(exponent.numerator) <= MAX_BITS:
        return Fraction(base) ** exponent.numerator
    raise ValueError(TOO_LARGE)


def bits(value: Fraction) -> int:
    """The size of a number: bits in the longer of numerator and denominator."""
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def bounded(value: Fraction) -> Fraction:
    """The value itself unless it is too large."""
    if bits(value) > MAX_BITS:
        raise ValueError(TOO_LARGE)
    return value


def literal(value: int | float) -> Fraction:
    """A number as it was written: 0.1 is one tenth, not the binary fraction next to it."""
    if isinstance(value, bool):
        raise ValueError(f"unsupported expression element: {value}. {ALLOWED}")
    if value == math.inf:
        raise ValueError(TOO_LARGE)
    return bounded(Fraction(str(value)))


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


def square_root(value: Fraction) -> Fraction:
    """The exact root of a square, else the nearest float."""
    if value < 0:
        raise ValueError("the result is not a real number")
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(math.sqrt(value))


def calculator(text: str) -> str:
    """`safe_calculate` from text to text, for prompts in which every tool maps a string to a string."""
    return str(safe_calculate(text))


def calculate(expression: str) -> dict[str, int | float]:
    """`safe_calculate` with its result under a name, as a JSON object."""
    return {"result": safe_calculate(expression)}


# %% chapters/02-tools.md § Facts and time


def make_lookup_tool(facts: Mapping[str, str]) -> ToolSpec:
    """A tool that returns one of the given facts by its exact key; the description lists the keys."""

    def lookup(key: str) -> str:
        if key not in facts:
            raise KeyError(f"no fact under {show(key)}")
        return facts[key]

    return ToolSpec(f"Look up a fact by exact key. Keys: {', '.join(facts)}.", {"key": str}, lookup)


def get_time(clock: Callable[[], datetime]) -> dict[str, str]:
    """The time that `clock` tells, in UTC, as ISO 8601. The clock is an argument: a run can be repeated."""
    return {"now": clock().astimezone(UTC).isoformat()}
