# Built by bookkit from chapters/02-schema.md. Edit the chapter, not this file.
# bookkit: cells e471078fdb08, body dbee71b93711
"""Interlude: how a contract is compiled."""

from __future__ import annotations

import dataclasses
import enum
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
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

__all__ = [
    "ADVICE",
    "ANNOTATIONS",
    "BUILDERS",
    "CATEGORIES",
    "CONSTRAINTS",
    "DIGIT",
    "FIXERS",
    "GROUPS",
    "HOLDERS",
    "INSIDE",
    "IN_PLACE",
    "JSON",
    "JSON_NAMES",
    "JSON_TYPES",
    "KINDS",
    "KNOWN_ESCAPES",
    "LIMITS",
    "MISSING",
    "NAMED",
    "OUTSIDE",
    "PLAIN_HINTS",
    "RANKS",
    "SIZES",
    "SPACE",
    "TOKEN",
    "WORD",
    "Builder",
    "Check",
    "Compiler",
    "Contract",
    "Fix",
    "Judge",
    "Notes",
    "Problem",
    "Problems",
    "Ranges",
    "Schema",
    "SchemaError",
    "Spot",
    "afresh",
    "anything",
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
    "canonical",
    "category_ranges",
    "chain",
    "check_enum",
    "check_items",
    "check_limit",
    "check_multiple",
    "check_object",
    "check_outside",
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
    "declared_names",
    "describe",
    "enum_schema",
    "escape_ranges",
    "every",
    "exact",
    "expect",
    "expected_names",
    "fix_branches",
    "fix_items",
    "fix_object",
    "fix_ref",
    "fix_type",
    "foremost",
    "is_finite",
    "is_number",
    "json_type",
    "member_hints",
    "merge",
    "must_be_given",
    "next_spot",
    "no_branch",
    "noted",
    "nothing",
    "parameters_from_hints",
    "rank",
    "references",
    "refuse_endless",
    "refuse_unknown",
    "schema_from_hint",
    "show",
    "step_into",
    "strip_required",
    "subschemas",
    "translate_escape",
    "translate_pattern",
    "translate_token",
    "type_label",
    "type_names",
    "unchanged",
    "union_schema",
    "whole",
    "within",
    "written",
]


# %% chapters/02-schema.md § Interlude: how a contract is compiled

if TYPE_CHECKING:
    from fractions import Fraction


# %% chapters/02-schema.md § Three traps in one comparison

JSON = Any
JSON_NAMES = {
    type(None): "null", bool: "boolean", int: "integer", float: "number",
    str: "string", list: "array", dict: "object",
}  # fmt: skip


def json_type(value: JSON) -> str:
    """The JSON name of a value's type; a Python name for what JSON cannot hold."""
    if type(value) is float and not math.isfinite(value):
        return str(value)
    return JSON_NAMES.get(type(value), type(value).__name__)


def canonical(value: JSON) -> str:
    """A text that is the same exactly for equal JSON values: 1 is 1.0, and is not true."""
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, dict):
        members = (f"{key!r}:{canonical(item)}" for key, item in value.items())
        return f"{{{','.join(sorted(members))}}}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return hex(value) if type(value) is int else repr(value)


# %% chapters/02-schema.md § A problem is a sentence


class SchemaError(ValueError):
    """A schema that cannot be enforced as written; names the place and the keyword."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a value does not satisfy a schema.

    `path` leads to the value (names and positions), `kind` is the rule that failed (one of
    `KINDS`), `message` is the rest of a sentence about it.
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


Problems = tuple[Problem, ...]


def describe(problem: Problem, tool: str) -> str:
    """One corrective sentence for the model: the parameter, what was expected, what came."""
    where = problem.where[:200]  # an invented name can have any length
    if problem.kind == "unknown":
        return f'unknown parameter "{where}" for {tool}. {problem.message}.'
    if problem.kind == "missing":
        return f'missing required parameter "{where}" ({problem.message}) for {tool}.'
    subject = f'parameter "{where}"' if problem.path else f"arguments of {tool}"
    return f"{subject} {problem.message}."


def show(value: JSON, limit: int = 60) -> str:
    """A value as a message may quote it: its repr, cut after `limit` characters."""
    if isinstance(value, str) and len(value) > limit:
        value = value[:limit] + "…"
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return f"{json_type(value)} too long to be shown"
    return text if len(text) <= limit + 8 else text[:limit] + "…"


KINDS = ("unknown", "missing", "type", "enum", "range", "pattern", "length", "items", "nested")
RANKS = {kind: place for place, kind in enumerate(KINDS)}


def rank(path: tuple[str | int, ...], kind: str) -> tuple[int, ...]:
    """A problem's place in the order of telling: what is wrong further inside comes later."""
    steps = ("items" if isinstance(step, int) else "nested" for step in path)
    return tuple(RANKS[each] for each in (*steps, kind))


