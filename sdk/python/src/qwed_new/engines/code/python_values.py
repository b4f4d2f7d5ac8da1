"""The possible values of an expression in a Python program: modules, their members, constants, text."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from qwed_new.engines.code import python_policy as policy
from qwed_new.engines.code.python_scopes import Binding, Program, Scope

MAX_DEPTH = 40
MAX_TEXT = 10_000


@dataclass(frozen=True)
class Module:
    """A module; foreign ones are not of the standard library and known by name only."""

    name: str
    foreign: bool = False


@dataclass(frozen=True)
class Member:
    """An attribute of a module or of one of its members; thing is the object itself if known is set."""

    path: str
    thing: Any = None
    known: bool = False

    def __hash__(self) -> int:
        return hash(self.path)


@dataclass(frozen=True)
class Builtin:
    """A builtin function or class."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A value that was computed without running anything."""

    value: Any

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True)
class Text:
    """A text that was not computed."""


@dataclass(frozen=True)
class Unknown:
    """Anything else."""


@dataclass(frozen=True)
class Result(Unknown):
    """The result of a function of a package, or an attribute of such a result."""

    root: str = ""


@dataclass(frozen=True)
class Kind(Unknown):
    """The type of something, which type() or `__class__` returned."""


Value = Module | Member | Builtin | Constant | Text | Unknown
UNKNOWN, TEXT, KIND = Unknown(), Text(), Kind()


