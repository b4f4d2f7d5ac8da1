"""The analyser of Python programs: scopes, aliases, attribute chains and constants, never a substring.

It blocks dangerous names and reflection that cannot be resolved. Reading a dangerous name is enough, so that
containers, decorators and callbacks cannot pass it on. Modules that give access to other modules may not be used as
values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from qwed_new.engines.code import python_policy as policy
from qwed_new.engines.code.findings import Finding, unique
from qwed_new.engines.code.python_scopes import Program, Scope, read
from qwed_new.engines.code.python_texts import Texts, imports_evaluator
from qwed_new.engines.code.python_values import (
    Builtin,
    Constant,
    Member,
    Module,
    Resolver,
    Result,
    Text,
    Unknown,
    Value,
)

MAX_CODE = 1_000_000
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_FILE_SQL = re.compile(r"\b(?:attach|vacuum\s+into|load_extension|readfile|writefile|edit)\b", re.I)


# Attributes that make an object anew, and names in packages that methods of harmless objects have too.
_MAKING = frozenset({"__init__", "__new__", "__dict__", "__setattr__", "__call__", "__getattr__", "__getattribute__"})
_COMMON = frozenset(
    "test load parse main settings usage source configure constructor loader baseline initialize moves lib".split())


def analyse(code: str) -> list[Finding]:
    """Return the findings of a program, or raise SyntaxError."""
    if len(code) > MAX_CODE:
        return [Finding("too_large", "high", f"Too large: the program has more than {MAX_CODE} characters")]
    if finding := _encoding(code):
        return [finding]
    try:
        tree = ast.parse(code)
        return unique(_Analyser().run(tree))
    except (RecursionError, MemoryError):
        return [Finding("too_deep", "high", "Too deep: the program is nested too deep to be analysed")]


def parses(code: str) -> bool:
    """Report whether a text is Python. A text that is too deeply nested to be parsed counts as Python."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    except (RecursionError, MemoryError):
        return True
    return True


def does_something(code: str) -> bool:
    """Whether a program imports, defines or calls something."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.Call)
    return parses(code) and any(isinstance(node, kinds) for node in ast.walk(ast.parse(code)))


def _encoding(code: str) -> Finding | None:
    for line in code.encode("utf-8", "replace").splitlines()[:2]:
        match = _CODING.match(line)
        if match and match[1].lower().replace(b"_", b"-") not in (
            b"utf-8", b"utf8", b"ascii", b"us-ascii", b"utf-8-sig"):
            return Finding("source_encoding", "high", f"Unresolved reflection: source encoding {match[1].decode()}", 1)
    return None


def _expression(tree: ast.AST) -> list[Finding]:
    """The findings of an expression that SymPy would evaluate, with all of its names in scope."""
    return _Analyser(evaluates=True).run(tree, Scope("module", None, stars=["sympy"]))


def _imported(tree: ast.AST) -> Iterator[str]:
    """The modules and names that a program imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


