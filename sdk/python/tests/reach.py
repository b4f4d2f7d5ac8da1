"""Finds the functions of packages that pass what a caller gives them to eval, an import, a program, a file or a URL."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "requirements" / "engines.txt"
_TEXT = frozenset(
    "eval exec __import__ import_module parse_expr system popen Popen getoutput check_output check_call run_path "
    "run_module spec_from_file_location exec_module load_module CDLL LoadLibrary Unpickler unsafe_load full_load "
    "read_text read_bytes write_text write_bytes urlopen create_connection".split()
)
_OF_PATHS = frozenset({"read_text", "read_bytes", "write_text", "write_bytes"})  # the object names the file
_MODULES = {
    "subprocess": frozenset({"run", "call", "Popen", "check_call", "check_output", "getoutput"}),
    "pickle": frozenset({"load", "loads"}),
    "marshal": frozenset({"load", "loads"}),
    "runpy": frozenset({"run_path", "run_module"}),
    **dict.fromkeys(("io", "codecs", "os", "builtins", "gzip", "tokenize"), frozenset({"open"})),
}


def packages() -> dict[str, list[Path]]:
    """The source files of each top-level package that the image of the engines installs."""
    found: dict[str, list[Path]] = {}
    for name in re.findall(r"^([\w.-]+)==", REQUIREMENTS.read_text(), re.M):
        for file in metadata.files(name) or ():
            parts = file.parts
            if file.suffix != ".py" or ".." in parts or "tests" in parts or "benchmarks" in parts:
                continue
            found.setdefault(parts[0].removesuffix(".py"), []).append(Path(file.locate()))
    return found


# What runs code, reads files or opens connections in the standard library, and what of it is harmless.
_LEADING = frozenset(
    "ctypes os sys subprocess importlib pickle marshal runpy socket shutil tempfile io pathlib urllib.request codecs "
    "gc multiprocessing inspect code codeop pty ssl http.client zipfile tarfile glob linecache pkgutil posix signal "
    "types timeit unittest.mock logging.config gzip bz2 lzma mmap webbrowser fileinput".split())
_HARMLESS = re.compile(
    r"(?:String|Bytes)IO|TextIOBase|sep|linesep|path|PathLike|fspath|version_info|platform|maxsize|stdout|stderr|which|"
    r"(?!Function|Code)\w+Type|"
    r"SimpleNamespace|GenericAlias|signature|isclass|isfunction|clock|STDOUT|CalledProcessError|getcwd|getenv|Array|"
    r"Union|cast|resize|alignment|util|BOM_\w+|Incremental\w+|lookup")
_IMPORTS = re.compile(r"^[ \t]*import[ \t]+([^\n#;]+)", re.M)
_GETTERS = re.compile(r"^(\w+) = (?:operator\.)?attrgetter\([\w\"']*_", re.M)  # of six: names of functions' attributes
_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]+)", re.M)


def exported(path: Path) -> Iterator[str]:
    """The names under which a file imports modules that lead out, and what they have."""
    text = path.read_text("utf-8", "replace")
    yield from (name for name in _GETTERS.findall(text) if "__" in text)
    for names in _IMPORTS.findall(text):
        for words in (part.split() for part in names.split(",")):
            if words and words[0].split(".")[0] in _LEADING:
                yield words[-1].split(".")[0]
    for module, names in _FROM.findall(text):
        if module in _LEADING:
            given = [words[-1] for part in re.sub(r"#.*|[()\\\\]", "", names).split(",") if (words := part.split())]
            yield from dir(importlib.import_module(module)) if "*" in given else given


def leads_out(name: str) -> bool:
    """Whether a name of a module that leads out may not be taken from a package."""
    return not _HARMLESS.fullmatch(name) and not name.startswith("__")


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SINKS = re.compile(rf"\b(?:{'|'.join(sorted(_TEXT | frozenset().union(*_MODULES.values())))}|compile|getattr)\b")


def reaching(path: Path) -> Iterator[tuple[str, str]]:
    """The functions of a file that pass a parameter on, and what they pass it to."""
    try:
        text = path.read_text("utf-8")
        if not _SINKS.search(text):  # parsing takes most of the time
            return
        tree = ast.parse(text)
    except (SyntaxError, UnicodeDecodeError):
        return
    stack: list[tuple[ast.AST, tuple[str, ...], tuple[_Function, ...]]] = [(tree, (), ())]
    while stack:
        node, inside, functions = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = (*inside, node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions = (*functions, node)
        if isinstance(node, ast.Call) and (sink := _sink(node)) and inside:
            name = node.args[1] if sink == "getattr" and len(node.args) > 1 else None
            given = [*node.args, node.func.value] if sink in _OF_PATHS and isinstance(
                node.func, ast.Attribute) else node.args
            if name is None and sink != "getattr" and not all(isinstance(a, ast.Constant) for a in given):
                yield ".".join(inside), sink
            elif name is not None and (used := {n.id for n in ast.walk(name) if isinstance(n, ast.Name)}):
                if used & _given_by(functions):
                    yield ".".join(inside), sink
        stack.extend((child, inside, functions) for child in ast.iter_child_nodes(node))


@cache
def _given_by(functions: tuple[_Function, ...]) -> frozenset[str]:
    """The names in the innermost of nested functions whose values come from callers."""
    return _given(functions[-1], _given_by(functions[:-1])) if functions else frozenset()


def _given(function: _Function, outer: frozenset[str]) -> frozenset[str]:
    """The names in a function whose values come from its caller, `self` included."""
    a = function.args
    names = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p} | outer
    for _ in range(3):
        for node in ast.walk(function):
            if isinstance(
                node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.comprehension):
                source = node.iter if isinstance(node, ast.For | ast.comprehension) else node.value
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if source is not None and any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(source)):
                    names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return frozenset(names)


def _sink(call: ast.Call) -> str:
    function = call.func
    name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(
        function, ast.Attribute) else ""
    module = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    if name in _MODULES.get(module, ()):
        return f"{module}.{name}"
    if name in ("compile", "getattr", "exec", "eval", "open"):
        return name if isinstance(function, ast.Name) else ""
    return name if name in _TEXT else ""
