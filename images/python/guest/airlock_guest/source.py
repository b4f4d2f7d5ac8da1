"""Reads a program as what it means where Python itself would refuse it.

Loaded when a program begins with a Markdown fence or does not compile. Python's own
parser decides: nothing here takes code apart by itself.
"""

import _ast

_FENCES = ("```", "~~~")


def without_fence(code):
    """Take a program out of its Markdown fence; every line keeps its number."""
    lines = code.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if not _is_fence(lines[first]):
        return code
    lines[first] = ""
    last = max(i for i, line in enumerate(lines) if line.strip() or i == 0)
    if lines[last].strip() in _FENCES:
        lines[last] = ""
    return "\n".join(lines)


def _is_fence(line):
    mark, language = line.strip()[:3], line.strip()[3:].strip()
    return mark in _FENCES and (not language or language.replace("+", "").replace("-", "").isalnum())


def with_returns(code, name, flags):
    """Return the syntax tree of a program in which a top-level `return x` sets `result` and ends the run.

    Returns None if there is no such statement. It ends the run as sys.exit()
    does: `finally` is run, and `except Exception` does not see it.
    """
    tree = compile(code, name, "exec", flags | _ast.PyCF_ONLY_AST, dont_inherit=True)
    return tree if _replace_returns(tree) else None


def _replace_returns(node):
    found = False
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        statements = getattr(node, field, None)
        if not isinstance(statements, list):
            continue
        replaced = []
        for statement in statements:
            if isinstance(statement, _ast.Return):
                replaced += _ending(statement)
                found = True
                continue
            if not isinstance(statement, (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)):
                found = _replace_returns(statement) or found
            replaced.append(statement)
        statements[:] = replaced
    return found


def _ending(statement):
    """Return `result = value` and `raise SystemExit` in the place of `return value`."""
    place = {key: getattr(statement, key) for key in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
    leave = _ast.Raise(exc=_ast.Name(id="SystemExit", ctx=_ast.Load(), **place), cause=None, **place)
    if statement.value is None:
        return [leave]
    target = _ast.Name(id="result", ctx=_ast.Store(), **place)
    return [_ast.Assign(targets=[target], value=statement.value, **place), leave]