def foremost(problems: Problems) -> Problem:
    """The problem to be told of first; of equals, the one found first."""
    return min(problems, key=lambda problem: rank(problem.path, problem.kind))


def within(key: str | int, problems: Problems) -> Problems:
    """The foremost problem of a member or an item, seen from the value that holds it."""
    return (foremost(problems).inside(key),)


# %% chapters/02-schema.md § A keyword is a closure

Check = Callable[[JSON], Problems]
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

    def check(value: JSON) -> Problems:
        kind = type(value)
        if kind in allowed and (kind is not float or math.isfinite(value)):
            return ()
        if whole_floats and kind is float and value.is_integer():
            return ()
        return (Problem((), "type", f"must be {expected}, got {json_type(value)}"),)

    return check


def written(value: JSON) -> str:
    """A value of a schema as JSON; briefly, if JSON cannot write it."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError):  # no JSON, or an integer of thousands of digits
        return show(value)


def check_enum(values: list[JSON]) -> Check:
    """A check that a value equals one of `values`, as JSON compares."""
    allowed = frozenset(map(canonical, values))
    plain = frozenset(value for value in values if isinstance(value, str))
    listed = ", ".join(value if isinstance(value, str) else written(value) for value in values)

    def check(value: JSON) -> Problems:
        if type(value) is str and value in plain:
            return ()
        if type(value) is not str and canonical(value) in allowed:
            return ()
        return (Problem((), "enum", f"must be one of [{listed}]; got {show(value)}"),)

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
    expected = f"must be {words} {show(limit)}"

    def check(value: JSON) -> Problems:
        if not is_number(value) or holds(value, limit):
            return ()
        return (Problem((), "range", f"{expected}, got {show(value)}"),)

    return check


# %% chapters/02-schema.md § Pitfall


def exact(number: float) -> Fraction:
    """A number as it was written: 0.1 is one tenth, not the binary fraction next to it."""
    from fractions import Fraction  # here, because it loads slowly and few schemas need it

    return Fraction(number) if isinstance(number, int) else Fraction(str(number))


def is_finite(value: JSON) -> bool:
    """Whether a value is a number that JSON can hold: neither infinite nor NaN."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def check_multiple(step: float) -> Check:
    """A check that a number is a multiple of `step`, by the decimal digits as written."""
    divisor = exact(step)
    expected = f"must be a multiple of {show(step)}"

    def check(value: JSON) -> Problems:
        if not is_finite(value) or exact(value) % divisor == 0:
            return ()
        return (Problem((), "range", f"{expected}, got {show(value)}"),)

    return check


# %% chapters/02-schema.md § Objects


def anything(value: JSON) -> Problems:
    """The check of the empty schema: every JSON value passes."""
    return ()


def nothing(value: JSON) -> Problems:
    """The check of the schema `false`: no value passes."""
    return (Problem((), "nested", "is not allowed here"),)


def every(checks: list[Check]) -> Check:
    """One check out of several: the problems of all of them, in order."""
    if len(checks) <= 1:
        return checks[0] if checks else anything
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) + second(value)

    def check(value: JSON) -> Problems:
        found: Problems = ()
        for one in checks:
            found += one(value)
        return found

    return check