class Resolver:
    """Resolves expressions to the values that they may have."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._busy: set[tuple[int, str]] = set()

    def values(self, node: ast.expr | None, depth: int = 0) -> set[Value]:
        """Return all values that an expression may have; UNKNOWN is one of them if the list is not complete."""
        if node is None or depth > MAX_DEPTH:
            return {UNKNOWN}
        key = (id(node), "")
        if key in self._busy:
            return {UNKNOWN}
        self._busy.add(key)
        try:
            return self._values(node, depth + 1)
        finally:
            self._busy.discard(key)

    def _values(self, node: ast.expr, depth: int) -> set[Value]:
        if isinstance(node, ast.Constant):
            return {Constant(node.value)}
        if isinstance(node, ast.Name):
            return self.name(node.id, self._scope(node), node.lineno, depth)
        if isinstance(node, ast.Attribute):
            return {v for base in self.values(node.value, depth) for v in attribute(base, node.attr)}
        if isinstance(node, ast.NamedExpr):
            return self.values(node.value, depth)
        if isinstance(node, ast.IfExp):
            return self.values(node.body, depth) | self.values(node.orelse, depth)
        if isinstance(node, ast.BoolOp):
            return {v for part in node.values for v in self.values(part, depth)}
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, depth)
        if isinstance(node, ast.BinOp):
            return self._binary(node, depth)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Tuple | ast.List):
            parts = [self.values(e, depth) for e in node.elts]
            if all(len(p) == 1 and isinstance(next(iter(p)), Constant) for p in parts):
                return {Constant(tuple(next(iter(p)).value for p in parts))}  # type: ignore[union-attr]
        return {UNKNOWN}

    def _scope(self, node: ast.AST) -> Scope:
        return self._program.scope_of[id(node)]

    def name(self, name: str, scope: Scope, line: int, depth: int = 0) -> set[Value]:
        """Return the possible values of a name at a line of a scope."""
        key = (id(scope), name)
        if key in self._busy:
            return {UNKNOWN}
        self._busy.add(key)
        try:
            return self._name(name, scope, line, depth)
        finally:
            self._busy.discard(key)

    def _name(self, name: str, scope: Scope, line: int, depth: int) -> set[Value]:
        found: set[Value] = set()
        current: Scope | None = scope.elsewhere.get(name, scope)
        first = True
        while current:
            bindings = current.bindings.get(name) if first or current.kind != "class" else None
            first = current.kind == "comprehension" and first
            if bindings:
                for binding in bindings:
                    found |= self._binding(binding, depth)
                if current.kind in ("function", "comprehension"):
                    return found
                certain = any(b.unconditional and b.line < line for b in bindings) and name not in current.deleted
                if certain and current.kind == "module":
                    return found
            current = current.parent
        found |= self._outside(name, scope)
        return found or {UNKNOWN}

    def _outside(self, name: str, scope: Scope) -> set[Value]:
        found: set[Value] = set()
        for module in scope.module().stars:
            if policy.is_stdlib(module) or not hasattr(builtins, name):
                found |= member(module, name, star=True)
        if hasattr(builtins, name) or name in policy.BUILTINS:
            found.add(Builtin(name))
        return found

    def _binding(self, binding: Binding, depth: int) -> set[Value]:
        if binding.kind == "module":
            return {Module(binding.detail, not policy.is_stdlib(binding.detail))}
        if binding.kind == "member":
            return member(*binding.detail)
        if binding.kind == "value":
            return self.values(binding.detail, depth)
        if binding.kind == "element":
            source, path = binding.detail
            return self._elements(source, path, depth)
        if binding.kind == "parameter":
            return self._parameter(*binding.detail, depth)
        return {UNKNOWN}

    def _parameter(self, function: Any, position: int | None, name: str, default: ast.expr | None, depth: int) -> set[
        Value]:
        """Return the passed arguments if every use of the function is a call by its name."""
        found = self.values(default, depth) if default is not None else set()
        own = getattr(function, "name", None)
        calls = self._program.calls.get(own or "", [])
        known = own is not None and self._program.definitions.get(own) == 1 and calls and len(
            calls) == self._program.loads.get(own, 0)
        if not known or function.decorator_list:
            return found | {UNKNOWN}
        for call in calls:
            if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
                return found | {UNKNOWN}
            passed = [k.value for k in call.keywords if k.arg == name]
            if not passed and position is not None and position < len(call.args):
                passed = [call.args[position]]
            for value in passed:
                found |= self.values(value, depth)
        return found

    def _elements(self, source: ast.expr, path: tuple[int, ...], depth: int) -> set[Value]:
        found: set[Value] = set()
        literal = self._literal(source, depth)
        if literal is None:
            return {UNKNOWN}
        for element in literal:
            at: ast.expr | None = element
            for index in path:
                inner = at if isinstance(at, ast.Tuple | ast.List) else None
                at = inner.elts[index] if inner is not None and index < len(inner.elts) else None
            found |= self.values(at, depth) if at is not None else {UNKNOWN}
        return found

    def _literal(self, source: ast.expr, depth: int) -> list[ast.expr] | None:
        """Return the elements of an iterated literal."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(source, ast.List | ast.Tuple | ast.Set):
            return None if any(isinstance(e, ast.Starred) for e in source.elts) else list(source.elts)
        if isinstance(source, ast.Dict) and all(k is not None for k in source.keys):
            return [k for k in source.keys if k is not None]
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and not source.args:
            inner = self.dictionary(source.func.value)
            if inner is not None and source.func.attr == "items" and all(inner.keys):
                return [ast.Tuple([k, v], ast.Load()) for k,
                    v in zip(inner.keys, inner.values, strict=True) if k is not None]
            if inner is not None and source.func.attr == "values":
                return list(inner.values)
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "enumerate" and len(
            source.args) >= 1:
            inner_elements = self._literal(source.args[0], depth + 1)
            if inner_elements is not None:
                return [ast.Tuple([ast.Constant(0), e], ast.Load()) for e in inner_elements]
        if isinstance(source, ast.Name) and (value := self.only_value(source)) is not None:
            return self._literal(value, depth + 1)
        return None

    def dictionary(self, node: ast.expr) -> ast.Dict | None:
        """Return the literal that an expression is, or None."""
        if isinstance(node, ast.Name) and (value := self.only_value(node)) is not None:
            node = value
        return node if isinstance(node, ast.Dict) else None

    def only_value(self, node: ast.Name) -> ast.expr | None:
        scope: Scope | None = self._scope(node)
        while scope and node.id not in scope.bindings:
            scope = scope.parent
        bindings = scope.bindings[node.id] if scope else []
        return bindings[0].detail if len(bindings) == 1 and bindings[0].kind == "value" else None

    def _joined(self, node: ast.JoinedStr, depth: int) -> set[Value]:
        text = ""
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            values = self.values(inner, depth)
            plain = isinstance(part, ast.Constant) or (
                isinstance(part, ast.FormattedValue) and part.conversion == -1 and part.format_spec is None
            )
            value = next(iter(values)) if len(values) == 1 else UNKNOWN
            if not (plain and isinstance(value, Constant) and isinstance(value.value, str | int)):
                return {TEXT}
            text += str(value.value)
        return {Constant(text)}

    def _binary(self, node: ast.BinOp, depth: int) -> set[Value]:
        left, right = self.values(node.left, depth), self.values(node.right, depth)
        texts = any(
            isinstance(v, Text) or (isinstance(v, Constant) and isinstance(v.value, str)) for v in (*left, *right))
        found: set[Value] = set()
        for a in left:
            for b in right:
                folded = _fold(node.op, a, b)
                found.add(
                    folded if folded is not None else TEXT if texts
                    and isinstance(node.op, ast.Add | ast.Mod | ast.Mult) else UNKNOWN
                )
        return found

    def _subscript(self, node: ast.Subscript, depth: int) -> set[Value]:
        found: set[Value] = set()
        for base in self.values(node.value, depth):
            if not isinstance(base, Constant):
                return {UNKNOWN}
            try:
                index = ast.literal_eval(node.slice) if not isinstance(node.slice, ast.Slice) else _slice(node.slice)
                found.add(Constant(base.value[index]))
            except Exception:
                return {TEXT if isinstance(base.value, str) else UNKNOWN}
        return found

    def _call(self, node: ast.Call, depth: int) -> set[Value]:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS:
            bases = self.values(node.func.value, depth)
            if len(bases) == 1 and isinstance(base := next(iter(bases)), Constant) and isinstance(base.value, str):
                arguments = [next(iter(v)) for a in node.args if len(v := self.values(a, depth)) == 1]
                if len(arguments) == len(node.args) and not node.keywords and all(
                    isinstance(a, Constant) for a in arguments):
                    try:
                        folded = getattr(base.value, node.func.attr)(
                            *(a.value for a in arguments if isinstance(a, Constant)))
                    except Exception:
                        return {TEXT}
                    return {Constant(folded)} if not isinstance(folded, str) or len(folded) <= MAX_TEXT else {TEXT}
                return {TEXT}
            return {TEXT} if node.func.attr in ("join", "format", "decode") else {UNKNOWN}
        functions = self.values(node.func, depth)
        if Builtin("getattr") in functions and len(node.args) >= 2:
            names = self.values(node.args[1], depth)
            if all(isinstance(n, Constant) and isinstance(n.value, str) for n in names):
                bases = self.values(node.args[0], depth)
                return {v for b in bases for n in names if isinstance(n, Constant) for v in attribute(b, n.value)}
        if functions & {
            Builtin("str"), Builtin("input"), Builtin("repr"), Builtin("chr"), Builtin("format"), Builtin("ascii")}:
            arguments = [self.values(a, depth) for a in node.args]
            if (
                Builtin("chr") in functions
                and len(arguments) == 1
                and all(isinstance(v, Constant) and isinstance(v.value, int) for v in arguments[0])
            ):
                return {Constant(chr(v.value % 0x110000)) for v in arguments[0] if isinstance(v, Constant)}
            return {TEXT}
        if Builtin("type") in functions:
            return {KIND}
        return {Result(root) if (root := _package_of(f)) else UNKNOWN for f in functions} or {UNKNOWN}


