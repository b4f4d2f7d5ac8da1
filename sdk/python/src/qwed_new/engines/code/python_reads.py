"""Imports, names and attributes of a Python program: which it may read, and which lead to something dangerous."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from qwed_new.engines.code import python_policy as policy
from qwed_new.engines.code.findings import Finding
from qwed_new.engines.code.python_arguments import Arguments
from qwed_new.engines.code.python_namespaces import Namespaces
from qwed_new.engines.code.python_scopes import Program, Scope
from qwed_new.engines.code.python_solver import Solver
from qwed_new.engines.code.python_values import (
    Builtin,
    Constant,
    Kind,
    Member,
    Module,
    Resolver,
    Result,
    Text,
    Unknown,
    Value,
)

# Attributes that make an object anew.
_MAKING = frozenset({"__init__", "__new__", "__dict__", "__setattr__", "__call__", "__getattr__", "__getattribute__"})


class Reads:
    """Judge what a program imports and reads, and keep the findings."""

    def __init__(self, evaluates: bool = False) -> None:
        self._findings: list[Finding] = []
        self._program = Program()
        self._resolver = Resolver(self._program)
        self._evaluates = evaluates  # whether a library that evaluates texts can be reached
        self._formats = self._has_streams = self._imports_loader = False
        self._nodes: list[ast.AST] = []
        self._namespaces = Namespaces(self._program, self._resolver, self._nodes)
        self._arguments = Arguments(self._program, self._resolver, self._nodes)
        self._solver = Solver(self._program, self._resolver, self._arguments, self._namespaces, self._report)
        self._refused: set[str] = set()  # names that lead out of the packages that the program imports

    def _report(self, node: ast.AST, kind: str, message: str) -> None:
        (self._block if kind == "block" else self._unresolved)(node, message)

    def _block(self, node: ast.AST, pattern: str, severity: str = "critical") -> None:
        alternative = policy.ALTERNATIVES.get(pattern, "")
        self._findings.append(
            Finding("dangerous_pattern", severity, f"Dangerous pattern: {pattern}", getattr(node, "lineno", 0),
                alternative)
        )

    def _unresolved(self, node: ast.AST, what: str) -> None:
        self._findings.append(
            Finding("unresolved_reflection", "high", f"Unresolved reflection: {what}", getattr(node, "lineno", 0)))

    # Imports

    def _check_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._import(node, alias.name)

    def _import(self, node: ast.AST, module: str) -> bool:
        """Judge the import of a module, and report whether its members can be judged."""
        root = module.split(".")[0]
        if policy.is_stdlib(module):
            if module not in policy.STDLIB:
                self._block(node, module)
                return False
            scope = self._program.scope_of.get(id(node))
            if scope and scope.kind == "class" and module not in policy.LEAVES:
                self._unresolved(node, f"module {module} as an attribute of a class")
            return True
        parts = module.split(".")
        if root.startswith("_"):
            self._block(node, root)
            return False
        if root in policy.PACKAGES or policy.THIRD_PARTY_DENY.get(root) is policy.ALL:
            self._block(node, root)
            return False
        self._foreign(node, module)
        return bool(parts)

    def _check_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            self._unresolved(node, "a relative import")
            return
        if not self._import(node, module):
            return
        for alias in node.names:
            if alias.name == "*":
                if policy.is_stdlib(module):
                    self._star(node, module)
                continue
            if policy.is_stdlib(module):
                self._member(node, module, alias.name)
            elif alias.name in policy.METHODS or alias.name == "open":
                self._block(node, f"{module}.{alias.name}")
            else:
                self._foreign(node, f"{module}.{alias.name}")

    def _star(self, node: ast.AST, module: str) -> None:
        if module in ("builtins", "sys", "importlib"):
            self._unresolved(node, f"star import of {module}")

    def _foreign(self, node: ast.AST, path: str) -> None:
        root, *rest = path.split(".")
        denied = policy.THIRD_PARTY_DENY.get(root, frozenset())
        for part in rest:
            if (
                part in policy.SEGMENTS
                or part in denied
                or policy.leads_out(root, part)
                or (part.startswith("_") and not part.startswith("__"))
            ):
                self._block(node, path)
                return
        if root in policy.PACKAGES:
            self._block(node, root)

    def _member(self, node: ast.AST, module: str, name: str) -> None:
        """Judge the reading of an attribute of a module of the standard library."""
        if module not in policy.STDLIB:
            self._block(node, f"{module}.{name}")
            return
        if name.startswith("_") and not (name.startswith("__") and name.strip("_") in policy.DUNDERS - {"dict"}):
            self._block(node, f"{module}.{name}")
            return
        if policy.refused(module, name):
            self._block(node, name if module == "builtins" else f"{module}.{name}")
            return
        try:
            thing = policy.real_attribute(module, name)
        except LookupError:
            if module not in policy.LEAVES and f"{module}.{name}" not in policy.STDLIB:
                self._unresolved(node, f"{module}.{name} does not exist")
            return
        if isinstance(thing, type(ast)) and thing.__name__ not in policy.STDLIB:
            self._block(node, thing.__name__)
        elif id(thing) in policy.identities() and callable(thing):
            self._block(node, policy.identities()[id(thing)])

    # Names and attributes

    def _check_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            if isinstance(node.ctx, ast.Store) and node.id in (
                "__builtins__", "__import__", "__loader__", "__spec__", "__build_class__"):
                self._block(node, node.id)
            return
        for value in self._resolver.values(node):
            if isinstance(value, Builtin):
                self._builtin(node, value.name)
            elif isinstance(value, Module):
                self._handed_on(node, value)
            elif isinstance(value, Member) and value.known and id(value.thing) in policy.identities() and callable(
                value.thing):
                self._block(node, policy.identities()[id(value.thing)])
            elif isinstance(value, Member) and value.known and not self._defined(node):  # by a star import
                self._member(node, *value.path.rsplit(".", 1))
            elif isinstance(value, Member) and not self._defined(node):
                self._foreign(node, value.path)
        if self._solver.imported:
            self._solver.name(node)
        if node.id.startswith("__") and node.id.endswith("__") and node.id.strip("_") not in policy.DUNDERS | {"debug"}:
            if node.id not in policy.BUILTINS and not self._defined(node):
                self._unresolved(node, node.id)

    def _defined(self, node: ast.Name) -> bool:
        scope: Scope | None = self._program.scope_of[id(node)]
        while scope:
            if node.id in scope.bindings:
                return True
            scope = scope.parent
        return False

    def _builtin(self, node: ast.Name, name: str) -> None:
        if name in policy.BUILTINS:
            self._block(node, name)
        elif name in ("getattr", "setattr", "delattr", "vars") and not self._called(node):
            self._unresolved(node, f"{name} used as a value")
        elif name.startswith("__") and name.strip("_") not in policy.DUNDERS | {"debug"}:
            self._block(node, name)

    def _called(self, node: ast.AST) -> bool:
        parent = self._program.parent_of.get(id(node))
        return isinstance(parent, ast.Call) and parent.func is node

    def _handed_on(self, node: ast.expr, module: Module) -> None:
        """Check the use of a module. Its attributes may be read and it may be renamed; any other use passes it on."""
        if module.foreign or module.name in policy.LEAVES:
            return
        parent, child = self._program.parent_of.get(id(node)), node
        while isinstance(parent, ast.IfExp | ast.BoolOp | ast.NamedExpr):
            parent, child = self._program.parent_of.get(id(parent)), parent  # type: ignore[assignment]
        scope = self._program.scope_of[id(node)]
        if isinstance(parent, ast.Attribute | ast.Expr):
            return
        if isinstance(parent, ast.Tuple) and isinstance(outer := self._program.parent_of.get(id(parent)), ast.Assign):
            if all(
                isinstance(t, ast.Tuple) and len(t.elts) == len(parent.elts)
                and all(isinstance(e, ast.Name) for e in t.elts)
                for t in outer.targets
            ):
                if scope.kind != "class":
                    return
        if (
            isinstance(parent, ast.Assign)
            and parent.value is child
            and scope.kind != "class"
            and all(isinstance(t, ast.Name) for t in parent.targets)
        ):
            return
        if isinstance(parent, ast.Call) and parent.args and parent.args[0] is child:
            if self._resolver.values(parent.func) & {
                Builtin("getattr"), Builtin("hasattr"), Builtin("dir"), Builtin("print")}:
                return
        self._unresolved(node, f"module {module.name} used as a value")

    def _check_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._stored(node)
            return
        self._read(node, node.value, node.attr)
        if self._solver.imported:
            self._solver.name(node)
        for value in self._resolver.values(node):
            if isinstance(value, Module):
                self._handed_on(node, value)

    def _stored(self, node: ast.Attribute) -> None:
        if node.attr in policy.REFLECTIVE or (
            node.attr.startswith("__") and node.attr.endswith("__") and node.attr not in ("__doc__", "__name__")
        ):
            self._block(node, node.attr)
        self._replaced(node, node.value, node.attr)

    def _replaced(self, node: ast.AST, base: ast.expr, name: str) -> None:
        """Judge a value that is given to an attribute of a module, or of something that a package made."""
        for value in self._resolver.values(base):
            if isinstance(value, Module) and (not value.foreign or policy.in_image(value.name)):
                self._unresolved(node, f"{value.name}.{name} is replaced")
            elif isinstance(value, Member) and policy.in_image(value.path) and name not in policy.SETTINGS:
                self._unresolved(node, f"{value.path}.{name} is replaced")

    def _read(self, node: ast.AST, base: ast.expr, name: str) -> None:
        """Judge `base.name`, written so or by getattr."""
        if name in policy.REFLECTIVE or (
            name.startswith("__") and name.endswith("__") and name.strip("_") not in policy.DUNDERS):
            self._block(node, name)
            return
        if name in ("raw", "detach") and self._has_streams and name not in self._program.attributes:
            self._block(node, "sys.stdout.buffer.raw")  # its type opens files
        if name == "__dict__" and (reason := self._namespaces.refusal(base)):
            self._unresolved(node, reason)
        if name == "__class__" and self._makes(node, base):
            self._unresolved(node, "the class of a package's object as a value")
        for value in self._resolver.values(base):
            if name in _MAKING and isinstance(value, Module | Member | Result) and self._is_foreign(value):
                self._block(node, name)
            if isinstance(value, Module) and not value.foreign:
                self._member(node, value.name, name)
            elif isinstance(value, Module):
                self._foreign(node, f"{value.name}.{name}")
            elif isinstance(value, Member) and not value.known:
                self._foreign(node, f"{value.path}.{name}")
                self._method(node, name, value)
            else:
                self._method(node, name, value)
        if name.startswith("_") and not name.startswith("__") and "__" in name[1:] and isinstance(
            base, ast.Name | ast.Attribute):
            self._block(node, name)

    def _is_foreign(self, value: Module | Member | Result) -> bool:
        return value.foreign if isinstance(value, Module) else isinstance(value, Result) or not value.known

    def _makes(self, node: ast.AST, base: ast.expr) -> bool:
        """Whether the type of an object of a package is used for more than its name or a comparison."""
        parent = self._program.parent_of.get(id(node))
        if isinstance(parent, ast.Attribute):
            return parent.attr in _MAKING
        return self._is_of_image(base) and not self._namespaces.is_only_shown(node)

    def _is_of_image(self, base: ast.expr) -> bool:
        """Whether an object is of a package in the image, or may be one because it is not known."""
        if isinstance(base, ast.Name) and base.id in ("self", "cls", "other"):
            return False
        for value in self._resolver.values(base):
            if isinstance(value, Member) and policy.in_image(value.path):
                return True
            if isinstance(value, Result) and value.root == "z3":
                return True
            if type(value) in (Unknown, Kind) and (self._imports_loader or self._solver.imported):
                return True
        return False

    def _method(self, node: ast.AST, name: str, value: Value) -> None:
        if isinstance(value, Unknown) and name in self._refused and name not in self._program.attributes:
            self._block(node, name)
        if name in policy.METHODS:
            if not (isinstance(value, Unknown) and name in self._program.attributes):
                path = f"{value.path}.{name}" if isinstance(value, Member) else name
                self._block(node, path)
        elif name in ("open", "fdopen") and name not in self._program.attributes and not self._is_only_read(
            node, value):
            self._block(node, f"{value.path}.{name}" if isinstance(value, Member) else name)
        elif name in (
            "rename",
            "replace",
            "glob",
            "write",
            "symlink",
            "link",
            "rmtree",
            "walk",
            "owner",
            "group",
            "readlink",
        ) and self._is_path(node):
            self._block(node, f"pathlib.Path.{name}")
        elif name in policy.SEGMENTS - {
            "code",
            "test",
            "signal",
            "glob",
            "inspect",
            "nt",
            "http",
            "requests",
            "gc",
            "imp",
            "site",
            "testing",
            "trace",
        }:
            if name not in self._program.attributes and isinstance(value, Unknown | Member):
                self._block(node, name)

    def _is_only_read(self, node: ast.AST, value: Value) -> bool:
        """Report whether an attribute such as `bar.open` is used as a value that is compared, computed with or
        shown."""
        if isinstance(value, Constant | Text):
            return True  # a constant has no such attribute
        if not isinstance(value, Unknown) or self._is_path(node) or not isinstance(node, ast.Attribute):
            return False
        parent = self._program.parent_of.get(id(node))
        if isinstance(parent, ast.Assign) and all(isinstance(t, ast.Name) for t in parent.targets):
            names = [t.id for t in parent.targets if isinstance(t, ast.Name)]
            return all(self._is_number(name) for name in names)
        if isinstance(parent, ast.Call) and node in parent.args:
            shown = {
                Builtin(n)
                for n in ("print", "str", "repr", "float", "int", "round", "abs", "len", "sum", "max", "min", "bool")}
            return self._resolver.values(parent.func) <= shown
        return isinstance(
            parent, ast.Compare | ast.BinOp | ast.UnaryOp | ast.FormattedValue | ast.Subscript | ast.If | ast.Expr)

    def _is_number(self, name: str) -> bool:
        """Report whether every use of a name is a comparison, arithmetic or output, so that it is not called later."""
        for key, parent in self._uses(name):
            if isinstance(parent, ast.Call):
                called = self._resolver.values(parent.func)
                if any(parent.func is n for n in (key,)) or not called <= {
                    Builtin("print"), Builtin("round"), Builtin("abs")}:
                    return False
            elif not isinstance(parent, ast.Compare | ast.BinOp | ast.UnaryOp | ast.FormattedValue):
                return False
        return True

    def _uses(self, name: str) -> Iterator[tuple[ast.AST, ast.AST | None]]:
        for node in self._nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                yield node, self._program.parent_of.get(id(node))

    def _is_path(self, node: ast.AST) -> bool:
        base = node.value if isinstance(node, ast.Attribute) else None
        for _ in range(4):
            if isinstance(base, ast.Call):
                return any(
                    isinstance(v, Member) and v.path.startswith("pathlib.") for v in self._resolver.values(base.func))
            if isinstance(base, ast.Name):
                base = self._resolver.only_value(base)
        return False