def check_object(members: dict[str, Check], required: dict[str, str], outside: Check) -> Check:
    """A check of an object's names and members.

    `required` maps each name that must be there to a word for its type; `outside` judges every
    member that `members` does not name.
    """
    names, needed, pairs = frozenset(members), frozenset(required), tuple(members.items())

    def check(value: JSON) -> Problems:
        if type(value) is not dict:
            return ()
        found: Problems = ()
        if outside is not anything and not value.keys() <= names:
            found += check_outside(value, names, outside, expected_names(members))
        if not needed <= value.keys():
            absent = ((name, label) for name, label in required.items() if name not in value)
            found += tuple(Problem((name,), "missing", label) for name, label in absent)
        for name, member in pairs:
            if name in value:
                problems = member(value[name])
                if problems:
                    found += within(name, problems)
        return found

    return check


def expected_names(names: Iterable[str]) -> str:
    """What to say to an undeclared name."""
    listed = ", ".join(names)
    return f"Expected: {listed}" if listed else "It takes none"


def check_outside(value: dict[str, JSON], names: frozenset[str], outside: Check, expected: str) -> Problems:
    """The problems with the members of an object that its `properties` do not name."""
    found: list[Problem] = []
    for name, item in value.items():
        if name in names:
            continue
        if outside is nothing:
            found.append(Problem((name,), "unknown", expected))
        elif problems := outside(item):
            found += within(name, problems)
    return tuple(found)


# %% chapters/02-schema.md § The contract


@dataclass(frozen=True)
class Contract:
    """What a tool accepts: its compiled JSON Schema and the names it declares (None: any)."""

    parameters: dict[str, JSON]
    schema: Schema = field(repr=False)
    declared: frozenset[str] | None

    def problem(self, arguments: JSON) -> Problem | None:
        """The first problem, in the order of `KINDS`; None when the arguments are in order."""
        if type(arguments) is not dict:
            return Problem((), "type", f"must be a JSON object, got {json_type(arguments)}")
        if self.declared is not None and not arguments.keys() <= self.declared:
            return self.stray(arguments, self.declared)
        return self.schema.problem(arguments)

    def stray(self, arguments: dict[str, JSON], declared: frozenset[str]) -> Problem:
        """The first undeclared argument."""
        own = self.parameters.get("properties", {})
        name = next(name for name in arguments if name not in declared)
        expected = expected_names([*own, *sorted(declared - own.keys())])
        return Problem((str(name),), "unknown", expected)


# %% chapters/02-schema.md § What cannot be enforced is refused

