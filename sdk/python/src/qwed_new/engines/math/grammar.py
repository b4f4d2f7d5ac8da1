"""The grammar of mathematical claims: text in, a typed tree out. Nothing is evaluated here."""

from __future__ import annotations

import re
from decimal import Decimal

from qwed_new.engines.math.notation import written_out
from qwed_new.engines.math.tree import BINDERS, Apply, Claim, Name, Node, Number, has_binder
from qwed_new.engines.prose import is_prose, parses
from qwed_new.limits import NotText, TooLarge, bounded_text

MAX_TEXT = 10_000
MAX_NODES = 2_000
MAX_DEPTH = 60
MAX_DIGITS = 400

RELATIONS = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "≠": "!=",
    "<": "<",
    ">": ">",
    "<=": "<=",
    ">=": ">=",
    "≤": "<=",
    "≥": ">=",
    "≈": "≈",
    "~=": "≈",
}

FUNCTIONS = {
    **{name: name
        for name in (
            "sin cos tan cot sec csc sinh cosh tanh coth asin acos atan acot asec acsc asinh acosh atanh").split()},
    **{"arc" + name: "a" + name for name in ("sin", "cos", "tan")},
    **{
        name: name
        for name in (
            "exp log ln log2 log10 sqrt cbrt root abs sign floor ceil factorial gcd lcm binomial min max gamma "
            "erf").split()
    },
    **{
        "Abs": "abs",
        "ceiling": "ceil",
        "lg": "log10",
        "atan2": "atan2",
        "arctan2": "atan2",
        "re": "re",
        "im": "im",
        "conjugate": "conjugate",
    },
    **{
        "diff": "diff",
        "derivative": "diff",
        "integrate": "integral",
        "integral": "integral",
        "limit": "limit",
        "sum": "sum",
        "product": "product",
    },
    **{name: name for name in "det inv transpose trace".split()},
    **{"mod": "mod", "round": "round", "choose": "binomial", "comb": "binomial", "nCr": "binomial", "pow": "pow"},
}

CONSTANTS = {
    "pi": "pi",
    "Pi": "pi",
    "PI": "pi",
    "π": "pi",
    "e": "e",
    "E": "e",
    "i": "i",
    "I": "i",
    "oo": "oo",
    "inf": "oo",
    "infinity": "oo",
    "∞": "oo",
    "tau": "tau",
    "τ": "tau",
}

