"""The types of PostgreSQL, and which operator or function its catalog has for operands of given types: the rules of
the chapter "Type Conversion" of PostgreSQL's documentation, on the rows of catalog_postgresql.txt.

A type is a name of pg_type, such as int4, or None if it is not known; UNKNOWN is the type of a literal in quotes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

from qwed_new import strict_json

UNKNOWN = "unknown"
Type = str | None

_NUMERAL = r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*"
_UNITS = (
    r"(?:(?:micro|milli)?seconds?|[um]?secs?|useconds?|mseconds?|[um]s|minutes?|mins?"
    r"|hours?|hrs?|days?|weeks?|months?|mons?"
    r"|years?|yrs?|decades?|decs?|centur(?:y|ies)|cent|millenni(?:um|a)|mils?|ago|at|to|[smhdwyc])")
_FORMS = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), re.compile(r"\s*[-+]?\d+\s*")),
    "numeric": re.compile(_NUMERAL + r"|\s*nan\s*|\s*[-+]?inf(?:inity)?\s*", re.I),
    **dict.fromkeys(("float4", "float8"), re.compile(_NUMERAL + r"|\s*nan\s*|\s*[-+]?inf(?:inity)?\s*", re.I)),
    "bool": re.compile(r"\s*(?:t|tr|tru|true|f|fa|fal|fals|false|y|ye|yes|n|no|on|of|off|1|0)\s*", re.I),
    "uuid": re.compile(r"\s*\{?(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}\}?\s*", re.I),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), re.compile(
        r"(?=.*\d)(?=.*(?:\d\D+\d|\d{5}|[a-z]{3})).*|\s*(?:now|today|yesterday|tomorrow|-?infinity|epoch)\s*",
        re.I | re.S)),
    **dict.fromkeys(("time", "timetz"), re.compile(
        r".*\d\s*(?::.*|[ap]m)|\s*(?:\d{4,6}|now|allballs)\s*", re.I | re.S)),
    "interval": re.compile(
        rf"(?!\s*\d{{4}}-\d\d?-\d)(?=.*\d)(?:[\s\d.:+,@-]|{_UNITS}(?![a-z]))*|\s*P[\dTYMWDHS.:-]+\s*", re.I | re.S),
    "inet": re.compile(r"[\s\d.:/a-f]+", re.I), "cidr": re.compile(r"[\s\d.:/a-f]+", re.I),
    **dict.fromkeys(("bit", "varbit"), re.compile(r"[bB]?[01]*|[xX][0-9a-fA-F]*")),
    "money": re.compile(r".*\d.*", re.S),
    **dict.fromkeys(("json", "jsonb"), re.compile(r"\s*(?:[\[{\"].*|-?\d.*|(?:true|false|null)\s*)", re.S)),
}
_BITS = {"int2": 15, "int4": 31, "int8": 63}


class Refused(Exception):
    """PostgreSQL refuses the query."""


class Row(NamedTuple):
    """An operator or a function: its arguments, its result, and the kind of a function."""

    arguments: tuple[str, ...]
    result: str
    kind: str = ""

    @property
    def variadic(self) -> bool:
        return "v" in self.kind


class Catalog(NamedTuple):
    """The rows of the catalog."""

    categories: dict[str, str]
    preferred: frozenset[str]
    elements: dict[str, str]
    casts: dict[tuple[str, str], str]
    operators: dict[str, list[Row]]
    functions: dict[str, list[Row]]


@cache
def catalog() -> Catalog:
    """The catalog of PostgreSQL."""
    categories, elements, casts = {"unknown": "X"}, {}, {}
    preferred: set[str] = set()
    operators, functions = defaultdict(list), defaultdict(list)
    for line in Path(__file__).with_name("catalog_postgresql.txt").read_text("utf-8").splitlines():
        match line.split():
            case ["t", name, category, element]:
                categories[name] = category[0]
                elements[name] = element.strip("-")
                if category.endswith("!"):
                    preferred.add(name)
            case ["c", source, target, context]:
                casts[source, target] = context
            case ["o", name, left, right, result]:
                operators[name].append(Row((right,) if left == "-" else (left, right), result))
            case ["f", name, kind, result, arguments]:
                functions[name].append(Row(() if arguments == "-" else tuple(arguments.split(",")), result, kind))
    return Catalog(categories, frozenset(preferred), {t: e for t, e in elements.items() if e}, casts, dict(operators),
        dict(functions))


def shown(kind: Type) -> str:
    """Return the name of a type for messages."""
    names = {"int4": "integer", "int8": "bigint", "int2": "smallint", "bpchar": "character", "bool": "boolean",
        "float8": "double precision", "float4": "real", UNKNOWN: "a literal", None: "a value"}
    return names.get(kind, kind or "")


def category(kind: str) -> str:
    return catalog().categories.get(kind, "U")


def array_of(kind: Type) -> Type:
    """The type of arrays of a type."""
    return None if kind is None else "_text" if kind == UNKNOWN else f"_{kind}" if f"_{kind}" in (
        catalog().categories) else None


def element_of(kind: Type) -> Type:
    """The type of the elements of an array."""
    return catalog().elements.get(kind) if kind and category(kind) == "A" else None


def implicit(source: Type, target: str) -> bool:
    """Report whether a value of one type is converted to another one without CAST."""
    if source in (None, target, UNKNOWN) or target == "any":
        return True
    if target.startswith("any"):
        return _polymorphic(source, target)
    if category(source) == category(target) == "A":
        return implicit(element_of(source), element_of(target) or "")
    return catalog().casts.get((source, target), "")[:1] == "i"


def _polymorphic(source: str, target: str) -> bool:
    found = category(source)
    if "multirange" in target:
        return source.endswith("multirange")
    if "range" in target:
        return found == "R" and not source.endswith("multirange")
    if target in ("anyarray", "anycompatiblearray"):
        return found == "A"
    if target in ("anynonarray", "anycompatiblenonarray"):
        return found != "A"
    return target != "anyenum"


def castable(source: Type, target: Type) -> bool:
    """Report whether CAST converts one type to another."""
    if source in (None, target, UNKNOWN) or target is None or "record" in (source, target):
        return True
    if category(source) == category(target) == "A":
        return castable(element_of(source), element_of(target))
    return (source, target) in catalog().casts or category(source) == "S" or category(target) == "S"


def unreadable(text: str, target: Type) -> bool:
    """Report whether the literal text is certainly no value of a type."""
    if target and category(target) == "A":
        return not re.match(r"\s*[{\[]", text)
    if form := _FORMS.get(target or ""):
        if not form.fullmatch(text) or (target in _DATES and _no_date(text)) or (
            target in (*_DATES, "time", "timetz") and _no_time(text)) or (
            target in ("json", "jsonb") and not _is_json(text)):
            return True
    bits = _BITS.get(target or "")
    return bits is not None and len(text) < 60 and not -(1 << bits) <= int(text) < (1 << bits)


_DATES = ("date", "timestamp", "timestamptz")
_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")


def _is_json(text: str) -> bool:
    try:
        strict_json.loads(text)
    except json.JSONDecodeError:
        return False
    except ValueError:  # PostgreSQL reads some texts about which two readers may disagree
        return True
    return True


def _no_date(text: str) -> bool:
    """Report whether a text begins with a date that no calendar has."""
    match = _DATE.match(text)
    try:
        return match is not None and not date(*map(int, match.groups()))
    except ValueError:
        return True


_TIME = re.compile(r"(?<![\d:+-])(\d{1,2}):(\d\d)(?::(\d\d))?(?!\d)")


def _no_time(text: str) -> bool:
    """Report whether the first time of day in a text is none that a clock has."""
    match = _TIME.search(text)
    if match is None:
        return False
    hour, minute, second = (int(n or 0) for n in match.groups())
    return hour > 24 or minute > 59 or second > 60 or (hour == 24 and minute + second > 0)


def common(kinds: Sequence[Type], where: str) -> Type:
    """The type that several expressions get in a CASE, a UNION and the like."""
    known = [k for k in kinds if k is not None]
    found = _common_known(known, where)
    return found if len(known) == len(kinds) else None


def _common_known(kinds: Sequence[str], where: str) -> Type:
    chosen = UNKNOWN
    for kind in kinds:
        if kind in (UNKNOWN, chosen):
            continue
        if chosen == UNKNOWN:
            chosen = kind
        elif category(kind) != category(chosen):
            raise Refused(f"{where} are {shown(chosen)} and {shown(kind)}; convert one with CAST")
        elif chosen not in catalog().preferred and implicit(chosen, kind) and not implicit(kind, chosen):
            chosen = kind
    for kind in kinds:
        if not implicit(kind, chosen):
            raise Refused(f"{where} are {shown(chosen)} and {shown(kind)}; convert one with CAST")
    return "text" if chosen == UNKNOWN else chosen


def operator(name: str, operands: Sequence[Type]) -> Type:
    """The type of the result of an operator."""
    rows = [r for r in catalog().operators.get(name, ()) if len(r.arguments) == len(operands)]
    if not rows:
        raise Refused(f"PostgreSQL has no operator {name}" + ("" if len(operands) == 2 else " for one operand"))
    if None in operands:
        return _result_if_partly_known(rows, operands)
    kinds = list(operands)
    if "record" in kinds and UNKNOWN not in kinds and name in ("=", "<>", "<", ">", "<=", ">="):
        return "bool"
    if len(kinds) == 2 and UNKNOWN in kinds and kinds[0] != kinds[1]:  # a literal has the type of the other operand
        same = kinds[1] if kinds[0] == UNKNOWN else kinds[0]
        kinds = [same, same]
    exact = [r for r in rows if list(r.arguments) == kinds]
    found = exact or _best(rows, list(operands), lambda: f"the operator {name} of {' and '.join(map(shown, operands))}")
    return _result(found[0], [UNKNOWN if k == UNKNOWN else k for k in operands])


def operator_takes(name: str, operands: Sequence[Type]) -> list[str]:
    """The types to which the operands of an operator are converted; empty if they are not known."""
    if None in operands:
        return []
    rows = [r for r in catalog().operators.get(name, ()) if len(r.arguments) == len(operands)]
    kinds = list(operands)
    if len(kinds) == 2 and UNKNOWN in kinds and kinds[0] != kinds[1]:
        same = kinds[1] if kinds[0] == UNKNOWN else kinds[0]
        kinds = [same, same]
    found = [r for r in rows if list(r.arguments) == kinds] or _best(rows, list(operands), lambda: name)
    return list(found[0].arguments)


def _result_if_partly_known(rows: list[Row], operands: Sequence[Type]) -> Type:
    fitting = [r for r in rows if all(implicit(o, a) for o, a in zip(operands, r.arguments, strict=True))]
    if not fitting:
        raise Refused(f"no operator takes {' and '.join(shown(o) for o in operands)}")
    results = {r.result for r in fitting}
    return results.pop() if len(results) == 1 and not next(iter(results)).startswith("any") else None


def function(name: str, arguments: Sequence[Type]) -> tuple[Row, Type]:
    """The function that a call reaches, and the type of its result."""
    rows = [f for f in (_fitted(r, len(arguments)) for r in catalog().functions[name]) if f is not None]
    what = f"the function {name} of {', '.join(map(shown, arguments)) or 'nothing'}"
    fitting = [r for r in rows if all(implicit(k, a) for k, a in zip(arguments, r.arguments, strict=True))]
    if None in arguments:
        if not fitting:
            raise Refused(_absent(what))
        results = {r.result for r in fitting}
        single = results.pop() if len(results) == 1 else "any"
        # Which of them is reached depends on a type that is not known, so only what they have in common counts.
        agreed = tuple(all_of[0] if len(set(all_of)) == 1 else "" for all_of in zip(
            *(r.arguments for r in fitting), strict=True))
        return Row(agreed, fitting[0].result, fitting[0].kind), None if single.startswith("any") else single
    exact = [r for r in rows if list(r.arguments) == list(arguments)]
    if not exact and not fitting and len(arguments) == 1 and name in catalog().categories and castable(
        arguments[0], name):
        return Row((arguments[0] or "",), name, "f"), name
    found = exact or _best(rows, list(arguments), lambda: what)
    open_ones = [k for k, a in zip(arguments, found[0].arguments, strict=True) if a in _SAME]
    if open_ones and set(open_ones) == {UNKNOWN}:
        raise Refused(f"{name} takes a value of any type, and a literal has none yet; write CAST(… AS …)")
    return found[0], _result(found[0], arguments)


_SAME = frozenset({"anyelement", "anyarray", "anynonarray"})  # types of arguments that are one type in a call


def _absent(what: str) -> str:
    return f"PostgreSQL does not have {what}; convert an operand with CAST"


def _fitted(row: Row, count: int) -> Row | None:
    """The row for a number of arguments, or None."""
    defaults = int(re.sub(r"\D", "", row.kind) or 0)
    arguments = row.arguments
    if row.variadic and count >= len(arguments):
        last = arguments[-1]
        repeated = {"any": "any", "anyarray": "anyelement", "anycompatiblearray": "anycompatible"}.get(
            last, catalog().elements.get(last, last))
        return row._replace(arguments=arguments[:-1] + (repeated,) * (count - len(arguments) + 1))
    if len(arguments) - defaults <= count <= len(arguments) and not (row.variadic and count == len(arguments)):
        return row._replace(arguments=arguments[:count])
    return None


def _best(rows: list[Row], kinds: list[Type], what: Callable[[], str]) -> list[Row]:
    """The one row that PostgreSQL selects for arguments of these types."""
    rows = [r for r in rows if len(r.arguments) == len(kinds) and all(
        implicit(k, a) for k, a in zip(kinds, r.arguments, strict=True)) and _consistent(r, kinds)]
    if not rows:
        raise Refused(_absent(what()))
    rows = _most(rows, lambda r: sum(k == a for k, a in zip(kinds, r.arguments, strict=True) if k != UNKNOWN))
    preferred = catalog().preferred
    rows = rows if len(rows) == 1 else _most(rows, lambda r: sum(
        k == a or (a in preferred and category(k or "") == category(a))
        for k, a in zip(kinds, r.arguments, strict=True) if k != UNKNOWN))
    for place in (i for i, k in enumerate(kinds) if k == UNKNOWN):
        found = {category(r.arguments[place]) for r in rows}
        wanted = "S" if "S" in found else found.pop() if len(found) == 1 else None
        if wanted is None:
            break
        fitting = [r for r in rows if category(r.arguments[place]) == wanted]
        rows = [r for r in fitting if r.arguments[place] in preferred] or fitting
    if len(rows) > 1 and (known := {k for k in kinds if k != UNKNOWN}) and len(known) == 1:
        single = next(iter(known))
        rows = [r for r in rows if all(implicit(single, a) for a in r.arguments)] or rows
    if len(rows) > 1 and len({r.arguments for r in rows}) > 1:
        raise Refused(f"{what()} is ambiguous in PostgreSQL; write CAST(… AS …) around the literals")
    return rows


def _most(rows: list[Row], count: Callable[[Row], int]) -> list[Row]:
    most = max(map(count, rows))
    return [r for r in rows if count(r) == most]


def _consistent(row: Row, kinds: Sequence[Type]) -> bool:
    """Report whether the arguments of polymorphic types fit each other."""
    elements = {
        element_of(k) if a == "anyarray" else k for a, k in zip(row.arguments, kinds, strict=True)
        if a in ("anyelement", "anyarray", "anynonarray") and k not in (UNKNOWN, None)}
    if len(elements) > 1:
        return False
    compatible = [
        element_of(k) if a == "anycompatiblearray" else k for a, k in zip(row.arguments, kinds, strict=True)
        if a.startswith("anycompatible") and "range" not in a]
    try:
        common(compatible, "")
    except Refused:
        return False
    return True


def _result(row: Row, kinds: Sequence[Type]) -> Type:
    if not row.result.startswith("any"):
        return None if row.result == "record" and row.kind else row.result
    pairs = list(zip(row.arguments, kinds, strict=True))
    if "compatible" in row.result:
        element = common([element_of(k) if "array" in a else k for a, k in pairs if a.startswith("anycompatible")], "")
    elif any("range" in a for a, _ in pairs):
        return next((k for a, k in pairs if a == row.result), None) if row.result != "anyelement" else (
            catalog().elements.get(next((k for a, k in pairs if a == "anyrange"), None) or ""))
    else:
        found = [element_of(k) if a == "anyarray" else k for a, k in pairs if a.startswith("any") and k != UNKNOWN]
        element = found[0] if found else None
    return array_of(element) if "array" in row.result else element
