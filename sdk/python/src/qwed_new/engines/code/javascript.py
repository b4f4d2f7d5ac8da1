"""The analyser of JavaScript and TypeScript, on tree-sitter's trees."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from qwed_new.engines.code.findings import Finding, unique

MAX_CODE = 1_000_000
MAX_DEPTH = 400

# Names that run text, start programs or reach the system, wherever they are read.
_NAMES = frozenset(
    "eval Function require execScript importScripts process child_process Deno Bun WebAssembly XMLHttpRequest WebSocket fetch __proto__".split()
)
_GLOBALS = frozenset("globalThis window global self frames top parent".split())
_PROPERTIES = frozenset(
    "constructor __proto__ prototype eval Function exec execSync spawn spawnSync execFile execFileSync fork mainModule binding dlopen "
    "__defineGetter__ __defineSetter__ __lookupGetter__ getPrototypeOf setPrototypeOf insertAdjacentHTML innerHTML outerHTML writeln".split()
)
_HARMLESS_IN = {"exec": "a regular expression's method", "prototype": "", "constructor": "", "getPrototypeOf": ""}
_MODULES = frozenset(
    "child_process fs fs/promises net http https http2 dgram dns tls cluster worker_threads vm vm2 os process module inspector repl v8 axios node-fetch got "
    "request shelljs execa cross-spawn puppeteer playwright".split()
)
_TIMERS = frozenset({"setTimeout", "setInterval", "setImmediate"})


def analyse(code: str, typescript: bool = False) -> list[Finding] | None:
    """The findings of a program, None when it does not parse."""
    if len(code) > MAX_CODE:
        return [Finding("too_large", "high", f"Too large: the program has more than {MAX_CODE} characters")]
    grammar = tree_sitter_typescript.language_typescript() if typescript else tree_sitter_javascript.language()
    tree = Parser(Language(grammar)).parse(code.encode("utf-8", "surrogatepass"))
    if tree.root_node.has_error:
        return None
    findings: list[Finding] = []
    for node in walk(tree.root_node):
        findings += _judge(node)
    return unique(findings)


def walk(root: Node) -> Iterator[Node]:
    """Every node, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def text_of(node: Node | None) -> str:
    """The source of a node."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def _block(node: Node, pattern: str, severity: str = "critical") -> list[Finding]:
    return [Finding("dangerous_pattern", severity, f"Dangerous pattern: {pattern}", node.start_point[0] + 1)]


def _unresolved(node: Node, what: str) -> list[Finding]:
    return [Finding("unresolved_reflection", "high", f"Unresolved reflection: {what}", node.start_point[0] + 1)]


def _judge(node: Node) -> list[Finding]:
    kind = node.type
    if kind in ("identifier", "shorthand_property_identifier"):
        return _name(node)
    if kind == "property_identifier" and node.parent and node.parent.type == "member_expression":
        return _property(node, _unescape(text_of(node)))
    if kind == "subscript_expression":
        return _subscript(node)
    if kind == "call_expression":
        return _call(node)
    if kind == "import_statement" or (kind == "export_statement" and node.child_by_field_name("source")):
        return _import(node, node.child_by_field_name("source"))
    if kind == "import" and node.parent and node.parent.type == "call_expression":
        return _unresolved(node, "import()")
    if kind == "pair" and (key := node.child_by_field_name("key")) and _constant(key) in ("__proto__",):
        return _block(node, "__proto__")
    if kind in ("with_statement", "debugger_statement"):
        return _block(node, kind.split("_")[0])
    if kind == "computed_property_name" and _constant(node.named_children[0] if node.named_children else None) is None:
        if node.parent and node.parent.parent and node.parent.parent.type == "object_pattern":
            return _unresolved(node, "a computed property")
    return []


def _unescape(text: str) -> str:
    r"""An identifier without escapes such as \u0065."""
    import re

    return re.sub(r"\\u\{?([0-9a-fA-F]{1,6})\}?", lambda m: chr(int(m[1], 16) % 0x110000), text)


def _name(node: Node) -> list[Finding]:
    name = _unescape(text_of(node))
    if node.parent and node.parent.type in ("method_definition", "labeled_statement", "statement_identifier"):
        return []
    if name in _NAMES:
        return _block(node, name)
    if name in _GLOBALS:
        parent = node.parent
        if not (parent and parent.type == "member_expression" and parent.child_by_field_name("object") == node):
            if not (
                parent
                and parent.type in ("variable_declarator", "formal_parameters", "required_parameter")
                and parent.child_by_field_name("value") != node
            ):
                return _unresolved(node, f"{name} used as a value")
    return []


def _property(node: Node, name: str) -> list[Finding]:
    if name not in _PROPERTIES:
        return []
    member = node.parent
    base = member.child_by_field_name("object") if member else None
    if name == "exec" and base is not None and base.type in ("regex", "identifier"):
        return []
    if (
        name == "constructor"
        and base is not None
        and base.type == "this"
        and member
        and member.parent
        and member.parent.type == "member_expression"
    ):
        return []  # this.constructor.name
    if name == "prototype" and base is not None and base.type == "identifier":
        return []
    return _block(node, name)


def _constant(node: Node | None) -> str | None:
    """The text of a constant expression, None where it is not one."""
    if node is None:
        return None
    if node.type == "string":
        return _unescape(text_of(node)[1:-1]) if "\\x" not in text_of(node) else None
    if node.type in ("number", "property_identifier"):
        return text_of(node)
    if node.type == "template_string" and all(c.type in ("`", "string_fragment") for c in node.children):
        return text_of(node)[1:-1]
    if node.type == "parenthesized_expression" and node.named_children:
        return _constant(node.named_children[0])
    if node.type == "binary_expression" and text_of(node.child_by_field_name("operator")) == "+":
        left, right = _constant(node.child_by_field_name("left")), _constant(node.child_by_field_name("right"))
        return left + right if left is not None and right is not None else None
    return None


def _subscript(node: Node) -> list[Finding]:
    base, index = node.child_by_field_name("object"), node.child_by_field_name("index")
    name = _constant(index)
    if name is not None:
        return _block(node, name) if name in _PROPERTIES | _NAMES and name != "exec" else []
    if text_of(base) in _GLOBALS:
        return _unresolved(node, f"a computed property of {text_of(base)}")
    if index is not None and index.type in ("binary_expression", "template_string", "call_expression", "array", "subscript_expression"):
        inner = {n.type for n in walk(index)}
        if inner & {"string", "template_string"}:
            return _unresolved(node, "a property whose name is computed from texts")
    return []


def _call(node: Node) -> list[Finding]:
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    name = _unescape(text_of(function))
    first = arguments.named_children[0] if arguments is not None and arguments.named_children else None
    if name.split(".")[-1] in _TIMERS and first is not None and first.type in ("string", "template_string", "binary_expression"):
        return _block(node, f"{name} of a text")
    if name in ("document.write", "document.writeln"):
        return _block(node, name, "high")
    if name.startswith("Reflect.") and (first is None or name in ("Reflect.get", "Reflect.apply", "Reflect.construct")):
        return _unresolved(node, name)
    return []


def _import(node: Node, source: Node | None) -> list[Finding]:
    module = (_constant(source) or "").removeprefix("node:")
    return _block(node, f"import of {module}") if module in _MODULES or not module else []
