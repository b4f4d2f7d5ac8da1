"""The syntax tree of the code."""

import _ast

FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef)
MOST_NODES = 100_000
_FLAGS = _ast.PyCF_ONLY_AST | _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def parse(code):
    """Return the tree of the code; raise SyntaxError if it has none."""
    return compile(code, "<agent_code>", "exec", _FLAGS, dont_inherit=True)


def assigning(name, code):
    """Return the assignments of a variable, as pairs of line and function; None is the top level."""
    places, todo = [], [(parse(code), None)]
    for _ in range(MOST_NODES):
        if not todo:
            break
        node, place = todo.pop()
        if isinstance(node, _ast.Name) and node.id == name and isinstance(node.ctx, _ast.Store):
            places.append((node.lineno, place))
        inner = place if place or not isinstance(node, FUNCTIONS) else node.name
        if not isinstance(node, (_ast.ClassDef, _ast.Lambda, _ast.comprehension)):
            todo += [(child, inner) for child in children(node)]
    return places


def children(node):
    """Yield the nodes directly below a node."""
    for field in node._fields:
        value = getattr(node, field, None)
        yield from [each for each in value if isinstance(each, _ast.AST)] if isinstance(value, list) else []
        if isinstance(value, _ast.AST):
            yield value
