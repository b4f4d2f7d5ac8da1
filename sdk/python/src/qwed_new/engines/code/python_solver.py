"""The files that a Python program has Z3 read and write: by the log of a solver, by a parameter, and by a command of
SMT-LIB."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from qwed_new.engines.code import python_policy as policy
from qwed_new.engines.code.python_arguments import Arguments
from qwed_new.engines.code.python_namespaces import Namespaces
from qwed_new.engines.code.python_scopes import Program
from qwed_new.engines.code.python_values import Builtin, Constant, Member, Resolver, Result, Text, Unknown, Value

# Functions that make a solver, and how many arguments may be passed to them: those behind them are addresses and files.
_SOLVERS = {"Solver": 0, "SolverFor": 1, "SimpleSolver": 0, "Optimize": 0, "Fixedpoint": 0, "solver": 0}
# Functions that take names and values of parameters, and how many arguments precede them.
_PARAMETERS = {"set": 0, "set_param": 0, "set_option": 0, "Context": 0, "using_params": 0, "With": 1}
# Functions of objects that are also applied to constraints, whose other arguments may be parameters.
_APPLYING = frozenset({"apply", "simplify"})
# Functions that take parameters as keyword arguments only.
_SOLVING = frozenset({"solve", "solve_using", "prove"})
_TEXTS = frozenset("parse_smt2_string from_string parse_string".split())
_DEFERRED = _TEXTS | _PARAMETERS.keys() - {"set", "Context"} | {"args2params"}
_ADDRESSES = re.compile(r"(?:[A-Z]\w*Ref|AstVector|AstMap|ApplyResult|ParamDescrsRef)$")


class Solver:
    """Judges the uses of Z3 in one program; `report` takes the findings."""

    def __init__(
        self,
        program: Program,
        resolver: Resolver,
        arguments: Arguments,
        namespaces: Namespaces,
        report: Callable[[ast.AST, str, str], None],
    ) -> None:
        self._program, self._resolver, self._arguments = program, resolver, arguments
        self._namespaces, self._report = namespaces, report
        self.imported = False

    def call(self, node: ast.Call) -> None:
        """Judge a call, such as `s.set("smtlib2_log", "x")` and `set_param(trace_file_name="x")`."""
        name = self._arguments.function(node.func)
        values = self._resolver.values(node.func)
        if isinstance(node.func, ast.Name) and (Builtin(name) in values or (
            name in ("solver", "apply") and not any(_is_of_z3(v) for v in values))):
            return  # set(), or a function of the program
        given = self._arguments.positional(node)
        judged = name in _SOLVERS or name in _PARAMETERS or name in _TEXTS | {"args2params"}
        if given is None and judged:
            self._report(node, "unresolved", f"{name} with arguments that are unpacked")
        given = given or []
        if name in _SOLVERS and not self._is_own_method(node):
            self._made(node, name, given)
        if _ADDRESSES.match(name) and name not in self._program.definitions:
            self._report(node, "block", f"{name} of an address")
        if name in _TEXTS:
            self._commands(node, name, given)
        if name in _PARAMETERS:
            for argument in given[_PARAMETERS[name]::2]:
                self._parameter(node, name, argument)
        if name == "args2params":
            self._converted(node, given)
        if name in _APPLYING or any(isinstance(v, Result) and _is_of_z3(v) for v in values):
            self._applied(node, name, given)
        self._named(node, name, values)

    def _made(self, node: ast.Call, name: str, given: list[ast.expr]) -> None:
        if len(given) > _SOLVERS[name] or policy.SOLVER_ARGUMENTS.intersection(self._keywords(node, name)):
            self._report(node, "block", f"{name} of an address or a file")

    def _keywords(self, node: ast.Call, by: str) -> list[str]:
        """The names of the keyword arguments of a call."""
        found: list[str] = []
        for keyword in node.keywords:
            names = [keyword.arg] if keyword.arg is not None else self._arguments.keys(keyword.value)
            if names is None:
                self._report(node, "unresolved", f"{by} with arguments that are unpacked")
            found += names or ()
        return found

    def _is_own_method(self, node: ast.Call) -> bool:
        """Report whether a call is of a method of the program, such as `self.solver(x)`."""
        function = node.func
        return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and (
            function.value.id in ("self", "cls")) and function.attr in self._program.definitions

    def _commands(self, node: ast.Call, name: str, given: list[ast.expr]) -> None:
        texts = [t for a in given[:1] for t in self._arguments.names(a) or ()]
        if not texts or any(_names_file(t) for t in texts):
            self._report(node, "unresolved", f"{name} of commands about files, or of a computed text")

    def _parameter(self, node: ast.Call, by: str, argument: ast.expr) -> None:
        names = self._arguments.names(argument)
        if names is None:
            self._report(node, "unresolved", f"{by} of a parameter whose name is computed")
        for name in names or ():
            self._file(node, by, name)

    def _file(self, node: ast.Call, by: str, parameter: str) -> None:
        if policy.SOLVER_FILES.search(parameter):
            self._report(node, "block", f"{by} of {parameter}")

    def _converted(self, node: ast.Call, given: list[ast.expr]) -> None:
        """Judge `args2params(["timeout", 5], {"seed": 1})`."""
        elements = self._arguments.elements(given[0]) if given else None
        names = self._arguments.keys(given[1]) if len(given) > 1 else None
        if elements is None or names is None:
            self._report(node, "unresolved", "args2params of computed parameters")
        for argument in (elements or [])[::2]:
            self._parameter(node, "args2params", argument)
        for name in names or ():
            self._file(node, "args2params", name)

    def _applied(self, node: ast.Call, name: str, given: list[ast.expr]) -> None:
        """Judge `tactic(goal, "drat.file", "x")`."""
        for argument in given[:-1]:
            for value in self._resolver.values(argument):
                if isinstance(value, Constant) and isinstance(value.value, str):
                    self._file(node, name, value.value)
                elif isinstance(value, Text):
                    self._report(node, "unresolved", "a parameter of a tactic whose name is computed")

    def _named(self, node: ast.Call, name: str, values: set[Value]) -> None:
        """Judge the names of keyword arguments, which are parameters for every function that takes them."""
        if name in _SOLVERS or name in _PARAMETERS or name in _APPLYING | _SOLVING or any(
            isinstance(v, Result) and _is_of_z3(v) for v in values):
            for parameter in self._keywords(node, name):
                self._file(node, name, parameter)
        elif name not in self._program.definitions and not any(
            isinstance(v, Builtin) or (isinstance(v, Member) and v.known and not v.path.startswith("functools."))
            for v in values):
            for keyword in node.keywords:
                self._file(node, name, keyword.arg or "")

    def name(self, node: ast.Name | ast.Attribute) -> None:
        """Judge a function that is not called where it is named, and may be called later."""
        parent = self._program.parent_of.get(id(node))
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        name = self._arguments.function(node)
        if name in _DEFERRED or (isinstance(node, ast.Attribute) and (
            name == "set" or (name == "solver" and self._may_make_solver(node.value)))):
            self._report(node, "unresolved", f"{name} used as a value")
        elif name in _SOLVERS and any(
            isinstance(v, Member) and _is_of_z3(v) for v in self._resolver.values(node)) and not (
            isinstance(parent, ast.Assign) or self._namespaces.is_only_shown(node)
            or id(node) in self._namespaces.annotations):
            self._report(node, "unresolved", f"{name} used as a value")

    def _may_make_solver(self, base: ast.expr) -> bool:
        return any(_is_of_z3(v) or (type(v) is Unknown and "solver" not in self._program.attributes)
            for v in self._resolver.values(base))

    def by_name(self, node: ast.AST, name: str) -> None:
        """Judge an attribute that is read by a text, as getattr does."""
        if name in _DEFERRED | {"set", "solver"}:
            self._report(node, "unresolved", f"{name} read by its name")


def _is_of_z3(value: Value) -> bool:
    if isinstance(value, Result):
        return value.root == "z3"
    return isinstance(value, Member) and value.path.startswith("z3.")


def _names_file(text: str) -> bool:
    return bool(policy.SOLVER_COMMANDS.search(text)) or any(
        policy.SOLVER_FILES.search(p) for p in re.findall(r":([\w.-]+)", text))
