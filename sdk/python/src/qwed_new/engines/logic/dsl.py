"""QWED-Logic: s-expressions, read into trees with bounded size and depth."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qwed_new.limits import TooLarge, bounded_text

MAX_TEXT = 100_000
MAX_NODES = 5_000
MAX_DEPTH = 120

_TOKEN = re.compile(r'\s*(?:([()])|("(?:[^"\\]|\\.)*")|([^\s();"]+))')
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?$", re.A)
_NAME = re.compile(r"[^\W\d][\w.'-]*\??$")

# Every spelling of an operator, and its canonical name.
OPERATORS = {
    **{name: name
        for name in (
            "AND OR NOT IMPLIES IFF XOR GT LT GTE LTE EQ NEQ PLUS MINUS MULT DIV MOD POW NEG ABS ITE DISTINCT FORALL "
            "EXISTS IN").split()},
    **{"GE": "GTE", "LE": "LTE", "GEQ": "GTE", "LEQ": "LTE", "NE": "NEQ", "EQUALS": "EQ", "ADD": "PLUS", "SUB": "MINUS",
        "MUL": "MULT", "TIMES": "MULT"},
    **{">": "GT", "<": "LT", ">=": "GTE", "<=": "LTE", "=": "EQ", "==": "EQ", "!=": "NEQ", "+": "PLUS", "-": "MINUS",
        "*": "MULT", "/": "DIV", "%": "MOD"},
    **{"=>": "IMPLIES", "->": "IMPLIES", "<=>": "IFF", "<->": "IFF", "&&": "AND", "||": "OR", "!": "NOT", "IF": "ITE",
        "EQUIV": "IFF", "EQUIVALENT": "IFF"},
    **{"⇔": "IFF", "⟺": "IFF", "⇒": "IMPLIES", "⟹": "IMPLIES", "∧": "AND", "∨": "OR", "¬": "NOT", "→": "IMPLIES",
        "↔": "IFF", "∀": "FORALL", "∃": "EXISTS", "≥": "GTE", "≤": "LTE", "≠": "NEQ", "SUM": "PLUS"},
}  # fmt: skip


# Words that are not names of variables: operators, and what programs call a missing value or one that is not a number.
RESERVED = frozenset(o for o in OPERATORS if o.isalpha() and o.isascii()) | frozenset(
    "and or not implies iff xor forall exists ite if then else nan inf infinity oo none null nil undefined na "
    "void".split()
)


class LogicSyntaxError(ValueError):
    """The text has a syntax error; the message contains its position."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A name, number, text, or truth value, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Form:
    """An operator or predicate on its arguments."""

    head: str
    arguments: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A list without an operator, as the variables of a quantifier are."""

    items: tuple[Tree, ...]


_NOT_NUMBERS = frozenset("nan inf infinity none null nil undefined na".split())

Tree = Atom | Form | Group


def parse(text: str) -> Tree:
    """The tree of one s-expression; LogicSyntaxError or TooLarge otherwise."""
    text = bounded_text(text, "query", MAX_TEXT)
    stack: list[list[Tree]] = [[]]
    nodes = 0
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if not match:
            raise LogicSyntaxError(f"unexpected {text[position:].strip()[:12]!r}; there are no comments")
        position = match.end()
        bracket, string, word = match.groups()
        nodes += 1
        if nodes > MAX_NODES:
            raise TooLarge(f"the query has more than {MAX_NODES} tokens")
        if bracket == "(":
            stack.append([])
            if len(stack) > MAX_DEPTH:
                raise TooLarge(f"the query is nested more than {MAX_DEPTH} deep")
        elif bracket == ")":
            if len(stack) == 1:
                raise LogicSyntaxError("a closing parenthesis has no opening one")
            items = stack.pop()
            stack[-1].append(_form(items))
        else:
            stack[-1].append(Atom(string or word))
    if len(stack) > 1:
        raise LogicSyntaxError(f"{len(stack) - 1} parenthesis(es) are not closed")
    if not stack[0]:
        raise LogicSyntaxError("the query is empty")
    if len(stack[0]) > 1:
        return Form("AND", tuple(stack[0])) if all(isinstance(t, Form) for t in stack[0]) else _form(stack[0])
    return stack[0][0]


def _form(items: list[Tree]) -> Tree:
    if not items:
        raise LogicSyntaxError("() is empty")
    head, rest = items[0], tuple(items[1:])
    if isinstance(head, Atom):
        operator = OPERATORS.get(head.text.upper())
        if operator and not rest:
            raise LogicSyntaxError(f"{head.text!r} takes at least one argument")
        if operator:
            return Form(operator, rest)
    return Group(tuple(items))


def is_number(text: str) -> bool:
    """Whether an atom is a number."""
    return bool(_NUMBER.match(text))


def is_name(text: str) -> bool:
    """Whether an atom may name a variable."""
    return bool(_NAME.match(text)) and "__" not in text and not is_reserved(text)


def is_reserved(text: str) -> bool:
    """Report whether a word cannot name a variable: it is an operator, or a value that is not a number."""
    return text in RESERVED or text.lower() in _NOT_NUMBERS or text.capitalize() in ("And", "Or", "Not", "If")


def names_in(tree: Tree) -> set[str]:
    """The atoms of a tree."""
    if isinstance(tree, Atom):
        return {tree.text}
    return {n for p in (tree.arguments if isinstance(tree, Form) else tree.items) for n in names_in(p)}


def show(tree: Tree) -> str:
    """The tree as it was understood."""
    if isinstance(tree, Atom):
        return tree.text
    if isinstance(tree, Form):
        return f"({' '.join((tree.head, *map(show, tree.arguments)))})"
    return f"({' '.join(map(show, tree.items))})"
