"""The bindings of the names of a JavaScript program, and the texts of constant expressions.

A program is walked once, so that a name is looked up in constant time.
"""

from __future__ import annotations

import re
from functools import cached_property

from tree_sitter import Node

from qwed_new.engines.code import javascript_policy as policy
from qwed_new.engines.code.trees import text_of, walk

MAX_TEXT = 10_000
MAX_STEPS = 8  # names that a constant is read through
_DECLARING = frozenset(
    "variable_declarator formal_parameters required_parameter import_clause namespace_import import_specifier "
    "arrow_function function_declaration catch_clause assignment_expression".split())
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")


def unescape(text: str) -> str:
    r"""A text or an identifier without escapes such as \u0065."""
    return _ESCAPE.sub(lambda m: chr(int(m[1] or m[2] or m[3], 16) % 0x110000), text)


def is_shown(node: Node) -> bool:
    """Report whether a text is only compared or is an argument of console.log."""
    parent = node.parent
    if parent is not None and parent.type == "arguments" and parent.parent is not None:
        function = parent.parent.child_by_field_name("function")
        return function is not None and function.type == "member_expression" and (
            text_of(function.child_by_field_name("object")) == "console")
    operator = text_of(parent.child_by_field_name("operator")) if parent is not None else ""
    return operator in ("===", "!==", "==", "!=")


