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
from qwed_new.engines.code.libraries import EXPORTED, SHARED
from qwed_new.engines.code.python_calls import Calls
from qwed_new.engines.code.python_scopes import Scope, read
from qwed_new.engines.code.python_texts import Texts, imports_evaluator

MAX_CODE = 1_000_000
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")

# Names in packages that methods of harmless objects have too.
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


class _Analyser(Calls):
    def __init__(self, evaluates: bool = False) -> None:
        super().__init__(evaluates)
        self._texts = Texts(self._program, self._resolver, _expression, self._report)

    def run(self, tree: ast.AST, scope: Scope | None = None) -> list[Finding]:
        read(tree, self._program, scope or Scope("module", None))
        self._formats = any(
            (isinstance(n, ast.Attribute) and n.attr in ("format", "format_map"))
            or (isinstance(n, ast.Constant) and n.value in ("format", "format_map"))
            or (isinstance(n, ast.keyword) and n.arg == "style") for n in ast.walk(tree))
        roots = {path.split(".")[0] for path in _imported(tree)}
        self._has_streams = bool(roots & {"sys", "io", "logging", "unittest"})
        self._refused = {n for root in roots for n in policy.REFUSED.get(root, ()) if n not in _COMMON}
        if any(policy.in_image(root) for root in roots):
            self._refused |= EXPORTED - SHARED
        self._imports_loader, self._solver.imported = "holidays" in roots, "z3" in roots
        self._nodes.extend(ast.walk(tree))
        for node in self._nodes:
            check = getattr(self, "_check_" + type(node).__name__, None)
            if check:
                check(node)
        if self._evaluates or any(imports_evaluator(p) for p in _imported(tree)):
            self._texts.whole(tree)
        return self._findings

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
