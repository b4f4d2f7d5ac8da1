"""Scopes of a Python program and what each name may be bound to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Binding:
    """One way in which a name gets its value.

    kind: module (detail is its name), member (detail is module and name), value (detail is the expression), element
    (detail is the iterated expression and the path into its elements), parameter (detail is the function, its name and
    its default), opaque.
    """

    kind: str
    detail: Any
    line: int
    unconditional: bool = False


@dataclass(slots=True)
class Scope:
    """A module, class, function or comprehension."""

    kind: str
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    elsewhere: dict[str, Scope] = field(default_factory=dict)  # global and nonlocal names
    deleted: set[str] = field(default_factory=set)

    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent:
            scope = scope.parent
        return scope


@dataclass(slots=True)
class Program:
    """The scopes of a program and the places of its nodes."""

    scope_of: dict[int, Scope] = field(default_factory=dict)
    parent_of: dict[int, ast.AST] = field(default_factory=dict)
    calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    loads: dict[str, int] = field(default_factory=dict)
    definitions: dict[str, int] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)  # names that the program itself gives to attributes


def read(tree: ast.AST, program: Program, scope: Scope) -> None:
    """Collect the bindings of a tree in a scope."""
    _Reader(program).read(tree, scope, isinstance(tree, ast.Module))


class _Reader:
    def __init__(self, program: Program) -> None:
        self._program = program

    def read(self, node: ast.AST, scope: Scope, top: bool) -> None:
        self._program.scope_of[id(node)] = scope
        handler = getattr(self, "_" + type(node).__name__, None)
        if handler:
            handler(node, scope, top)
        else:
            self._children(node, scope, top and isinstance(node, ast.Module | ast.Expr))

    def _children(self, node: ast.AST, scope: Scope, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            self._program.parent_of[id(child)] = node
            self.read(child, scope, top)

    def _child(self, node: ast.AST, child: ast.AST | None, scope: Scope) -> None:
        if child is not None:
            self._program.parent_of[id(child)] = node
            self.read(child, scope, False)

    def _bind(self, scope: Scope, name: str, binding: Binding) -> None:
        target = scope.elsewhere.get(name, scope)
        if target is not scope:
            binding.unconditional = False
        target.bindings.setdefault(name, []).append(binding)

    def _target(
        self,
        scope: Scope,
        target: ast.AST,
        value: ast.expr | None,
        top: bool,
        path: tuple[int, ...] | None = None,
        source: ast.expr | None = None,
    ) -> None:
        """Bind a target to a value, or (path, source) to elements of an iterated expression."""
        line = getattr(target, "lineno", 0)
        if isinstance(target, ast.Name):
            if path is not None:
                self._bind(scope, target.id, Binding("element", (source, path), line, top))
            else:
                self._bind(scope, target.id, Binding("value" if value is not None else "opaque", value, line, top))
        elif isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(e, ast.Starred) for e in target.elts)
            for i, element in enumerate(target.elts):
                if starred:
                    self._target(scope, element.value if isinstance(element, ast.Starred) else element, None, top)
                elif path is not None:
                    self._target(scope, element, None, top, (*path, i), source)
                elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                    self._target(scope, element, value.elts[i], top)
                elif value is not None:
                    self._target(
                        scope, element, None, top, (i,), ast.copy_location(ast.List([value], ast.Load()), value))
                else:
                    self._target(scope, element, None, top)
        elif isinstance(target, ast.Starred):
            self._target(scope, target.value, None, top)
        elif isinstance(target, ast.Attribute):
            self._program.attributes.add(target.attr)

    def _Name(self, node: ast.Name, scope: Scope, top: bool) -> None:
        if isinstance(node.ctx, ast.Load):
            self._program.loads[node.id] = self._program.loads.get(node.id, 0) + 1
        elif isinstance(node.ctx, ast.Del):
            scope.elsewhere.get(node.id, scope).deleted.add(node.id)

    def _Call(self, node: ast.Call, scope: Scope, top: bool) -> None:
        if isinstance(node.func, ast.Name):
            self._program.calls.setdefault(node.func.id, []).append(node)
        self._children(node, scope, False)

    def _Assign(self, node: ast.Assign, scope: Scope, top: bool) -> None:
        for target in node.targets:
            self._target(scope, target, node.value, top)
        self._children(node, scope, False)

    def _AnnAssign(self, node: ast.AnnAssign, scope: Scope, top: bool) -> None:
        if node.value is not None:
            self._target(scope, node.target, node.value, top)
        self._children(node, scope, False)

    def _AugAssign(self, node: ast.AugAssign, scope: Scope, top: bool) -> None:
        self._target(scope, node.target, None, False)
        self._children(node, scope, False)

    def _NamedExpr(self, node: ast.NamedExpr, scope: Scope, top: bool) -> None:
        owner = scope
        while owner.kind == "comprehension" and owner.parent:
            owner = owner.parent
        self._target(owner, node.target, node.value, False)
        self._children(node, scope, False)

    def _For(self, node: ast.For | ast.AsyncFor, scope: Scope, top: bool) -> None:
        self._target(scope, node.target, None, False, (), node.iter)
        self._children(node, scope, False)

    _AsyncFor = _For

    def _comprehension(self, node: ast.comprehension, scope: Scope, top: bool) -> None:
        self._target(scope, node.target, None, False, (), node.iter)
        self._children(node, scope, False)

    def _new(self, node: ast.AST, scope: Scope, top: bool) -> None:
        self._children(node, Scope("comprehension", scope), False)

    _ListComp = _SetComp = _DictComp = _GeneratorExp = _new

    def _withitem(self, node: ast.withitem, scope: Scope, top: bool) -> None:
        if node.optional_vars is not None:
            self._target(scope, node.optional_vars, None, False)
        self._children(node, scope, False)

    def _ExceptHandler(self, node: ast.ExceptHandler, scope: Scope, top: bool) -> None:
        if node.name:
            self._bind(scope, node.name, Binding("opaque", None, node.lineno))
            scope.elsewhere.get(node.name, scope).deleted.add(node.name)
        self._children(node, scope, False)

    def _capture(self, node: Any, scope: Scope, top: bool) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name:
            self._bind(scope, name, Binding("opaque", None, node.lineno))
        self._children(node, scope, False)

    _MatchAs = _MatchStar = _MatchMapping = _capture

    def _Global(self, node: ast.Global, scope: Scope, top: bool) -> None:
        for name in node.names:
            scope.elsewhere[name] = scope.module()

    def _Nonlocal(self, node: ast.Nonlocal, scope: Scope, top: bool) -> None:
        for name in node.names:
            owner = scope.parent
            while owner and owner.parent and not (owner.kind == "function" and name in owner.bindings):
                owner = owner.parent
            scope.elsewhere[name] = owner or scope.module()

    def _Import(self, node: ast.Import, scope: Scope, top: bool) -> None:
        for alias in node.names:
            module = alias.name if alias.asname else alias.name.split(".")[0]
            self._bind(scope, alias.asname or module, Binding("module", module, node.lineno, top))

    def _ImportFrom(self, node: ast.ImportFrom, scope: Scope, top: bool) -> None:
        for alias in node.names:
            if alias.name == "*":
                scope.module().stars.append(node.module or "")
            else:
                self._bind(
                    scope, alias.asname or alias.name,
                    Binding("member", (node.module or "", alias.name), node.lineno, top))

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, top: bool) -> None:
        self._bind(scope, node.name, Binding("opaque", None, node.lineno, top))
        self._program.definitions[node.name] = self._program.definitions.get(node.name, 0) + 1
        if scope.kind == "class":
            self._program.attributes.add(node.name)
        for outer in (*node.decorator_list, *_outer(node.args), node.returns):
            self._child(node, outer, scope)
        inner = Scope("function", scope)
        self._parameters(node, inner)
        for statement in node.body:
            if isinstance(statement, ast.Global | ast.Nonlocal):
                self.read(statement, inner, False)
        for statement in node.body:
            self._child(node, statement, inner)

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, node: ast.Lambda, scope: Scope, top: bool) -> None:
        for outer in _outer(node.args):
            self._child(node, outer, scope)
        inner = Scope("function", scope)
        self._parameters(node, inner)
        self._child(node, node.body, inner)

    def _parameters(self, node: Any, inner: Scope) -> None:
        arguments: ast.arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        for i, (argument, default) in enumerate(zip(positional, [*defaults, *arguments.defaults], strict=True)):
            inner.bindings.setdefault(argument.arg, []).append(
                Binding("parameter", (node, i, argument.arg, default), argument.lineno))
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            inner.bindings.setdefault(argument.arg, []).append(
                Binding("parameter", (node, None, argument.arg, default), argument.lineno))
        for argument in (arguments.vararg, arguments.kwarg):
            if argument:
                inner.bindings.setdefault(argument.arg, []).append(Binding("opaque", None, argument.lineno))

    def _ClassDef(self, node: ast.ClassDef, scope: Scope, top: bool) -> None:
        self._bind(scope, node.name, Binding("opaque", None, node.lineno, top))
        for outer in (*node.decorator_list, *node.bases, *node.keywords):
            self._child(node, outer, scope)
        inner = Scope("class", scope)
        for statement in node.body:
            self._child(node, statement, inner)
        self._program.attributes.update(inner.bindings)


def _outer(arguments: ast.arguments) -> Iterator[ast.expr | None]:
    yield from arguments.defaults
    yield from arguments.kw_defaults
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            yield argument.annotation