class Names:
    """The names of one program."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._values: dict[str, list[Node | None]] = {}
        self._assigned: set[str] = set()
        self._declared: set[str] = set()
        self._functions: set[str] = set()  # names that are bound to a function
        self._others: set[str] = set()  # names that are bound to something else
        self._globals: dict[str, bool] = {}
        self._written: dict[int, bool] = {}  # by node
        self._texts: dict[tuple[int, int], str | None] = {}  # by node and steps
        for node in walk(root):
            self._read(node)

    def _read(self, node: Node) -> None:
        if node.type in _DECLARING:
            self._declared.update(text_of(n) for n in node.named_children if n.type == "identifier")
        if node.type in ("function_declaration", "generator_function_declaration"):
            self._functions.add(text_of(node.child_by_field_name("name")))
        elif node.type == "variable_declarator":
            name, value = text_of(node.child_by_field_name("name")), node.child_by_field_name("value")
            self._values.setdefault(name, []).append(value)
            self._bind(name, value)
        elif node.type in ("assignment_expression", "augmented_assignment_expression"):
            name = text_of(node.child_by_field_name("left"))
            self._assigned.add(name)
            if node.type == "assignment_expression":
                self._bind(name, node.child_by_field_name("right"))
        elif node.type == "formal_parameters" and _is_executor(node):
            self._functions.update(text_of(n) for n in node.named_children)
        elif node.type == "arrow_function" and _is_executor(parameter := node.child_by_field_name("parameter")):
            self._functions.add(text_of(parameter))

    def _bind(self, name: str, value: Node | None) -> None:
        is_function = value is not None and value.type in ("arrow_function", "function_expression")
        (self._functions if is_function else self._others).add(name)

    def only_value(self, name: Node) -> Node | None:
        """Return the value of a name that is declared once with a value and never assigned again."""
        text = text_of(name)
        values = self._values.get(text, [])
        return values[0] if len(values) == 1 and text not in self._assigned else None

    def is_declared(self, name: Node) -> bool:
        """Report whether the program declares or assigns a name."""
        return text_of(name) in self._declared

    def is_bound_to_function(self, name: Node) -> bool:
        """Report whether every binding of a name in the program is a function, a parameter of one, or an import."""
        return text_of(name) in self._functions - self._others

    @cached_property
    def hold_program_text(self) -> bool:
        """Whether the program has a text that may be a program: it calls or assigns something."""
        texts = (n for n in walk(self._root) if n.type in ("string", "template_string") and not is_shown(n))
        return any(re.search(r"[(=`]|\\[ux]", text_of(n).strip("`'\"")) for n in texts)

    def constant(self, node: Node | None, steps: int = 0) -> str | None:
        """Return the text of a constant expression, or None. Of a long text only the beginning is returned."""
        if node is None:
            return None
        if node.type == "string":
            return unescape(text_of(node)[1:-1])[:MAX_TEXT]
        if node.type in ("number", "property_identifier"):
            return text_of(node)
        if node.type == "template_string" and all(c.type in ("`", "string_fragment") for c in node.children):
            return text_of(node)[1:-1][:MAX_TEXT]
        if node.type == "parenthesized_expression" and node.named_children:
            return self.constant(node.named_children[0], steps)
        if node.type == "identifier" and steps < MAX_STEPS:
            return self.constant(self.only_value(node), steps + 1)
        return self._sum(node, steps) if _is_sum(node) else None

    def _sum(self, node: Node, steps: int) -> str | None:
        """The text of `a + b + c`, from the left."""
        sums = []
        at: Node | None = node
        while at is not None and _is_sum(at) and (at.id, steps) not in self._texts:
            sums.append(at)
            at = at.child_by_field_name("left")
        known = at is not None and (at.id, steps) in self._texts
        text = self._texts[at.id, steps] if at is not None and known else self.constant(at, steps)
        for outer in reversed(sums):
            right = self.constant(outer.child_by_field_name("right"), steps)
            text = (text + right)[:MAX_TEXT] if text is not None and right is not None else None
            self._texts[outer.id, steps] = text
        return text

    def beginning(self, node: Node | None) -> tuple[str, bool]:
        """Return the text that an expression begins with, and whether that is all of it."""
        if (text := self.constant(node)) is not None:
            return text, True
        if node is None or not (_is_sum(node) or node.type in ("template_string", "parenthesized_expression")):
            return "", False
        if node.type == "template_string":
            found = ""
            for part in node.named_children:
                text, whole = (text_of(part), True) if part.type == "string_fragment" else self.beginning(
                    part.named_children[0] if part.named_children else None)
                found += text
                if not whole:
                    break
            return found[:MAX_TEXT], False
        if node.type == "parenthesized_expression":
            return self.beginning(node.named_children[0] if node.named_children else None)
        left = node.child_by_field_name("left")
        while left is not None and _is_sum(left) and self.constant(left) is None:
            node, left = left, left.child_by_field_name("left")
        text, whole = self.beginning(left)
        return text + (self.beginning(node.child_by_field_name("right"))[0] if whole else ""), False

    def holds_text(self, value: Node) -> bool:
        """Report whether a value is a text that is written in the program, an array of them or the name of
        something."""
        if value.id not in self._written:
            self._written[value.id] = text_of(value).endswith((".name", ".description", ".source")) or (
                value.type in ("array", "string", "template_string", "parenthesized_expression")
                and any(n.type == "string" for n in walk(value)))
        return self._written[value.id]

    def is_global(self, base: Node | None) -> bool:
        """Report whether an expression is the global object: by name, or as `(function () { return this })()`."""
        if text_of(base) in policy.GLOBALS:
            return True
        if base is None or base.type != "identifier":
            return False
        if (name := text_of(base)) not in self._globals:
            self._globals[name] = _returns_this(self.only_value(base))
        return self._globals[name]


def _is_sum(node: Node) -> bool:
    return node.type == "binary_expression" and text_of(node.child_by_field_name("operator")) == "+"


def _is_executor(parameters: Node | None) -> bool:
    """Report whether parameters are those of the function that is passed to `new Promise`, which are functions."""
    function = parameters.parent if parameters is not None else None
    arguments = function.parent if function is not None else None
    made = arguments.parent if arguments is not None and arguments.type == "arguments" else None
    return made is not None and made.type == "new_expression" and text_of(
        made.child_by_field_name("constructor")) == "Promise"


def _returns_this(value: Node | None) -> bool:
    """Report whether a value is `(function () { return this })()`, the global object."""
    called = value.child_by_field_name("function") if value is not None and value.type == "call_expression" else None
    return called is not None and any(
        n.type == "return_statement" and text_of(n).rstrip("; ") == "return this" for n in walk(called))
