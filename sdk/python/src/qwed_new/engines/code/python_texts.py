"""Texts that a library evaluates as Python.

SymPy and mpmath evaluate a text wherever they expect an expression, in nearly every function and method. In a program
that imports one of them, every text is therefore judged as an expression, unless it is only printed or is an
argument of a guard. A text that is passed directly is judged more strictly than one that is only part of the program.
"""

from __future__ import annotations

import ast
import codecs
import re
from collections.abc import Callable, Iterator

from qwed_new import strict_json
from qwed_new.engines.code.findings import Finding
from qwed_new.engines.code.libraries import EVALUATING
from qwed_new.engines.code.python_scopes import Program
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

MAX_TEXTS = 400

# Functions that take a name as their first argument and do not evaluate it.
_NAMING = frozenset(
    "symbols Symbol Dummy Wild var Function UndefinedFunction MatrixSymbol Idx IndexedBase Rational Integer Float Str "
    "latex pprint pretty srepr init_printing".split()
)
# Functions whose argument is nothing but a text to evaluate, so that an unknown argument is not accepted.
_DIRECT = frozenset(
    "sympify parse_expr S lambdify eval_expr stringify_expr parse_mathematica parse_maxima kernS identify".split()
)
_BUILTINS = frozenset("eval exec __import__ compile open breakpoint globals locals getattr vars".split())
_DECODING = frozenset(
    "decode translate fromhex b64decode b32decode b16decode a85decode b85decode unquote unhexlify".split())
_ALPHABETS = frozenset("string.printable string.punctuation string.ascii_letters string.ascii_lowercase".split())
# Expressions that are printed when a part of them is.
_CARRYING = (ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.IfExp, ast.Starred, ast.List, ast.Tuple)
_PRINTING = frozenset({"print", "input", "len", "isinstance"})
_FRAGMENT = re.compile(r"__(?!main__|name__|init__|str__|repr__|file__|version__|doc__)|\(\s*['\"]")


def imports_evaluator(path: str) -> bool:
    """Whether an imported name gives access to a package that evaluates texts."""
    root = path.split(".")[0]
    return root in EVALUATING or (path + ".").startswith("qwed_new.engines.math.") or path.endswith(".Builder")