SIZES: dict[str, tuple[type[Any], str, Callable[[int, int], bool], str]] = {
    "minLength": (str, "length", operator.ge, "at least {} characters long"),
    "maxLength": (str, "length", operator.le, "at most {} characters long"),
    "minItems": (list, "items", operator.ge, "a list of at least {} items"),
    "maxItems": (list, "items", operator.le, "a list of at most {} items"),
    "minProperties": (dict, "nested", operator.ge, "an object of at least {} members"),
    "maxProperties": (dict, "nested", operator.le, "an object of at most {} members"),
}
CONSTRAINTS = frozenset({
    "type", "enum", "const", "multipleOf", "pattern", "uniqueItems", "properties", "required",
    "additionalProperties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "not", "$ref",
    *LIMITS, *SIZES,
})  # fmt: skip
ANNOTATIONS = frozenset({
    "title", "description", "default", "example", "examples", "deprecated", "readOnly",
    "writeOnly", "format", "discriminator", "$schema", "$id", "$defs", "definitions", "$comment",
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


@dataclass(frozen=True)
class Schema:
    """A compiled JSON Schema: `problem` judges, `normalise` turns 1.0 into a declared 1."""

    document: JSON
    check: Check = field(repr=False, compare=False)
    fix: Fix | None = field(repr=False, compare=False)

    def problem(self, value: JSON) -> Problem | None:
        """None for a value that satisfies the schema, else its first problem by `KINDS`."""
        try:
            found = self.check(value)
        except RecursionError:
            return Problem((), "nested", "is nested too deeply")
        return min(found, key=lambda one: rank(one.path[1:], one.kind)) if found else None

    def normalise(self, value: JSON) -> JSON:
        """A valid value with whole floats turned into the integers that the schema declares."""
        return self.fix(value) if self.fix else value


# %% chapters/02-schema.md § The plumbing


def check_size(keyword: str, limit: int) -> Check:
    """A check of one bound on the size of a string (in code points), a list or an object."""
    sized, kind, holds, words = SIZES[keyword]
    text = f"must be {words.format(show(limit))}"

    def check(value: JSON) -> Problems:
        if type(value) is not sized or holds(len(value), limit):
            return ()
        return (Problem((), kind, f"{text}, got {len(value)}"),)

    return check


def check_unique(value: JSON) -> Problems:
    """A check that a list holds no two equal JSON values."""
    if type(value) is not list or len(set(map(canonical, value))) == len(value):
        return ()
    return (Problem((), "items", "must hold no value twice"),)


def check_items(firsts: list[Check], rest: Check) -> Check:
    """A check of a list's items: each of the first ones by its own check, the others by `rest`."""

    def check(value: JSON) -> Problems:
        if type(value) is not list:
            return ()
        found: list[Problem] = []
        for index, item in enumerate(value):
            problems = (firsts[index] if index < len(firsts) else rest)(item)
            if problems:
                found += within(index, problems)
        return tuple(found)

    return check


def expect(holds: bool, where: str, keyword: str, wanted: str) -> None:
    """Raise when a keyword's own value is not what JSON Schema asks for."""
    if not holds:
        raise SchemaError(f"{where}: {keyword} must be {wanted}")


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
        expect(is_finite(schema.get(keyword, 1)), where, keyword, "a number")
    checks = [check_limit(keyword, schema[keyword]) for keyword in LIMITS if keyword in schema]
    if "multipleOf" not in schema:
        return every(checks)
    expect(schema["multipleOf"] > 0, where, "multipleOf", "more than 0")
    return every([*checks, check_multiple(schema["multipleOf"])])


def build_sizes(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`minLength` and its five relatives, and `uniqueItems`."""
    checks: list[Check] = []
    for keyword in SIZES:
        if keyword in schema:
            limit = schema[keyword]
            whole_size = is_finite(limit) and limit >= 0 and limit % 1 == 0
            expect(whole_size, where, keyword, "a whole number, 0 or more")
            checks.append(check_size(keyword, int(limit)))
    expect(isinstance(schema.get("uniqueItems", False), bool), where, "uniqueItems", "true or false")
    return every([*checks, check_unique] if schema.get("uniqueItems") else checks)


def build_items(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`prefixItems` for the first items, `items` for the rest."""
    prefix, items = schema.get("prefixItems", []), schema.get("items", True)
    expect(isinstance(prefix, list), where, "prefixItems", "a list of schemas")
    expect(not isinstance(items, list), where, "items", "one schema; a list of them is prefixItems")
    firsts = [compiler.check(part, f"{where}/prefixItems/{at}") for at, part in enumerate(prefix)]
    return check_items(firsts, compiler.check(items, f"{where}/items"))


def build_object(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`properties`, `required` and `additionalProperties`."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    named = isinstance(required, list) and all(isinstance(name, str) for name in required)
    expect(isinstance(properties, dict), where, "properties", "an object")
    expect(named, where, "required", "a list of names")
    members = {name: compiler.check(part, f"{where}/properties/{name}") for name, part in properties.items()}
    outside = compiler.check(schema.get("additionalProperties", True), f"{where}/additionalProperties")
    return check_object(members, {name: type_label(properties.get(name)) for name in required}, outside)


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

    def check(value: JSON) -> Problems:
        nearest: list[Problem] = []
        for one in checks:
            problems = one(value)
            if not problems:
                return ()
            nearest.append(foremost(problems))
        return (no_branch(nearest, expected, value),)

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

    def check(value: JSON) -> Problems:
        verdicts = [one(value) for one in checks]
        fitting = verdicts.count(())
        if fitting == 1:
            return ()
        if fitting == 0:
            return (no_branch(list(map(foremost, verdicts)), expected, value),)
        text = f"must fit exactly one of {len(checks)} alternatives, fits {fitting}"
        return (Problem((), "nested", text),)

    return check


def build_not(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`not`: the schema below must fail."""
    forbidden = compiler.check(schema["not"], f"{where}/not")
    text = f"must not fit {show(written(schema['not']))}"
    return lambda value: () if forbidden(value) else (Problem((), "nested", text),)


def build_ref(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`$ref`: the schema elsewhere in the document."""
    compiler.resolve(schema["$ref"], where)
    return compiler.referred_check(schema["$ref"], where)


Judge = Callable[[JSON], Any]  # a check or a fix
Notes = dict[tuple[Judge, int], tuple[JSON, Any]]


def noted(notes: Notes, table: Mapping[str, Judge | None], pointer: str) -> Judge:
    """What `table` will hold under `pointer`, called once for each value however often it is asked."""

    def judge_once(value: JSON) -> Any:
        judge = typing.cast(Judge, table[pointer])
        key = (judge, id(value))
        note = notes.get(key)
        if note is None:
            note = notes[key] = (value, judge(value))  # a value that is kept keeps its id
        return note[1]

    return judge_once


def afresh(notes: Notes | None, judge: Judge) -> Judge:
    """The function for a whole value, which forgets the notes afterwards: values can change."""
    if notes is None:
        return judge

    def judge_and_forget(value: JSON) -> Any:
        try:
            return judge(value)
        finally:
            notes.clear()

    return judge_and_forget


Fix = Callable[[JSON], JSON]
MISSING = object()


class Compiler:
    """Turns one JSON Schema document into closures; remembers what its `$ref`s point at."""

    def __init__(self, document: JSON) -> None:
        self.document = document
        self.compiled: dict[int, Check] = {}
        self.checks: dict[str, Check | None] = {}
        self.fixes: dict[str, Fix | None] = {}
        self.notes: Notes = {}

    def check(self, schema: JSON, where: str) -> Check:
        """The check of one schema; `where` is its place in the document, for error messages."""
        if isinstance(schema, bool):
            return anything if schema else nothing
        if not isinstance(schema, dict):
            raise SchemaError(f"{where}: a schema is an object or a boolean, got {json_type(schema)}")
        if id(schema) not in self.compiled:
            refuse_unknown(schema, where)
            builders = (build for keys, build in BUILDERS if not keys.isdisjoint(schema))
            self.compiled[id(schema)] = every([build(self, schema, where) for build in builders])
        return self.compiled[id(schema)]

    def resolve(self, pointer: JSON, where: str) -> JSON:
        """The schema that a local reference such as `#/$defs/address` points at."""
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            raise SchemaError(f"{where}: $ref {show(pointer)} is not local; inline it under $defs")
        target, path = self.document, pointer
        if "%" in pointer:
            from urllib.parse import unquote  # here, because it loads slowly and few schemas need it

            path = unquote(pointer)
        for step in path.split("/")[1:]:
            target = step_into(target, step.replace("~1", "/").replace("~0", "~"))
            if target is MISSING:
                raise SchemaError(f"{where}: $ref {show(pointer)} points at nothing")
        return target

    def referred_check(self, pointer: str, where: str) -> Check:
        """The check behind a reference, compiled once, also when it refers to itself."""
        if pointer not in self.checks:
            self.checks[pointer] = None
            self.checks[pointer] = self.check(self.resolve(pointer, where), pointer)
        return noted(self.notes, self.checks, pointer)

    def fix(self, schema: JSON) -> Fix | None:
        """A function that turns 1.0 into 1 where `schema` declares an integer; None if it never does."""
        if not isinstance(schema, dict):
            return None
        fixes = [fix for build in FIXERS if (fix := build(self, schema)) is not None]
        return chain(fixes) if fixes else None

    def referred_fix(self, pointer: str) -> Fix | None:
        """The fix behind a reference; None when it is known to change nothing."""
        if pointer not in self.fixes:
            self.fixes[pointer] = None
            self.fixes[pointer] = self.fix(self.resolve(pointer, pointer)) or unchanged
        return None if self.fixes[pointer] is unchanged else noted(self.notes, self.fixes, pointer)


def step_into(target: JSON, step: str) -> JSON:
    """One step of a JSON pointer, or MISSING."""
    if isinstance(target, dict):
        return target.get(step, MISSING)
    if isinstance(target, list) and step.isdecimal() and int(step) < len(target):
        return target[int(step)]
    return MISSING


def declared_names(document: JSON) -> frozenset[str] | None:
    """The arguments a schema names, wherever it judges the whole object; None when it lets in others."""
    compiler = Compiler(document)
    names: set[str] = set()
    parts, followed = [document], set()
    while parts:
        part = parts.pop()
        if not isinstance(part, dict):
            continue
        if part.get("additionalProperties", False) is not False:
            return None
        names |= part.get("properties", {}).keys()
        parts += subschemas(part, ("allOf", "anyOf", "oneOf"))
        if "$ref" in part and part["$ref"] not in followed:
            followed.add(part["$ref"])
            parts.append(compiler.resolve(part["$ref"], "#"))
    return frozenset(names)


NAMED = ("properties", "$defs", "definitions")  # their members are schemas
IN_PLACE = ("allOf", "anyOf", "oneOf", "not")  # these judge the same value as the schema around them
HOLDERS = (*NAMED, *IN_PLACE, "prefixItems", "items", "additionalProperties")


def subschemas(schema: dict[str, JSON], keywords: tuple[str, ...]) -> list[JSON]:
    """The schemas directly below some keywords of a schema."""
    found: list[JSON] = []
    for keyword in keywords:
        part = schema.get(keyword)
        if keyword in NAMED:
            found += part.values() if isinstance(part, dict) else []
        else:
            found += part if isinstance(part, list) else [part]
    return found


def references(schema: JSON, keywords: tuple[str, ...]) -> Iterator[str]:
    """Every local `$ref` of a schema and of those below `keywords`; what is data there is no reference."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str) and node["$ref"][:1] == "#":
                yield node["$ref"]
            stack += subschemas(node, keywords)


def refuse_endless(document: JSON, compiler: Compiler) -> None:
    """Raise when references lead back to themselves without going into the value: no check would end."""
    follows: dict[str, list[str]] = {}
    waiting = ["#"]
    while waiting:
        pointer = waiting.pop()
        if pointer not in follows:
            target = compiler.resolve(pointer, "#")
            follows[pointer] = list(references(target, IN_PLACE))
            waiting += references(target, HOLDERS)
    ended: set[str] = set()
    while ended != follows.keys():
        ending = {start for start in follows.keys() - ended if ended.issuperset(follows[start])}
        if not ending:
            endless = min(follows.keys() - ended)
            raise SchemaError(f"$ref {show(endless)} leads back to itself without entering the value")
        ended |= ending


Ranges = tuple[tuple[int, int], ...]
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


TOKEN = r"""
    \\[pP]\{[^}]*\} | \\c[A-Za-z] | \\k<\w+>       # categories, control characters, named groups
    | \\u\{[0-9a-fA-F]+\}                             # code points, also as a pair of surrogates
    | \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    | \\u[0-9a-fA-F]{4} | \\x[0-9a-fA-F]{2}
    | \\.
    | \(\?(?:[:=!]|<[=!]|<(?=[A-Za-z_$])|.?)          # groups
    | (?:[*+?]|\{\d+(?:,\d*)?\})[?+]?                 # quantifiers
    | \[\^?\]?
    | ."""
KNOWN_ESCAPES = frozenset("bBdDwWsSfnrtvxu0123456789")
GROUPS = frozenset({"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<"})
OUTSIDE = {
    "$": r"\Z", ".": r"[^\n\r\u2028\u2029]", "[]": "(?!)", "[^]": r"[\s\S]", "(?<": "(?P<", "{": r"\{"
}  # fmt: skip
INSIDE = {"[": r"\[", "&": r"\&", "~": r"\~", "|": r"\|"}


Spot = Literal["outside", "start", "atom", "range"]  # in a class: a range may begin, go on, or end here


def next_spot(spot: Spot, token: str) -> Spot:
    """Where in a pattern the translation stands after one more token."""
    if spot == "outside":
        return "start" if token in ("[", "[^") else "outside"
    if token == "]":
        return "outside"
    if spot == "atom" and token == "-":
        return "range"
    return "start" if spot == "range" or escape_ranges(token) is not None else "atom"


def translate_escape(token: str) -> str:
    """An escape for one character or a group in Python's notation."""
    if token.startswith("\\u{"):
        return f"\\U{int(token[3:-1], 16):08x}"
    if token[:2] == "\\u" and len(token) == 12:
        return f"\\U{0x10000 + (int(token[2:6], 16) % 0x400 << 10) + int(token[8:], 16) % 0x400:08x}"
    if token.startswith("\\c") and len(token) == 3:
        return f"\\x{ord(token[2]) % 32:02x}"
    if token.startswith("\\k<"):
        return f"(?P={token[3:-1]})"
    if token[1:].isalpha() and token[1:].isascii() and token[1] not in KNOWN_ESCAPES:
        raise SchemaError(f"{token} is not an escape of ECMA-262")
    return token


def translate_token(token: str, spot: Spot) -> str:
    """One token of an ECMA-262 pattern in Python's notation."""
    ranges = escape_ranges(token)
    if ranges is not None:
        if spot == "range":
            raise SchemaError(f"a range of characters cannot end with {token}")
        return class_text(ranges, in_class=spot != "outside")
    if token[0] == "\\":
        return translate_escape(token)
    if spot != "outside":
        return r"\-" if token == "-" and spot != "atom" else INSIDE.get(token, token)
    if (token[:2] == "(?" and token not in GROUPS) or (len(token) > 1 and token[-1] == "+"):
        raise SchemaError(f"{token} is Python's, not ECMA-262")
    return OUTSIDE.get(token, token)


def translate_pattern(pattern: str) -> str:
    """An ECMA-262 regular expression, as JSON Schema asks for, in the notation of Python's `re`."""
    parts: list[str] = []
    spot: Spot = "outside"
    for token in re.findall(TOKEN, pattern, re.DOTALL | re.VERBOSE):
        whole = spot == "outside" or token[0] == "\\"
        for piece in [token] if whole else token:
            parts.append(translate_token(piece, spot))
            spot = next_spot(spot, piece)
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

    def check(value: JSON) -> Problems:
        if type(value) is not str or search(value):
            return ()
        return (Problem((), "pattern", f"must match the pattern {pattern}, got {show(value)}"),)

    return check


def build_pattern(compiler: Compiler, schema: dict[str, JSON], where: str) -> Check:
    """`pattern`."""
    expect(isinstance(schema["pattern"], str), where, "pattern", "a string")
    try:
        return check_pattern(schema["pattern"])
    except SchemaError as error:
        raise SchemaError(f"{where}: pattern {error}") from None


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
        for one in [*always, *(one for check, one in fitting if not check(value))]:
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
    hints = member_hints(hint)
    properties = {name: schema_from_hint(strip_required(part), above) for name, part in hints.items()}
    required = [name for name, part in hints.items() if must_be_given(hint, name, part)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def member_hints(owner: Any) -> dict[str, Any]:
    """The hints of what makes an instance of a dataclass or a TypedDict: no field with `init=False`."""
    hints = typing.get_type_hints(owner, include_extras=True)
    if not dataclasses.is_dataclass(owner):
        return hints
    settled = {each.name for each in dataclasses.fields(owner) if not each.init}
    return {
        name: hint
        for name, hint in hints.items()
        if name not in settled and typing.get_origin(hint) is not typing.ClassVar
    }


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


def compile_schema(document: JSON) -> Schema:
    """Compile a JSON Schema (an object or a boolean) into closures, once.

    The keywords in `CONSTRAINTS` mean what draft 2020-12 says; a `$ref` stays within the
    document. Those in `ANNOTATIONS`, and names that begin with `x-`, tell readers something and
    constrain nothing. Raises `SchemaError` for any other keyword, an unknown type, a pattern
    that does not compile, or a `$ref` that leads nowhere or round in a circle.
    """
    compiler = Compiler(document)
    try:
        check = compiler.check(document, "#")
        refuse_endless(document, compiler)
        fix = compiler.fix(document)
        notes = compiler.notes if compiler.checks else None
        return Schema(document, afresh(notes, check), afresh(notes, fix) if fix else None)
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None


def compile_contract(parameters: dict[str, JSON]) -> Contract:
    """Compile a tool's schema; an undeclared argument is invalid unless it lets others in."""
    document: dict[str, JSON] = {"type": "object", **parameters}
    if document["type"] != "object":
        raise SchemaError(f"the arguments of a tool are an object, not {show(document['type'])}")
    return Contract(document, compile_schema(document), declared_names(document))
