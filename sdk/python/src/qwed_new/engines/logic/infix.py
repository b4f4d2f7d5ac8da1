"""Infix formulas: `p -> q`, `not p or q`, `x + 1 > 5 and y <= 2*x`."""

from __future__ import annotations

import re

from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree, is_reserved

MAX_DEPTH = 60

_TOKEN = re.compile(
    r"\s*(<->|<=+>|->|=+>|⇒|⇔|⟹|⟺|<=|>=|==|!=|&&|\|\||\*\*|[-+*/%^()<>=≤≥≠∧∨¬→↔!&|~]|\d+\.?\d*"
    r"|[^\W\d]\w*(?:\.[^\W\d]\w*)*|(.))")
_WORDS = {"and": "∧", "or": "∨", "not": "¬", "implies": "→", "iff": "↔", "xor": "xor"}
_SAME = {
    "<->": "↔",
    "<=>": "↔",
    "<==>": "↔",
    "⇔": "↔",
    "⟺": "↔",
    "->": "→",
    "=>": "→",
    "==>": "→",
    "⇒": "→",
    "⟹": "→",
    "&&": "∧",
    "&": "∧",
    "||": "∨",
    "|": "∨",
    "!": "¬",
    "~": "¬",
    "==": "=",
    "**": "^",
}
_BINARY = {  # operator → head, strength, right associative
    "↔": ("IFF", 1, False), "→": ("IMPLIES", 2, True), "∨": ("OR", 3, False), "xor": ("XOR", 3, False),
    "∧": ("AND", 4, False),
    "=": ("EQ", 6, False), "!=": ("NEQ", 6, False), "≠": ("NEQ", 6, False), "<": ("LT", 6, False),
    ">": ("GT", 6, False),
    "<=": ("LTE", 6, False), ">=": ("GTE", 6, False), "≤": ("LTE", 6, False), "≥": ("GTE", 6, False),
    "+": ("PLUS", 7, False), "-": ("MINUS", 7, False), "*": ("MULT", 8, False), "/": ("DIV", 8, False),
    "%": ("MOD", 8, False),
    "^": ("POW", 10, True),
}  # fmt: skip


def parse_infix(text: str) -> Tree:
    """The tree of an infix formula; it raises LogicSyntaxError for other texts."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        if match[2]:
            raise LogicSyntaxError(f"unexpected {match[2]!r}")
        word = match[1]
        if len(word) > 1 and word[0].isalpha() and not word.isascii():
            raise LogicSyntaxError(f"{word!r} cannot be a name in a formula")
        if word.lower() not in _WORDS and is_reserved(word):
            raise LogicSyntaxError(f"{word!r} is a reserved word")
        tokens.append(_WORDS.get(word.lower(), _SAME.get(word, word)))
    if len(tokens) > 2_000:
        raise LogicSyntaxError("the formula is too long")
    parser = _Parser(tokens)
    tree = parser.expression(0, 0)
    if parser.at < len(tokens):
        raise LogicSyntaxError(f"unexpected {tokens[parser.at]!r}")
    return tree


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self.at = 0

    def _next(self) -> str:
        return self._tokens[self.at] if self.at < len(self._tokens) else ""

    def expression(self, strength: int, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise LogicSyntaxError("the formula is nested too deep")
        left = self._operand(depth)
        while (operator := self._next()) in _BINARY and _BINARY[operator][1] >= max(strength, 1):
            head, own, right = _BINARY[operator]
            self.at += 1
            left = Form(head, (left, self.expression(own if right else own + 1, depth + 1)))
        return left

    def _operand(self, depth: int) -> Tree:
        token = self._next()
        self.at += 1
        if token == "¬":
            return Form("NOT", (self.expression(5, depth + 1),))
        if token == "-":
            return Form("NEG", (self.expression(9, depth + 1),))
        if token == "(":
            inner = self.expression(0, depth + 1)
            if self._next() != ")":
                raise LogicSyntaxError("a parenthesis is not closed")
            self.at += 1
            return inner
        if re.fullmatch(r"\d+\.?\d*|[^\W\d][\w.]*", token):
            return Atom(token.lower())
        raise LogicSyntaxError(f"unexpected {token or 'end'!r}")