class Texts:
    """Judges the texts of one program; `nested` analyses an expression and `report` takes the findings."""

    def __init__(
        self,
        program: Program,
        resolver: Resolver,
        nested: Callable[[ast.AST], list[Finding]],
        report: Callable[[ast.AST, str, str], None],
    ) -> None:
        self._program, self._resolver, self._nested, self._report = program, resolver, nested, report
        self._judged = 0
        self._strict: set[int] = set()

    def call(self, node: ast.Call, functions: set[Value]) -> None:
        """Judge the arguments of a call of a function that may evaluate texts."""
        for function in functions:
            if isinstance(function, Member) and not function.known and function.path.split(".")[0] in EVALUATING:
                self._arguments(node, function.path)
            elif isinstance(function, Result) and function.root in EVALUATING:
                self._strictly(node, f"{function.root} object", 0)

    def _arguments(self, node: ast.Call, path: str) -> None:
        name = path.rsplit(".", 1)[-1]
        naming = name in _NAMING and not any(k.arg in ("cls", None) for k in node.keywords)
        self._strictly(node, path, 1 if naming else 0)
        if naming:
            return
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            for value in self._resolver.values(argument):
                unknown = isinstance(value, Unknown) and name in _DIRECT and not self._is_expression(argument)
                if isinstance(value, Text) or unknown:
                    self._report(node, "unresolved", f"{path} of a computed text")

    def _strictly(self, node: ast.Call, by: str, skip: int) -> None:
        """Judge the texts among the arguments, those in lists and mappings included."""
        for argument in [*node.args[skip:], *(k.value for k in node.keywords)]:
            for inner in _own(argument):
                self._strict.add(id(inner))
            for text in self._texts_of(argument):
                self.judge(node, text, by, strict=True)

    def _texts_of(self, node: ast.expr) -> Iterator[str]:
        for inner in _own(node):
            for value in self._resolver.values(inner):
                if isinstance(value, Constant):
                    yield from _strings(value.value)

    def _is_expression(self, node: ast.expr) -> bool:
        """Whether an argument is certainly not a text: an operation, a call into SymPy, a list or a number."""
        if isinstance(node, ast.Name):
            value = self._resolver.only_value(node)
            return value is not None and not isinstance(value, ast.Name) and self._is_expression(value)
        if isinstance(node, ast.Call):
            return any(_package(v) in EVALUATING for v in self._resolver.values(node.func))
        return isinstance(node, ast.BinOp | ast.UnaryOp | ast.List | ast.Tuple | ast.Dict | ast.Compare | ast.Lambda)

    def whole(self, tree: ast.AST) -> None:
        """Judge every text of a program that can reach an evaluator."""
        documented = any(
            (isinstance(n, ast.Name) and n.id == "__doc__")
            or (isinstance(n, ast.Attribute) and n.attr in ("__doc__", "getdoc"))
            for n in ast.walk(tree)
        )
        handed_on = any(self._is_handed_on(n) for n in ast.walk(tree))
        assembled = False
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                if not self._is_harmless_place(node, documented):
                    self._constant(node, handed_on)
            elif isinstance(node, ast.BinOp | ast.JoinedStr) or isinstance(node, ast.Call | ast.Subscript):
                if not self._is_harmless_place(node, False):
                    assembled |= self._computed(node)
            elif isinstance(node, ast.AugAssign):
                assembled = True
        if assembled:
            self._fragments(tree)

    def _constant(self, node: ast.Constant, handed_on: bool) -> None:
        if id(node) in self._strict:
            return
        for text in _strings(node.value):
            self.judge(node, text, "a text", strict=handed_on)

    def _computed(self, node: ast.expr) -> bool:
        """Judge a text that is built; report whether it could not be computed."""
        if isinstance(node, ast.Call) and self._decodes(node):
            self._report(node, "unresolved", "a decoded text beside a library that evaluates texts")
            return True
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in _ALPHABETS:
            self._report(node, "unresolved", "characters of an alphabet beside a library that evaluates texts")
        values = self._resolver.values(node)
        for value in values:
            if isinstance(value, Constant) and isinstance(value.value, str):
                self.judge(node, value.value, "a text", strict=False)
        return any(isinstance(v, Text) for v in values)

    def _decodes(self, node: ast.Call) -> bool:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "chr":
            return any(not isinstance(v, Constant) for v in self._resolver.values(node))
        name = function.attr if isinstance(function, ast.Attribute) else ""
        if isinstance(function, ast.Name):
            name = next((v.path.rsplit(".", 1)[-1] for v in self._resolver.values(function) if isinstance(v, Member)),
                "")
        return name in _DECODING

    def _fragments(self, tree: ast.AST) -> None:
        """Texts are assembled in a way that is not followed, so that parts of an attack are looked for."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                if _FRAGMENT.search(text) and not self._is_harmless_place(node, False):
                    self._report(node, "unresolved", "a part of a program in a text that is assembled")

    def _is_handed_on(self, node: ast.AST) -> bool:
        """Whether a function whose only use is to evaluate is passed to something, as in map(sympify, texts)."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        parent = self._program.parent_of.get(id(node))
        if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
            return False
        return any(
            isinstance(v, Member) and v.path.split(".")[0] in EVALUATING and v.path.rsplit(".", 1)[-1] in _DIRECT
            for v in self._resolver.values(node)
        )

    def _is_harmless_place(self, node: ast.expr, documented: bool) -> bool:
        """Whether a text is only printed, raised, a document or the argument of a guard."""
        child: ast.AST = node
        parent = self._program.parent_of.get(id(node))
        while (
            isinstance(parent, _CARRYING)
            or (isinstance(parent, ast.ListComp | ast.GeneratorExp) and parent.elt is child)
            or (isinstance(parent, ast.Attribute) and parent.attr in ("format", "join"))
        ):
            child, parent = parent, self._program.parent_of.get(id(parent))
            if isinstance(parent, ast.Call) and parent.func is child:
                child, parent = parent, self._program.parent_of.get(id(parent))
        if isinstance(parent, ast.Expr):
            return not documented
        if isinstance(parent, ast.Assert):
            return parent.msg is child
        if isinstance(parent, ast.keyword):
            child, parent = parent, self._program.parent_of.get(id(parent))
        if not isinstance(parent, ast.Call) or parent.func is child:
            return False
        if isinstance(self._program.parent_of.get(id(parent)), ast.Raise):
            return True
        functions = self._resolver.values(parent.func)
        if child is (parent.args or [None])[0] and any(_named(f) in _NAMING for f in functions):
            return not isinstance(node, ast.Constant)
        return bool(functions) and all(_is_harmless(f) for f in functions)

    def judge(self, node: ast.AST, text: str, by: str, strict: bool) -> None:
        """Report what a text would do if it were evaluated."""
        if not any(c in text for c in "(.[_") and not (strict and text.strip().isidentifier()):
            return
        self._judged += 1
        if self._judged > MAX_TEXTS:
            self._report(node, "unresolved", f"more than {MAX_TEXTS} texts that may be evaluated")
            return
        tree = _parse(text)
        if tree is None:
            if strict and re.search(r"__|lambda|import|[\w)\]]\s*\.\s*[A-Za-z]|\(.*['\"]", text):
                self._report(node, "unresolved", f"{by} of a text that is not an expression")
            return
        if isinstance(tree.body, ast.Name) and not strict:
            return
        for found in self._nested(tree):
            kind, _, message = found.message.partition(": ")
            self._report(node, "unresolved" if kind.startswith("Unresolved") else "block", message)
        if strict and any(isinstance(n, ast.Attribute | ast.Lambda) for n in ast.walk(tree)):
            self._report(node, "unresolved", f"{by} of a text with attributes")
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _BUILTINS:
                self._report(node, "block", call.func.id)