# Texts that programs contain and claims do not.
_HOSTILE = re.compile(
    r"__|\b(?:import|lambda|eval|exec|compile|open|getattr|setattr|globals|locals|os|sys|subprocess|builtins|breakpoint"
    r"|input|print|vars|dir|exit|quit)\b\s*[(.:]"
    r"|\bimport\b|\blambda\b"
)

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+(?:_\d+)*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+(?![\w.]))?)
  | (?P<name>[^\W\d_⁰¹²³⁴⁵⁶⁷⁸⁹][^\W⁰¹²³⁴⁵⁶⁷⁸⁹]*)
  | (?P<sup>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)
  | (?P<op>\*\*|<=|>=|==|!=|~=|\+/-|[-+*/^!(),=<>≤≥≠≈%|{}\[\]√×÷·−±])
  )""",
    re.VERBOSE,
)


# Ambiguous notations, and the replacement to suggest.
_TWO_READINGS = (
    (re.compile(r"[\w)²³]!=(?!=)"), "'a!=b' may be a factorial or an inequality: write 'a! = b' or 'a != b'"),
    (re.compile(r"[\w)]%\s+[\w(√]"), "'a% b' may be a percentage or a remainder: write 'a mod b' or 'a% * b'"),
    (re.compile(r"(?<![\w.])0[xXbBoO]\w"), "'0x…' is not a number here: write it with decimal digits"),
    (re.compile(r"\d[eE]\d+[A-Za-z_]"), "a number with an exponent is followed by a letter: write '*' between them"),
    (
        re.compile(r"<?=+>|⇔|⇒|↔|⟺|⟹"),
        "'<=>' and '=>' join two claims: give them to verify_logic_statement, as premise and conclusion",
    ),
    (re.compile("≡"), "'a ≡ b' has several readings: write 'a = b', or 'mod(a, n) = mod(b, n)'"),
    (re.compile(r"[^\W\d]\w*\.[^\W\d]"), "a name has no point: write T_f for T.f"),
    (re.compile(r"\d\.(?!\d)\s*[\w(√]"), "a number ends with a point: write its decimals"),
)


# Characters that programs have and mathematics has not; sentences have them too.
_QUOTING = re.compile(r"[\"'`;\\]")


class MathSyntaxError(ValueError):
    """The text has a syntax error; the message contains its position."""


class HostileText(ValueError):
    """The text is program code, not mathematics."""


def parse(text: str) -> Claim:
    """The claim that a text states.

    Raises MathSyntaxError, HostileText for program code and TooLarge beyond the limits.
    """
    try:
        text, unclear = written_out(bounded_text(text, "expression", MAX_TEXT))
    except NotText as error:
        raise MathSyntaxError(str(error)) from None
    if unclear:
        raise MathSyntaxError(unclear)
    if (mark := _HOSTILE.search(text) or _QUOTING.search(text)) and not is_prose(text):
        if _HOSTILE.search(text) or parses(text):
            raise HostileText("the text is program code and not a mathematical expression")
        raise MathSyntaxError(f"unexpected {mark[0]!r}")
    for pattern, reason in _TWO_READINGS:
        if pattern.search(text):
            raise MathSyntaxError(reason)
    claim = _Parser(text).claim()
    _check_infinity(claim)
    return claim


def _is_infinity(node: Node) -> bool:
    if isinstance(node, Apply) and node.function == "neg":
        node = node.arguments[0]
    return node == Name("oo")


def _check_infinity(claim: Claim) -> None:
    """Refuse calculations with infinity. It may only be a bound, or the claimed value of a limit, sum or integral."""
    alone = len(claim.sides) == 1 or any(has_binder(s) for s in claim.sides)
    stack = [s for s in claim.sides if not (alone and _is_infinity(s))]
    while stack:
        node = stack.pop()
        if node == Name("oo"):
            raise MathSyntaxError("infinity is not a number: it may be a bound, or what a limit, sum or integral is")
        if isinstance(node, Apply):
            bounds = 2 if node.function in BINDERS else len(node.arguments)
            stack.extend(a for i, a in enumerate(node.arguments) if i < bounds or not _is_infinity(a))


def parse_expression(text: str) -> Node:
    """The one expression that a text states."""
    claim = parse(text)
    if claim.relations:
        raise MathSyntaxError(f"{text.strip()!r} is a relation where an expression is wanted")
    return claim.sides[0]


def tokens_of(text: str) -> list[tuple[str, str]]:
    """Kind and text of each token."""
    tokens: list[tuple[str, str]] = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if not match:
            rest = text[position:].strip()
            raise MathSyntaxError(f"unexpected {rest[:12]!r}")
        kind = match.lastgroup or ""
        tokens.append((kind, match.group(kind)))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent; the depth is bounded, so is the number of nodes."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens_of(text)
        self._at = 0
        self._nodes = 0
        self._depth = 0
        self._percentages: list[Node] = []

    def _peek(self, *operators: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at][0] == "op" and self._tokens[self._at][
            1] in operators

    def _take(self, *operators: str) -> str | None:
        if self._peek(*operators):
            self._at += 1
            return self._tokens[self._at - 1][1]
        return None

    def _need(self, operator: str) -> None:
        if not self._take(operator):
            found = self._tokens[self._at][1] if self._at < len(self._tokens) else "the end"
            raise MathSyntaxError(f"expected {operator!r} and found {found!r}")

    def _apply(self, function: str, *arguments: Node) -> Apply:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TooLarge(f"the expression has more than {MAX_NODES} operations")
        return Apply(function, arguments)

    def claim(self) -> Claim:
        sides = [self._sum()]
        relations: list[str] = []
        while relation := self._take(*RELATIONS):
            relations.append(RELATIONS[relation])
            sides.append(self._sum())
        if self._at < len(self._tokens):
            raise MathSyntaxError(f"unexpected {self._tokens[self._at][1]!r}")
        return Claim(tuple(sides), tuple(relations))

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooLarge(f"the expression is nested more than {MAX_DEPTH} deep")
        node = self._term()
        while operator := self._take("+", "-", "−"):
            right, percentage = self._term(), self._is_percentage(node)
            if self._is_percentage(right) and not percentage:
                raise MathSyntaxError(
                    "'a + b%' may add a share of a, or a number: write 'a * (1 + b/100)' or 'a + b/100'")
            node = self._apply("add" if operator == "+" else "sub", node, right)
            if percentage:
                self._percentages.append(node)
        self._depth -= 1
        return node

    def _is_percentage(self, node: Node) -> bool:
        return any(node is p for p in self._percentages)

    def _term(self) -> Node:
        node = self._unary()
        divided = False
        while True:
            if self._take("*", "×", "·"):
                node, divided = self._apply("mul", node, self._unary()), False
            elif self._take("/", "÷"):
                node, divided = self._apply("div", node, self._unary()), True
            elif self._peek("%") and self._operand_follows(1):
                self._at += 1
                node = self._apply("mod", node, self._unary())
            elif self._word("mod") and self._operand_follows(1):
                self._at += 1
                node = self._apply("mod", node, self._unary())
            elif self._operand_follows(0) and not self._word("mod"):
                if divided:
                    raise MathSyntaxError("'1/2x' may be 1/(2x) or (1/2)x: write the parentheses")
                node = self._apply("mul", node, self._power())  # 2x, (x+1)(x-1)
            else:
                return node

    def _word(self, word: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("name", word)

    def _operand_follows(self, ahead: int) -> bool:
        at = self._at + ahead
        if at >= len(self._tokens):
            return False
        kind, text = self._tokens[at]
        if kind == "number":
            return ahead > 0
        return kind == "name" or text in ("(", "√")

    def _unary(self) -> Node:
        signs = 0
        while operator := self._take("-", "−", "+"):
            signs += operator != "+"
        node = self._power()
        if signs % 2:
            percentage = self._is_percentage(node)
            node = self._apply("neg", node)
            if percentage:
                self._percentages.append(node)
        return node

    def _power(self) -> Node:
        node = self._postfix()
        if self._take("^", "**"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise TooLarge(f"the expression is nested more than {MAX_DEPTH} deep")
            node = self._apply("pow", node, self._unary())
            self._depth -= 1
        return node

    def _postfix(self) -> Node:
        node = self._atom()
        while self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind == "sup":
                self._at += 1
                node = self._apply("pow", node, Number(Decimal(text.translate(_SUPERSCRIPTS))))
            elif text == "!" and kind == "op":
                self._at += 1
                node = self._apply("factorial", node)
            elif text == "%" and kind == "op" and not self._operand_follows(1):
                self._at += 1
                node = self._apply("div", node, Number(Decimal(100)))
                self._percentages.append(node)
            else:
                break
        return node

    def _atom(self) -> Node:
        if self._at >= len(self._tokens):
            raise MathSyntaxError("the expression ends where a value is wanted")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return self._number(text)
        if kind == "name":
            return self._name(text)
        if text == "(":
            node = self._sum()
            self._need(")")
            return Name(node.name, grouped=True) if isinstance(node, Name) else node
        if text == "|":
            node = self._sum()
            self._need("|")
            return self._apply("abs", node)
        if text == "[" and self._peek("["):
            return self._matrix()
        if text == "√":
            node = self._apply("sqrt", self._postfix())
            if self._peek("^", "**"):
                raise MathSyntaxError("'√a^b' may be √(a^b) or (√a)^b: write the parentheses")
            return node
        raise MathSyntaxError(f"unexpected {text!r}")

    def _matrix(self) -> Node:
        """Return the matrix of rows in brackets, whose outer bracket was taken."""
        rows: list[Node] = []
        while not rows or self._take(","):
            self._need("[")
            entries = [self._sum()]
            while self._take(","):
                entries.append(self._sum())
            self._need("]")
            rows.append(self._apply("row", *entries))
        self._need("]")
        return self._apply("matrix", *rows)

    def _number(self, text: str) -> Node:
        text = text.replace("_", "")
        mantissa, _, exponent = text.lower().partition("e")
        if len(mantissa) > MAX_DIGITS or (exponent and abs(int(exponent[:6])) > MAX_DIGITS):
            raise TooLarge(f"a number has more than {MAX_DIGITS} digits")
        return Number(Decimal(text))

    def _name(self, text: str) -> Node:
        if text in FUNCTIONS and (self._peek("(") or FUNCTIONS[text] in _PREFIX):
            return self._call(FUNCTIONS[text])
        if text in CONSTANTS:
            return Name(CONSTANTS[text])
        if text.lower() in _NOT_NUMBERS:
            raise MathSyntaxError(f"{text!r} is not a number, and nothing is equal to it")
        if self._peek("(") and (len(text) > 1 or text in "fgh"):
            raise MathSyntaxError(f"the function {text!r} is not known")
        if len(text) > 32:
            raise MathSyntaxError(f"the name {text[:12]!r}… is too long")
        if any(not (c.isalpha() or c == "_" or (c.isascii() and c.isdigit())) for c in text):
            raise MathSyntaxError(f"{text!r} is not a name: write numbers with digits")
        if begun := next((
            f for f in sorted(_PREFIX, key=len, reverse=True) if text.startswith(f) and len(text) - len(f) == 1), None):
            raise MathSyntaxError(f"{text!r} may be a name or a function: write {begun}({text[len(begun) :]})")
        return Name("var:" + text)

    def _call(self, function: str) -> Node:
        exponent: Node | None = None
        if self._take("^", "**"):
            exponent = self._atom()
        elif self._at < len(self._tokens) and self._tokens[self._at][0] == "sup":
            exponent = Number(Decimal(self._tokens[self._at][1].translate(_SUPERSCRIPTS)))
            self._at += 1
        if self._take("("):
            arguments = [self._sum()]
            while self._take(","):
                arguments.append(self._sum())
            self._need(")")
        else:
            arguments = [self._power()]  # sin x
            if function == "sqrt" and isinstance(arguments[0], Apply) and arguments[0].function == "pow":
                raise MathSyntaxError("'sqrt a^b' may be sqrt(a^b) or sqrt(a)^b: write the parentheses")
            while self._operand_follows(0) and self._tokens[self._at][1] not in FUNCTIONS:
                arguments = [self._apply("mul", arguments[0], self._power())]
        low, high = ARITY.get(function, (1, 1))
        if not low <= len(arguments) <= high:
            raise MathSyntaxError(
                f"{function} takes {low if low == high else f'{low} to {high}'} argument(s), not {len(arguments)}")
        node: Node = self._apply(function, *arguments)
        return self._apply("pow", node, exponent) if exponent is not None else node


ARITY = {
    "log": (1, 2), "root": (2, 2), "gcd": (2, 20), "lcm": (2, 20), "binomial": (2, 2), "min": (1, 20), "max": (1, 20),
    "atan2": (2, 2),
    "diff": (1, 3), "integral": (1, 4), "limit": (3, 4), "sum": (4, 4), "product": (4, 4), "mod": (2, 2),
    "round": (1, 2), "pow": (2, 2),
}  # fmt: skip

_NOT_NUMBERS = frozenset("inf infinity nan none null nil undefined true false na".split())
_PREFIX = frozenset(("sin cos tan cot sec csc sinh cosh tanh asin acos atan ln log sqrt exp").split())
