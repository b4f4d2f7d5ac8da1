"""Calls of a Python program, and patterns, which read attributes too."""

from __future__ import annotations

import ast
import re

from qwed_new.engines.code import python_policy as policy
from qwed_new.engines.code.python_reads import Reads
from qwed_new.engines.code.python_texts import Texts
from qwed_new.engines.code.python_values import Builtin, Constant, Member, Text, Unknown, Value

_FILE_SQL = re.compile(r"\b(?:attach|vacuum\s+into|load_extension|readfile|writefile|edit)\b", re.I)


class Calls(Reads):
    """Judge what a program calls."""

    _texts: Texts  # judges texts that a library evaluates

    def _check_Call(self, node: ast.Call) -> None:
        functions = self._resolver.values(node.func)
        for function in functions:
            if isinstance(function, Builtin):
                self._call_builtin(node, function.name)
            elif isinstance(function, Member):
                self._call_member(node, function.path)
        self._texts.call(node, functions)
        self._file_of_a_package(node, functions)
        for name, value in self._arguments.keywords(node):
            if name == "fromfile_prefix_chars" and not self._arguments.is_constant(value, None):
                self._block(node, "fromfile_prefix_chars")
            if name in policy.OFF and not self._arguments.is_constant(value, False):
                self._block(node, f"{name}=True")
            if name in ("assigned", "updated"):
                self._copied(node, value)
        if self._solver.imported:
            self._solver.call(node)
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
        for argument in [*node.args[:1], *(v for k, v in self._arguments.keywords(node) if k in policy.PATH_ARGUMENTS)]:
            for value in self._resolver.values(argument):
                if isinstance(value, Text) or (isinstance(value, Constant) and isinstance(value.value, str)):
                    self._block(node, f"{name} of a file")

    def _check_Constant(self, node: ast.Constant) -> None:
        """A template whose fields reach into objects, in a program that formats."""
        text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        if self._formats and isinstance(text, str):
            for field in re.findall(r"\{([^{}]*)", text[:100_000]):
                for name in re.findall(r"[.\[](\w+)", field):
                    if name.startswith("__"):
                        self._by_name(node, name)

    # Patterns read attributes too: by keyword, and by __match_args__.

    def _check_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
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
            names = self._arguments.names(element)
            if names is None:
                self._unresolved(node, "__match_args__ that is computed")
            for name in names or ():
                self._by_name(node, name)

    def _call_builtin(self, node: ast.Call, name: str) -> None:
        if name in ("getattr", "setattr", "delattr"):
            if any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) < 2:
                self._unresolved(node, f"{name} with arguments that are unpacked")
                return
            names = self._arguments.names(node.args[1])
            if names is None:
                self._unresolved(node, f"{name} with a name that is computed")
                return
            for attribute in names:
                if name == "getattr":
                    self._read(node, node.args[0], attribute)
                    self._of_solver(node, attribute)
                elif attribute in policy.REFLECTIVE or (attribute.startswith("__") and attribute.endswith("__")):
                    self._block(node, attribute)
                else:
                    self._replaced(node, node.args[0], attribute)
        elif name == "vars" and (
            reason := self._namespaces.refusal(node.args[0]) if node.args else "vars of a namespace"):
            self._unresolved(node, reason)
        elif name == "type" and len(node.args) == 1 and self._makes(node, node.args[0]):
            self._unresolved(node, "the type of a package's object as a value")
        elif name == "type" and (
            len(node.args) > 1 or node.keywords or any(isinstance(a, ast.Starred) for a in node.args)):
            self._unresolved(node, "type with more than one argument")

    def _call_member(self, node: ast.Call, path: str) -> None:
        if path in ("operator.attrgetter", "operator.methodcaller"):
            for argument in node.args if path.endswith("getter") else node.args[:1]:
                names = self._arguments.names(argument)
                if names is None:
                    self._unresolved(node, f"{path} with a name that is computed")
                    continue
                for part in (p for n in names for p in n.split(".")):
                    self._by_name(node, part)
        elif path in ("functools.update_wrapper", "functools.wraps"):
            for argument in node.args[1 + path.endswith("wrapper") :]:
                self._copied(node, argument)
        elif path.startswith("timeit."):
            for argument in [*node.args, *(v for k, v in self._arguments.keywords(node) if k in ("stmt", "setup"))]:
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
            names = self._arguments.names(node.args[0]) if node.args else None
            if names is None or any(n not in (":memory:", "") for n in names):
                self._block(node, f"{path} of a file")
        elif path == "logging.basicConfig" and any(k == "filename" for k, _ in self._arguments.keywords(node)):
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

    def _copied(self, node: ast.Call, names: ast.expr) -> None:
        """Attributes that functools.update_wrapper copies, or updates."""
        for value in self._resolver.values(names):
            if isinstance(value, Constant):
                for name in value.value if isinstance(value.value, tuple) else [value.value]:
                    self._by_name(node, str(name))
            else:
                self._unresolved(node, "copied attributes with names that are computed")

    def _of_solver(self, node: ast.AST, name: str) -> None:
        if self._solver.imported:
            self._solver.by_name(node, name)

    def _by_name(self, node: ast.AST, name: str) -> None:
        self._of_solver(node, name)
        if (
            name in policy.REFLECTIVE
            or name in policy.METHODS
            or name in policy.SEGMENTS
            or name == "__dict__"  # of a module, for all that is known
            or (name in ("raw", "detach") and self._has_streams)
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
        names = self._arguments.names(node.args[0]) if node.args else None
        if names is None:
            self._unresolved(node, "__setattr__ with a name that is computed")
        elif any(n in policy.REFLECTIVE or n.startswith("__") for n in names):
            self._block(node, "__setattr__")
