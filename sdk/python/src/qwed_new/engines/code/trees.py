"""Trees of tree-sitter."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

# Above this depth a tree is not analysed: tree-sitter finds the parent of a node in time that grows with the depth.
MAX_DEPTH = 1000


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


def is_too_deep(root: Node) -> bool:
    """Report whether nodes are nested more than MAX_DEPTH times."""
    cursor = root.walk()
    while cursor.depth <= MAX_DEPTH:
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
    return True