def _own(node: ast.AST) -> Iterator[ast.expr]:
    """The parts of an argument, without the arguments of calls inside it."""
    if isinstance(node, ast.Call):
        return
    if isinstance(node, ast.expr):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _own(child)


def _strings(value: object) -> Iterator[str]:
    """The texts in a constant: it, those in a tuple, and those in a JSON document."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        yield value
        if value.lstrip()[:1] in ("{", "[", '"') and len(value) < 100_000:
            try:
                yield from _strings(strict_json.loads(value))
            except (ValueError, RecursionError):
                # Other readers may accept it, such as one with a name twice: its quoted parts are texts.
                yield from (
                    codecs.decode(m[1], "unicode_escape", "replace")
                    for m in re.finditer(r'"((?:[^"\\]|\\.)*)"', value))
    elif isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _parse(text: str) -> ast.Expression | None:
    """A text as SymPy reads it: line breaks are dropped and `!` is the factorial."""
    for candidate in (text.strip(), re.sub(r"!+(?!=)", "", text.replace("\n", "")).strip()):
        try:
            return ast.parse(candidate or "0", mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _package(value: Value) -> str:
    """The package that a function or an object comes from."""
    if isinstance(value, Result):
        return value.root
    return value.path.split(".")[0] if isinstance(value, Member) and not value.known else ""


def _named(value: Value) -> str:
    return value.path.rsplit(".", 1)[-1] if isinstance(value, Member) and _package(value) in EVALUATING else ""


def _is_harmless(function: Value) -> bool:
    """Whether a function prints its argument or is a guard, which reads texts and never evaluates them."""
    if isinstance(function, Builtin):
        return function.name in _PRINTING
    if isinstance(function, Member) and function.known:
        return function.path.startswith("logging.")
    return _package(function).startswith("qwed_") if not isinstance(function, Module) else False
