"""Sentences with two readings, in trees as (EITHER first second text): one of the two is meant, the same one wherever
the text occurs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree

EITHER = "EITHER"
MAX_TEXTS = 4


def texts(trees: Sequence[Tree]) -> list[str]:
    """Return the texts with two readings in statements."""
    found: set[str] = set()
    stack = list(trees)
    while stack:
        tree = stack.pop()
        if isinstance(tree, Form):
            if tree.head == EITHER and isinstance(tree.arguments[2], Atom):
                found.add(tree.arguments[2].text)
            stack += tree.arguments
    return sorted(found)


def readings(trees: Sequence[Tree]) -> Iterator[list[Tree]]:
    """Yield the statements in each combination of readings."""
    open_texts = texts(trees)
    if len(open_texts) > MAX_TEXTS:
        raise LogicSyntaxError(f"more than {MAX_TEXTS} sentences have two readings, such as {open_texts[0][:60]!r}")
    for chosen in product((0, 1), repeat=len(open_texts)):
        choice = dict(zip(open_texts, chosen, strict=True))
        yield [_read(t, choice) for t in trees]


def _read(tree: Tree, choice: dict[str, int]) -> Tree:
    if not isinstance(tree, Form):
        return tree
    if tree.head == EITHER and isinstance(tree.arguments[2], Atom):
        return _read(tree.arguments[choice[tree.arguments[2].text]], choice)
    return Form(tree.head, tuple(_read(a, choice) for a in tree.arguments))