def _package_of(function: Value) -> str:
    if isinstance(function, Result):
        return function.root
    return function.path.split(".")[0] if isinstance(function, Member) and not function.known else ""


_TEXT_METHODS = frozenset(
    "join format replace lower upper title strip lstrip rstrip decode capitalize swapcase casefold removeprefix "
    "removesuffix center ljust rjust zfill".split()
)


def _slice(node: ast.Slice) -> slice:
    return slice(*(ast.literal_eval(p) if p is not None else None for p in (node.lower, node.upper, node.step)))


def _fold(operator: ast.operator, a: Value, b: Value) -> Constant | None:
    if not (isinstance(a, Constant) and isinstance(b, Constant)):
        return None
    x, y = a.value, b.value
    try:
        if (
            isinstance(operator, ast.Add)
            and type(x) is type(y)
            and isinstance(x, str | bytes | int | tuple)
            and len(str(x)) + len(str(y)) < MAX_TEXT
        ):
            return Constant(x + y)
        if isinstance(operator, ast.Mod) and isinstance(x, str) and len(x) < MAX_TEXT and "*" not in x and not any(
            c.isdigit() for c in x):
            return Constant(x % y)
        if isinstance(operator, ast.Sub | ast.BitXor) and isinstance(x, int) and isinstance(y, int):
            return Constant(x - y if isinstance(operator, ast.Sub) else x ^ y)
        if isinstance(operator, ast.Mult) and isinstance(x, str) and isinstance(y, int) and len(x) * abs(y) < MAX_TEXT:
            return Constant(x * y)
    except Exception:
        return None
    return None


def attribute(base: Value, name: str) -> set[Value]:
    """Return the possible values of an attribute of a value."""
    if isinstance(base, Module):
        return member(base.name, name)
    if isinstance(base, Member) and base.known and (isinstance(base.thing, type) or callable(base.thing)):
        try:
            thing = getattr(base.thing, name)
        except Exception:
            return {UNKNOWN}
        return {_of_thing(f"{base.path}.{name}", thing)}
    if isinstance(base, Member) and not base.known:
        return {Member(f"{base.path}.{name}")}
    if isinstance(base, Result):
        return {base}
    return {KIND if name == "__class__" else UNKNOWN}


def member(module: str, name: str, star: bool = False) -> set[Value]:
    """Return the value of `from module import name`."""
    if not policy.is_stdlib(module):
        return {Member(f"{module}.{name}")}
    if module not in policy.STDLIB:
        return {Member(f"{module}.{name}", None, False)}
    try:
        thing = policy.real_attribute(module, name)
    except LookupError:
        return set() if star else {Member(f"{module}.{name}", None, False)}
    if star and name.startswith("_"):
        return set()
    return {_of_thing(f"{module}.{name}", thing)}


def _of_thing(path: str, thing: Any) -> Value:
    if isinstance(thing, ModuleType):
        return Module(thing.__name__)
    return Member(path, thing, True)
