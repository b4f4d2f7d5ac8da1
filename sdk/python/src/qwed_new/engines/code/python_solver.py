"""Arguments of calls in a Python program, and the files that programs have Z3 read and write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from qwed_new.engines.code import python_policy as policy
from qwed_new.engines.code.python_reads import Reads
from qwed_new.engines.code.python_values import Constant, Member

# Functions of Z3 that take parameters, those that take commands of SMT-LIB, and those that take addresses.
_PARAMETERS = frozenset("set set_param set_option Context With using_params args2params".split())
_TEXTS = frozenset("parse_smt2_string from_string parse_string".split())
_SOLVERS = frozenset("Solver SolverFor SimpleSolver Optimize Fixedpoint".split())
_ADDRESSES = re.compile(r"(?:[A-Z]\w*Ref|AstVector|AstMap|ApplyResult|ParamDescrsRef)$")


class Arguments(Reads):
    """Read the arguments of calls, and judge those of Z3."""

    def _keywords(self, node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """The keyword arguments of a call, those of an unpacked dictionary included. A dictionary that is not written
        in the call may have every text of the program as a name."""
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield keyword.arg, keyword.value
                continue
            known = self._resolver.dictionary(keyword.value)
            values = {n: v for k, v in zip(known.keys, known.values, strict=True) if k is not None
                for n in self._names(k) or ()} if known else {}
            literal = isinstance(keyword.value, ast.Dict) and len(values) == len(keyword.value.keys)
            for name in values if literal else {*values, *self._keys}:
                yield name, values.get(name, keyword.value)

    @cached_property
    def _keys(self) -> frozenset[str]:
        """The texts of the program that name an argument which is judged."""
        texts = (n.value for n in self._nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
        return frozenset(t for t in texts if t in policy.JUDGED or (
            self._imports_solver and len(t) < 100 and policy.SOLVER_FILES.search(t)))

    def _is_constant(self, node: ast.expr, wanted: object) -> bool:
        return self._resolver.values(node) == {Constant(wanted)}

    def _names(self, node: ast.expr) -> list[str] | None:
        """Return the texts that an expression may be, or None if it may be something else."""
        values = self._resolver.values(node)
        texts = [v.value for v in values if isinstance(v, Constant) and isinstance(v.value, str)]
        return texts if len(texts) == len(values) else None

    def _function(self, node: ast.expr) -> str:
        """The name of a function: that in its package, if it was imported under another one."""
        paths = [v.path for v in self._resolver.values(node) if isinstance(v, Member)]
        return paths[0].rsplit(".", 1)[-1] if paths else getattr(node, "attr", "") or getattr(node, "id", "")

    def _solver_call(self, node: ast.Call) -> None:
        """A call that has Z3 read or write a file: by a parameter, as `s.set("smtlib2_log", "x")` and
        `set_param(trace_file_name="x")`, or by a command of SMT-LIB."""
        name = self._function(node.func)
        if name in _SOLVERS and (len(node.args) > (name == "SolverFor") or any(
            k in ("logFile", "solver", "optimize", "fixedpoint") for k, _ in self._keywords(node))):
            self._block(node, f"{name} of an address or a file")
        if _ADDRESSES.match(name) and name not in self._program.definitions:
            self._block(node, f"{name} of an address")
        if name in _TEXTS:
            texts = [t for a in node.args[:1] for t in self._names(a) or ()]
            if not texts or any(self._names_file(t) for t in texts):
                self._unresolved(node, f"{name} of commands about files, or of a computed text")
        if name in _PARAMETERS:
            given = [t for a in node.args for t in self._parameters(a)]
            for parameter in [*given, *(k for k, _ in self._keywords(node))]:
                if policy.SOLVER_FILES.search(parameter):
                    self._block(node, f"{name} of {parameter}")

    def _solver_name(self, node: ast.Name | ast.Attribute) -> None:
        """A function that is not called where it is named, and may be called later."""
        parent = self._program.parent_of.get(id(node))
        name = self._function(node)
        if name in _TEXTS | (_PARAMETERS - {"set", "Context"}) and not (
            isinstance(parent, ast.Call) and parent.func is node):
            self._unresolved(node, f"{name} used as a value")
        if name == "set" and isinstance(node, ast.Attribute) and not (
            isinstance(parent, ast.Call) and parent.func is node):
            self._unresolved(node, f"{name} used as a value")

    def _names_file(self, text: str) -> bool:
        return bool(policy.SOLVER_COMMANDS.search(text)) or any(
            policy.SOLVER_FILES.search(p) for p in re.findall(r":([\w.-]+)", text))

    def _parameters(self, argument: ast.expr) -> list[str]:
        known = self._resolver.dictionary(argument)
        keys = [k for k in known.keys if k is not None] if known else [argument]
        return [t for k in keys for t in self._names(k) or ()] + (list(self._keys) if known else [])
