"""Checks that generated Python holds nothing but what its templates put there.

Reads one JSON object a line, from path to source text, and answers each with a
line: empty, or what is wrong. Paths tell which template a file is from. The
argument is the file with the code of the package `servers`.
"""

import ast
import json
import sys
import warnings

TYPING = {"Annotated", "Any", "Literal", "Never", "NotRequired", "Required", "TypeAlias", "TypedDict", "Union"}
BUILTIN = {"str", "int", "float", "bool", "list", "dict", "tuple"}
CLIENT = "from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke"
SHARED = "from client.mcp_client import ToolError as ToolError"
CONSTANTS = ["SERVER_ID", "TOOL_NAME", "DEFINITION_DIGEST"]


class Wrong(Exception):
    """A file holds something else than its template."""


def expect(condition, node, what):
    if not condition:
        raise Wrong(f"{what}: {ast.dump(node)[:300]}")


def is_text(node):
    return isinstance(node, ast.Constant) and type(node.value) is str


def is_docstring(node):
    return isinstance(node, ast.Expr) and is_text(node.value)


class Wrapper:
    """The file of one tool."""

    def __init__(self, tree):
        self.types = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        self.types |= {node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)} - set(CONSTANTS)
        self.types |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
        body = list(tree.body)
        expect(is_docstring(body.pop(0)), tree, "no docstring")
        if ast.unparse(body[0]) != CLIENT:
            self.typing(body.pop(0))
        expect(ast.unparse(body[0]) == CLIENT, body.pop(0), "another import")
        for name in CONSTANTS:
            node = body.pop(0)
            expect(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name and is_text(node.value), node, "no constant")
        self.function(body.pop())
        for node in body:
            self.declaration(node)

    def typing(self, node):
        expect(isinstance(node, ast.ImportFrom) and node.module == "typing" and node.level == 0, node, "another import")
        expect(all(name.name in TYPING and name.asname is None for name in node.names), node, "another name of typing")

    def function(self, node):
        expect(isinstance(node, ast.AsyncFunctionDef) and not node.decorator_list, node, "no function")
        name = node.name
        parameters = node.args
        expect([a.arg for a in parameters.posonlyargs] == ["arguments"], node, "other parameters")
        annotation = parameters.posonlyargs[0].annotation
        inputs = ast.unparse(annotation).partition(" | ")[0]
        call = f"return await _invoke(SERVER_ID, TOOL_NAME, arguments, {name!r}, named, {inputs})"
        expect(len(node.body) == 2 and is_docstring(node.body[0]) and ast.unparse(node.body[1]) == call, node, "another body")
        expect(not (parameters.args or parameters.kwonlyargs or parameters.vararg), node, "other parameters")
        expect(parameters.kwarg and ast.unparse(parameters.kwarg) == "named: Any", node, "other keywords")
        expect([ast.unparse(d) for d in parameters.defaults] in (["None"], ["{}"]), node, "another default")
        self.type(annotation)
        if not is_text(node.returns):
            expect(ast.unparse(node.returns) == "ToolResult", node, "another result")
        else:
            expect(node.returns.value in {f"ToolResult[{name}]" for name in self.types}, node, "another result")

    def declaration(self, node):
        if is_docstring(node):
            return
        if isinstance(node, ast.ClassDef):
            expect([ast.unparse(base) for base in node.bases] == ["TypedDict"] and not node.keywords, node, "another base")
            expect(not node.decorator_list, node, "a decorator")
            for part in node.body:
                self.field(part)
        elif isinstance(node, ast.AnnAssign):
            expect(ast.unparse(node.annotation) == "TypeAlias" and node.value is not None, node, "no alias")
            self.type(node.value)
        else:
            expect(isinstance(node, ast.Assign) and isinstance(node.value, ast.Call), node, "another statement")
            call = node.value
            expect(ast.unparse(call.func) == "TypedDict" and len(call.args) == 2 and not call.keywords, node, "another call")
            name, fields = call.args
            expect(is_text(name) and name.value == node.targets[0].id, node, "another name")
            expect(isinstance(fields, ast.Dict) and all(map(is_text, fields.keys)), node, "another field")
            for kind in fields.values:
                self.type(kind)

    def field(self, node):
        if is_docstring(node) or isinstance(node, ast.Pass):
            return
        expect(isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is None, node, "another field")
        self.type(node.annotation)

    def type(self, node):
        if isinstance(node, ast.Name):
            expect(node.id in TYPING | BUILTIN | self.types, node, "another name")
        elif isinstance(node, ast.BinOp):
            expect(isinstance(node.op, ast.BitOr), node, "another operator")
            self.type(node.left)
            self.type(node.right)
        elif isinstance(node, ast.Constant):
            expect(node.value is None or node.value in self.types, node, "another constant")
        elif isinstance(node, ast.Starred):
            self.type(node.value)
        elif isinstance(node, ast.Subscript):
            self.subscript(node)
        else:
            expect(False, node, "another type")

    def subscript(self, node):
        generic = ast.unparse(node.value)
        expect(generic in TYPING | BUILTIN, node, "another generic")
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if generic == "Literal":
            for item in items:
                item = item.operand if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub) else item
                expect(isinstance(item, ast.Constant) and type(item.value) in (str, int, bool), item, "another literal")
            return
        if generic == "Annotated":
            expect(len(items) == 2 and is_text(items[1]), node, "another annotation")
            items = items[:1]
        if generic == "tuple" and isinstance(items[-1], ast.Constant) and items[-1].value is ...:
            items = items[:-1]
        for item in items:
            self.type(item)


