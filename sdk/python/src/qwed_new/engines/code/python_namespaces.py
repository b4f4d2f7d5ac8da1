"""Namespaces of a Python program: what vars() and `__dict__` may return.

The namespace of `object`, `type` or the type of a function has functions that read any attribute by a computed name.
The namespaces of instances and of the program's classes have nothing that the program could not name.
"""

from __future__ import annotations

import ast
import builtins
from functools import cached_property

from qwed_new.engines.code.python_scopes import Program
from qwed_new.engines.code.python_values import Builtin, Kind, Member, Module, Resolver, Unknown, Value

# Functions that show or compare their arguments.
_SHOWN = {Builtin(n) for n in ("print", "str", "repr", "isinstance", "issubclass", "id", "hash", "len")}
_TYPES_OF_ARGUMENTS = frozenset({"__annotations__", "annotation", "return_annotation", "type"})


class Namespaces:
    """Judges whose namespace a program reads."""

    def __init__(self, program: Program, resolver: Resolver, nodes: list[ast.AST]) -> None:
        self._program, self._resolver, self._nodes = program, resolver, nodes

    def refusal(self, base: ast.expr) -> str:
        """Return why the namespace of an expression may not be read, or an empty string."""
        for value in self._resolver.values(base):
            if isinstance(value, Module | Member):
                return "vars of a namespace"
            if isinstance(value, Kind) or (
                isinstance(value, Builtin) and isinstance(getattr(builtins, value.name, None), type)):
                return "the namespace of a type"
            if isinstance(value, Unknown) and self._hands_on_types:
                return "the namespace of what may be a type"
        return ""

    @cached_property
    def _hands_on_types(self) -> bool:
        """Whether a variable or an argument may be `object`, `type` or the type of a function."""
        annotations = set() if self._reads_annotations else self.annotations
        return any(
            isinstance(node, ast.Name | ast.Attribute | ast.Call)
            and id(node) not in annotations
            and any(self._is_type(v) for v in self._resolver.values(node))
            and self._is_handed_on(node)
            for node in self._nodes
        )

    @property
    def _reads_annotations(self) -> bool:
        return any(isinstance(n, ast.Attribute) and n.attr in _TYPES_OF_ARGUMENTS for n in self._nodes)

    @cached_property
    def annotations(self) -> set[int]:
        """The nodes that are parts of annotations."""
        found = (getattr(node, name, None) for node in self._nodes for name in ("annotation", "returns"))
        return {id(inner) for part in found if isinstance(part, ast.AST) for inner in ast.walk(part)}

    def _is_type(self, value: Value) -> bool:
        return isinstance(value, Kind) or value in (Builtin("object"), Builtin("type")) or (
            isinstance(value, Member) and value.path.startswith("types.") and isinstance(value.thing, type))

    def _is_handed_on(self, node: ast.expr) -> bool:
        """Whether an expression is used for more than a call, a comparison, a base class or output."""
        parent = self._user(node)
        return not (self.is_only_shown(node) or (isinstance(parent, ast.Call) and parent.func is node) or isinstance(
            parent, ast.Attribute | ast.ClassDef | ast.ExceptHandler | ast.Expr))

    def is_only_shown(self, node: ast.AST) -> bool:
        """Report whether an expression, or the tuple that it is in, is only compared or shown."""
        parent = self._user(node)
        if isinstance(parent, ast.Call):
            return parent.func is not node and self._resolver.values(parent.func) <= _SHOWN
        return isinstance(parent, ast.Compare | ast.FormattedValue)

    def _user(self, node: ast.AST) -> ast.AST | None:
        parent = self._program.parent_of.get(id(node))
        outer = self._program.parent_of.get(id(parent)) if isinstance(parent, ast.Tuple) else None
        return outer if outer is not None and not isinstance(outer, ast.Attribute) else parent