class _Analyser:
    def __init__(self, evaluates: bool = False) -> None:
        self._findings: list[Finding] = []
        self._program = Program()
        self._resolver = Resolver(self._program)
        self._texts = Texts(self._program, self._resolver, _expression, self._report)
        self._evaluates = evaluates  # whether a library that evaluates texts can be reached
        self._formats = self._has_sys = self._imports_loader = False
        self._nodes: list[ast.AST] = []
        self._refused: set[str] = set()  # names that lead out of the packages that the program imports

    def run(self, tree: ast.AST, scope: Scope | None = None) -> list[Finding]:
        read(tree, self._program, scope or Scope("module", None))
        self._formats = any(isinstance(n, ast.Attribute) and n.attr in ("format", "format_map") for n in ast.walk(tree))
        self._has_sys = any(isinstance(n, ast.alias) and n.name == "sys" for n in ast.walk(tree))
        roots = {path.split(".")[0] for path in _imported(tree)}
        self._refused = {n for root in roots for n in policy.REFUSED.get(root, ()) if n not in _COMMON}
        self._imports_loader = "holidays" in roots
        self._nodes = list(ast.walk(tree))
        for node in self._nodes:
            check = getattr(self, "_check_" + type(node).__name__, None)
            if check:
                check(node)
        if self._evaluates or any(imports_evaluator(p) for p in _imported(tree)):
            self._texts.whole(tree)
        return self._findings

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
        if name == "raw" and self._has_sys and name not in self._program.attributes:
            self._block(node, "sys.stdout.buffer.raw")  # its type opens files
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
        if isinstance(parent, ast.Attribute | ast.Compare | ast.FormattedValue):
            return isinstance(parent, ast.Attribute) and parent.attr in _MAKING
        if isinstance(parent, ast.Call) and node in parent.args:
            shown = {Builtin(n) for n in ("print", "str", "repr", "isinstance", "issubclass", "id", "hash")}
            return self._is_of_image(base) and not self._resolver.values(parent.func) <= shown
        return self._is_of_image(base)

    def _is_of_image(self, base: ast.expr) -> bool:
        """Whether an object is of a package in the image, or may be one because it is not known."""
        if isinstance(base, ast.Name) and base.id in ("self", "cls", "other"):
            return False
        for value in self._resolver.values(base):
            if isinstance(value, Member) and policy.in_image(value.path):
                return True
            if type(value) is Unknown and self._imports_loader:
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

    # Calls

    def _check_Call(self, node: ast.Call) -> None:
        functions = self._resolver.values(node.func)
        for function in functions:
            if isinstance(function, Builtin):
                self._call_builtin(node, function.name)
            elif isinstance(function, Member):
                self._call_member(node, function.path)
        self._texts.call(node, functions)
        self._file_of_a_package(node, functions)
        for keyword in node.keywords:
            if keyword.arg == "fromfile_prefix_chars" and not self._is_constant(keyword.value, None):
                self._block(node, "fromfile_prefix_chars")
            if keyword.arg in ("allow_pickle", "eval_str", "shell") and not self._is_constant(keyword.value, False):
                self._block(node, f"{keyword.arg}=True")
        if isinstance(node.func, ast.Attribute):
            self._call_method(node, node.func)
        if isinstance(node.func, ast.Call) and Builtin("type") in self._resolver.values(node.func.func):
            for argument in node.func.args:
                if isinstance(argument, ast.Lambda) or Builtin("type") in self._resolver.values(argument):
                    self._unresolved(node, "a type of a function or type is called")

    def _file_of_a_package(self, node: ast.Call, functions: set[Value]) -> None:
        """A function or method of a package that is given the name of a file, as `read_csv("x")` and `.save("x")`
        are."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(
            node.func, ast.Name) else ""
        paths = [f.path for f in functions if isinstance(f, Member) and not f.known]
        if paths:
            name = paths[0].rsplit(".", 1)[-1]
        if name not in policy.FILES or name in self._program.attributes or not (
            paths or any(isinstance(f, Unknown) for f in functions)):
            return
        if isinstance(node.func, ast.Name) and not paths:
            return  # a function of the program's own
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg in policy.PATH_ARGUMENTS)]
        for argument in given:
            for value in self._resolver.values(argument):
                if isinstance(value, Text) or (isinstance(value, Constant) and isinstance(value.value, str)):
                    self._block(node, f"{name} of a file")

    def _check_Constant(self, node: ast.Constant) -> None:
        """A template whose fields reach into objects, in a program that formats."""
        if self._formats and isinstance(node.value, str):
            for field in re.findall(r"\{([^{}]*)", node.value[:100_000]):
                for name in re.findall(r"[.\[](\w+)", field):
                    if name.startswith("__"):
                        self._by_name(node, name)

    # Patterns read attributes too: by keyword, and by __match_args__.

    def _check_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._in_pattern(node, name)

    def _in_pattern(self, node: ast.AST, name: str) -> None:
        if name == "__dict__":
            self._block(node, name)  # of a module, for all that is known
        else:
            self._by_name(node, name)

    def _check_Assign(self, node: ast.Assign) -> None:
        if not any(
            isinstance(t, ast.Name | ast.Attribute)
            and (t.id if isinstance(t, ast.Name) else t.attr) == "__match_args__"
            for t in node.targets
        ):
            return
        if not isinstance(node.value, ast.Tuple | ast.List):
            self._unresolved(node, "__match_args__ that is computed")
            return
        for element in node.value.elts:
            names = self._names(element)
            if names is None:
                self._unresolved(node, "__match_args__ that is computed")
            for name in names or ():
                self._in_pattern(node, name)

    def _is_constant(self, node: ast.expr, wanted: object) -> bool:
        return self._resolver.values(node) == {Constant(wanted)}

    def _names(self, node: ast.expr) -> list[str] | None:
        """Return the texts that an expression may be, or None if it may be something else."""
        values = self._resolver.values(node)
        texts = [v.value for v in values if isinstance(v, Constant) and isinstance(v.value, str)]
        return texts if len(texts) == len(values) else None

    def _call_builtin(self, node: ast.Call, name: str) -> None:
        if name in ("getattr", "setattr", "delattr"):
            if any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) < 2:
                self._unresolved(node, f"{name} with arguments that are unpacked")
                return
            names = self._names(node.args[1])
            if names is None:
                self._unresolved(node, f"{name} with a name that is computed")
                return
            for attribute in names:
                if name == "getattr":
                    self._read(node, node.args[0], attribute)
                elif attribute in policy.REFLECTIVE or (attribute.startswith("__") and attribute.endswith("__")):
                    self._block(node, attribute)
                else:
                    self._replaced(node, node.args[0], attribute)
        elif name == "vars" and (
            not node.args or any(isinstance(v, Module | Member) for v in self._resolver.values(node.args[0]))):
            self._unresolved(node, "vars of a namespace")
        elif name == "type" and len(node.args) == 1 and self._makes(node, node.args[0]):
            self._unresolved(node, "the type of a package's object as a value")
        elif name == "type" and (
            len(node.args) > 1 or node.keywords or any(isinstance(a, ast.Starred) for a in node.args)):
            self._unresolved(node, "type with more than one argument")

    def _call_member(self, node: ast.Call, path: str) -> None:
        if path in ("operator.attrgetter", "operator.methodcaller"):
            for argument in node.args if path.endswith("getter") else node.args[:1]:
                names = self._names(argument)
                if names is None:
                    self._unresolved(node, f"{path} with a name that is computed")
                    continue
                for part in (p for n in names for p in n.split(".")):
                    self._by_name(node, part)
        elif path.startswith("timeit."):
            for argument in [*node.args, *(k.value for k in node.keywords if k.arg in ("stmt", "setup"))]:
                if any(
                    isinstance(v, Text | Constant) and isinstance(getattr(v, "value", ""), str)
                    for v in self._resolver.values(argument)
                ):
                    self._block(node, f"{path} of a text")
                elif not isinstance(argument, ast.Lambda | ast.Name | ast.Constant):
                    self._unresolved(node, f"{path} of a computed statement")
            if any(k.arg == "globals" for k in node.keywords):
                self._block(node, f"{path} with globals")
        elif path in ("sqlite3.connect", "sqlite3.Connection"):
            names = self._names(node.args[0]) if node.args else None
            if names is None or any(n not in (":memory:", "") for n in names):
                self._block(node, f"{path} of a file")
        elif path == "logging.basicConfig" and any(k.arg in ("filename", None) for k in node.keywords):
            self._block(node, "logging.basicConfig with a file")
        elif path in ("unittest.main", "unittest.main.TestProgram"):
            for keyword in node.keywords:
                plain = keyword.arg == "argv" and isinstance(keyword.value, ast.List | ast.Tuple) and len(
                    keyword.value.elts) <= 1
                if keyword.arg in ("module", "defaultTest", "testLoader", "testRunner", None) or (
                    keyword.arg == "argv" and not plain):
                    self._unresolved(node, f"unittest.main with {keyword.arg or 'arguments that are unpacked'}")
        elif path.endswith((".__setattr__", ".__delattr__")):
            self._call_builtin(node, "setattr")

    def _by_name(self, node: ast.AST, name: str) -> None:
        if (
            name in policy.REFLECTIVE
            or name in policy.METHODS
            or name in policy.SEGMENTS
            or (name == "raw" and self._has_sys)
            or name in self._refused
            or (name.startswith("__") and name.strip("_") not in policy.DUNDERS)
        ):
            self._block(node, name)

    def _call_method(self, node: ast.Call, function: ast.Attribute) -> None:
        bases = self._resolver.values(function.value)
        if function.attr in ("__setattr__", "__delattr__"):
            self._call_builtin(
                ast.copy_location(ast.Call(node.func, node.args[-2:] if len(node.args) == 2 else node.args, []), node),
                "setattr"
            ) if len(node.args) > 2 else self._set_by_name(node)
        if function.attr in ("execute", "executescript", "executemany") and node.args:
            self._statement(node)
        if function.attr == "format" and any(isinstance(b, Constant) and isinstance(b.value, str) for b in bases):
            for base in bases:
                if isinstance(base, Constant) and isinstance(base.value, str):
                    for name in re.findall(r"[.\[](\w+)", "".join(re.findall(r"\{[^{}]*", base.value))):
                        self._by_name(node, name)
        if (
            function.attr in ("eval", "query")
            and node.args
            and all(isinstance(b, Unknown) for b in bases)
            and function.attr not in self._program.attributes
        ):
            for value in self._resolver.values(node.args[0]):
                if isinstance(value, Constant) and isinstance(value.value, str):
                    if ("@" in value.value and "(" in value.value) or "__" in value.value:
                        self._block(node, f"{function.attr} of a text that calls")
                elif isinstance(value, Text) and function.attr == "eval":
                    self._unresolved(node, "eval of a computed text")

    def _statement(self, node: ast.Call) -> None:
        """SQL that reaches files from a database in memory."""
        for value in self._resolver.values(node.args[0]):
            if isinstance(value, Constant) and isinstance(value.value, str) and _FILE_SQL.search(value.value):
                self._block(node, "sqlite3 statement that reaches files")

    def _set_by_name(self, node: ast.Call) -> None:
        names = self._names(node.args[0]) if node.args else None
        if names is None:
            self._unresolved(node, "__setattr__ with a name that is computed")
        elif any(n in policy.REFLECTIVE or n.startswith("__") for n in names):
            self._block(node, "__setattr__")

    # Annotations in quotes are evaluated by those who ask for types.

    def _check_arg(self, node: ast.arg) -> None:
        self._annotation(node.annotation)

    def _check_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)

    def _check_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._annotation(node.returns)

    _check_AsyncFunctionDef = _check_FunctionDef

    def _annotation(self, node: Any) -> None:
        for inner in ast.walk(node) if node is not None else ():
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                try:
                    tree = ast.parse(inner.value, mode="eval")
                except (SyntaxError, ValueError):
                    continue
                if any(isinstance(n, ast.Call) for n in ast.walk(tree)):
                    self._findings.extend(_Analyser().run(tree))
