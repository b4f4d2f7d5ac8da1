"""Arguments of calls in a Python program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from qwed_new.engines.code import python_policy as policy
from qwed_new.engines.code.python_scopes import Program
from qwed_new.engines.code.python_values import Constant, Member, Resolver

# Methods that only read a dictionary.
_READING = frozenset({"items", "keys", "values", "get"})


class Arguments:
    """Reads the arguments of the calls of one program."""

    def __init__(self, program: Program, resolver: Resolver, nodes: list[ast.AST]) -> None:
        self._program, self._resolver, self._nodes = program, resolver, nodes

    def positional(self, node: ast.Call) -> list[ast.expr] | None:
        """Return the positional arguments of a call, those of an unpacked tuple included, or None if it unpacks
        something that is not written in the program."""
        found: list[ast.expr] = []
        for argument in node.args:
            elements = self.elements(argument.value) if isinstance(argument, ast.Starred) else [argument]
            if elements is None:
                return None
            found += elements
        return found

    def elements(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the elements of a tuple or a list that cannot be changed before it is read, or None."""
        if isinstance(node, ast.Name) and isinstance(value := self._resolver.only_value(node), ast.Tuple):
            node = value
        if isinstance(node, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in node.elts):
            return node.elts
        return None

    def keywords(self, node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """The keyword arguments of a call, those of an unpacked dictionary included. A dictionary that is not written
        in the call may have every text of the program as a name."""
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield keyword.arg, keyword.value
                continue
            known = self._resolver.dictionary(keyword.value)
            values = {n: v for k, v in zip(known.keys, known.values, strict=True) if k is not None
                for n in self.names(k) or ()} if known else {}
            literal = isinstance(keyword.value, ast.Dict) and len(values) == len(keyword.value.keys)
            for name in values if literal else {*values, *self._keys}:
                yield name, values.get(name, keyword.value)

    @cached_property
    def _keys(self) -> frozenset[str]:
        """The texts of the program that name an argument which is judged."""
        texts = (n.value for n in self._nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
        return policy.JUDGED.intersection(texts)

    def keys(self, node: ast.expr) -> list[str] | None:
        """Return the keys of a dictionary, or None if one of them may not be a text that is written in the program."""
        known = self._resolver.dictionary(node)
        if known is None:
            return None
        found = [self.names(k) if k is not None else None for k in known.keys]
        if isinstance(node, ast.Name):
            found += [self._set_by(use) for use in self._nodes if isinstance(use, ast.Name) and use.id == node.id
                and isinstance(use.ctx, ast.Load)]
        return None if None in found else [name for names in found for name in names or ()]

    def _set_by(self, use: ast.Name) -> list[str] | None:
        """Return the keys that a use of a dictionary may add to it, or None if they are not known."""
        parent = self._program.parent_of.get(id(use))
        if isinstance(parent, ast.Subscript):
            return self.names(parent.slice)
        reads = (isinstance(parent, ast.keyword) and parent.arg is None) or (
            isinstance(parent, ast.Attribute) and parent.attr in _READING)
        return [] if reads else None

    def is_constant(self, node: ast.expr, wanted: object) -> bool:
        """Report whether an argument is a certain constant."""
        return self._resolver.values(node) == {Constant(wanted)}

    def names(self, node: ast.expr) -> list[str] | None:
        """Return the texts that an expression may be, or None if it may be something else."""
        values = self._resolver.values(node)
        texts = [v.value for v in values if isinstance(v, Constant) and isinstance(v.value, str)]
        return texts if len(texts) == len(values) else None

    def function(self, node: ast.expr) -> str:
        """The name of a function: that in its package, if it was imported under another one."""
        paths = [v.path for v in self._resolver.values(node) if isinstance(v, Member)]
        return paths[0].rsplit(".", 1)[-1] if paths else getattr(node, "attr", "") or getattr(node, "id", "")