def check_package(tree):
    """Check a server's package."""
    expect(is_docstring(tree.body[0]), tree, "no docstring")
    if "MissingServer" in ast.unparse(tree.body[1]):
        expect(ast.unparse(tree.body[1]) == "from servers import MissingServer as _MissingServer", tree.body[1], "another import")
        expect(ast.unparse(tree.body[2]) == "__all__ = []", tree.body[2], "another statement")
        check_attach(tree.body[3], "_MissingServer", is_text)
        expect(len(tree.body) == 4, tree, "more statements")
        return
    expect(ast.unparse(tree.body[1]) == "from servers import Server as _Server", tree.body[1], "another import")
    expect(ast.unparse(tree.body[2]) == "TYPE_CHECKING = False", tree.body[2], "another statement")
    check_imports(tree.body[3])
    check_attach(tree.body[4], "_Server", is_text_dict, is_text_dict)
    expect(len(tree.body) == 5, tree, "more statements")


def is_text_dict(node):
    return isinstance(node, ast.Dict) and all(map(is_text, node.keys)) and all(map(is_text, node.values))


def check_attach(node, name, *arguments):
    expect(isinstance(node, ast.Expr) and isinstance(node.value, ast.Call), node, "no call")
    call = node.value
    expect(ast.unparse(call.func) == f"{name}.__attach__" and not call.keywords, node, "another call")
    expect(len(call.args) == 1 + len(arguments) and ast.unparse(call.args[0]) == "__name__", node, "other arguments")
    for check, argument in zip(arguments, call.args[1:], strict=False):
        expect(check(argument), argument, "another argument")


def check_imports(node):
    expect(isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse, node, "another condition")
    for part in node.body:
        if not isinstance(part, ast.Pass) and ast.unparse(part) != SHARED:
            expect(isinstance(part, ast.ImportFrom) and part.level == 1, part, "another import")
            expect(all(name.asname and name.name.isidentifier() for name in part.names), part, "another name")


def check(path, source, root):
    source.encode()
    expect("\r" not in source, ast.Constant(path), "a carriage return")
    for character in source:
        expect(character == "\n" or character.isprintable(), ast.Constant(path), "an invisible character")
    for line in source.split("\n")[:2]:
        expect(not line.lstrip().startswith("#"), ast.Constant(path), "a comment in the first two lines")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = ast.parse(source)
        compile(source, path, "exec")
    if path == "__init__.py":
        expect(source.endswith(root), ast.Constant(path), "other code in the root")
        expect(is_docstring(tree.body[0]) and ast.unparse(tree.body[1]) == "TYPE_CHECKING = False", tree, "another beginning")
        check_imports(tree.body[2])
        expect(isinstance(tree.body[3], ast.Assign) and ast.unparse(tree.body[3].targets[0]) == "__all__", tree, "no list")
        expect(all(map(is_text, tree.body[3].value.elts)), tree.body[3], "another list")
        expect(len(tree.body) == 4 + len(ast.parse(root).body), tree, "more statements")
    elif path.endswith("/__init__.py"):
        check_package(tree)
    else:
        Wrapper(tree)


def main():
    with open(sys.argv[1]) as file:
        root = file.read()
    for line in sys.stdin:
        problem = ""
        for path, source in json.loads(line).items():
            if path.endswith(".py"):
                try:
                    check(path, source, root)
                except Exception as failure:
                    problem = f"{path}: {type(failure).__name__}: {failure}"
        print(json.dumps(problem), flush=True)


main()
