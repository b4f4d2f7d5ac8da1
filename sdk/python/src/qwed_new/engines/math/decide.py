"""Verdicts on mathematical claims and on results of operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from itertools import islice
from typing import Any

import sympy
from sympy import Expr, FiniteSet, Rational

from qwed_new.engines.math import grammar, matrices, readings, tree
from qwed_new.engines.math.build import Builder, Undefined, only_symbol
from qwed_new.engines.math.checks import Disagreement
from qwed_new.engines.math.domain import conditions, is_total
from qwed_new.engines.math.equality import Outcome, equal, is_real, points, sign_of, undefined_at, value_at
from qwed_new.engines.math.given import Given, separate
from qwed_new.engines.math.grammar import HostileText, MathSyntaxError
from qwed_new.engines.math.inequalities import Domain, decide_order, low_points
from qwed_new.engines.math.tree import Claim, Node, Number
from qwed_new.limits import TimeLimit, TooLarge, limited
from qwed_new.plain_text import confusable
from qwed_new.verdict import Status, Verdict

ENGINE = "math"
SECONDS = 10.0
OPERATIONS = ("derivative", "integral", "simplify", "solve", "evaluate")

_PLACES = re.compile(
    r"(?<![,\s(])[,\s(]*+(?:(?:rounded|correct|accurate)\s++)?to\s++(\d{1,2})\s*+"
    r"(?:decimal\s++places?|decimals?|d\.?\s?p\.?|places?)\s*+\)?\s*+\.?$", re.I
)
_TOLERANCE = re.compile(r"\s*(?:±|\+/-|\+-)\s*(\d+\.?\d*|\.\d+)\s*$")


def verify_math(expression: str, seconds: float = SECONDS) -> Verdict:
    """Decide a claim such as `x**2 + 2*x + 1 = (x+1)**2` or `2 + 2 < 5`.

    Equality is exact unless the claim contains a precision (`≈`, `to 4 decimal places`, `± 0.01`).
    An expression without a relation is not a claim and is INCONCLUSIVE, with its simplified form.
    """
    return _guarded(lambda: _verify_claim(expression), [expression], seconds)


def verify_math_expression(
    expression: str, claimed_result: str | None = None, operation: str | None = None, seconds: float = SECONDS
) -> Verdict:
    """Decide whether claimed_result is the result of an operation on expression.

    operation is derivative, integral, simplify, solve or evaluate. Without it, the two are
    compared. Without a claimed_result, expression is decided as a claim.
    """
    if claimed_result is None:
        return verify_math(expression, seconds)
    if operation is not None and operation not in OPERATIONS:
        return Verdict(Status.UNKNOWN, ENGINE, f"the operation {operation!r} is not one of {', '.join(OPERATIONS)}")
    decide = {"derivative": _derivative, "integral": _integral, "solve": _solve}.get(operation or "", _compare)
    return _guarded(lambda: decide(expression, claimed_result), [expression, claimed_result], seconds)


def _guarded(decide: Callable[[], Verdict], texts: list[str], seconds: float) -> Verdict:
    if reason := confusable(t for t in texts if isinstance(t, str)):
        return Verdict(Status.INCONCLUSIVE, ENGINE, reason)
    try:
        return limited(seconds, decide)
    except TimeLimit:
        return Verdict(
            Status.INCONCLUSIVE, ENGINE, f"not decided within {seconds:g} seconds", {"limit_seconds": seconds})
    except HostileText as hostile:
        return Verdict(Status.BLOCKED, ENGINE, str(hostile))
    except TooLarge as large:
        return Verdict(Status.BLOCKED, ENGINE, str(large), {"limit": str(large)})
    except Undefined as undefined:
        return Verdict(Status.ERROR, ENGINE, f"the expression has no value: {undefined}")
    except Disagreement as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, str(error))
    except MathSyntaxError as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"the text is not understood: {error}")
    except (RecursionError, MemoryError):
        return Verdict(Status.BLOCKED, ENGINE, "the expression is too deep")
    except Exception as error:  # an error of the algebra system decides nothing
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"the engine failed: {type(error).__name__}")


def _verdict(outcome: Outcome, parsed: str, **fields: object) -> Verdict:
    evidence = {"parsed": parsed, "method": outcome.method, **outcome.evidence}
    if outcome.holds is None:
        return Verdict(Status.INCONCLUSIVE, ENGINE, outcome.reason, evidence, **fields)
    if outcome.holds:
        excluded = outcome.evidence.get("excluded")
        message = "the claim holds" + (
            f", except at {', '.join(excluded)} where a side is undefined" if excluded else "")
        return Verdict(Status.VERIFIED, ENGINE, message, evidence, **fields)
    return Verdict(Status.ERROR, ENGINE, outcome.reason, evidence, **fields)


def _verify_claim(text: str) -> Verdict:
    text, tolerance = _precision(text)
    text, given = separate(text)
    claim = grammar.parse(text)
    shown = tree.show_claim(claim) + (f" for {given.text}" if given else "")
    if unknown := given.variables().difference(*(tree.variables(s) for s in claim.sides)):
        raise MathSyntaxError(f"the condition is about {min(unknown)!r}, which the claim does not have")
    if matrices.has_matrix(claim):
        return _verdict(matrices.decide(claim), shown)
    if not claim.relations:
        simplified = sympy.simplify(Builder(real=True).build(claim.sides[0]))
        message = "the expression claims nothing; it was simplified"
        return Verdict(
            Status.INCONCLUSIVE, ENGINE, message, {"parsed": shown}, simplified=str(simplified), value=str(simplified))
    if tolerance is not None:
        shown += f" ± {number_text(tolerance)}"
    claim = readings.with_values(readings.with_products(claim), given.values)
    worst = _worst(claim, tolerance, given)
    if worst.holds is not None:
        names = {n for side in claim.sides for n in tree.variables(side)}
        if advice := readings.word(text, names, refuted=not worst.holds):
            return Verdict(Status.INCONCLUSIVE, ENGINE, advice, {"parsed": shown})
        for other, advice in readings.others(claim, refuted=not worst.holds):
            if _worst(other, tolerance, given).holds is not worst.holds:
                return Verdict(
                    Status.INCONCLUSIVE, ENGINE, advice, {"parsed": shown, "other_reading": tree.show_claim(other)})
    return _verdict(worst, shown)


def _worst(claim: Claim, tolerance: Rational | None, given: Given) -> Outcome:
    """The outcome of the relation that decides a chain: one that is refuted, else one that is undecided."""
    outcomes = [_relation(claim, i, tolerance, given) for i in range(len(claim.relations))]
    return min(outcomes, key=lambda o: {False: 0, None: 1, True: 2}[o.holds])


def _precision(text: object) -> tuple[str, Rational | None]:
    if not isinstance(text, str):
        raise MathSyntaxError("the claim is not a text")
    if len(text) > grammar.MAX_TEXT:
        raise TooLarge(f"expression has {len(text)} characters, more than {grammar.MAX_TEXT}")
    if match := _PLACES.search(text):
        decimals = re.search(r"\.(\d+)\s*$", text[: match.start()])
        if decimals and len(decimals[1]) > int(match[1]):
            raise MathSyntaxError(f"the number has more decimals than the {match[1]} that the claim is about")
        return text[: match.start()], Rational(1, 2) / Rational(10) ** int(match[1])
    if match := _TOLERANCE.search(text):
        return text[: match.start()], Rational(match[1])
    return text, None


def _relation(claim: Claim, index: int, tolerance: Rational | None, given: Given) -> Outcome:
    left, right, relation = claim.sides[index], claim.sides[index + 1], claim.relations[index]
    if relation == "≈" or (relation == "=" and tolerance is not None):
        return _about(left, right, tolerance if tolerance is not None else _written_precision(right))
    if relation in ("=", "!="):
        if relation == "=":
            return _antiderivative(left, right, given) or equal(left, right, given)
        outcome = equal(left, right, given)
        if tree.variables(left) | tree.variables(right):
            return _unequal_everywhere(left, right, outcome, given)
        return Outcome(
            None if outcome.holds is None else not outcome.holds,
            outcome.method,
            outcome.reason or "the two sides are equal",
            outcome.evidence,
        )
    return _order(left, right, relation, given)


def _antiderivative(left: Node, right: Node, given: Given) -> Outcome | None:
    """Decide `integral(f, x) = F` by differentiating F, so that constants do not matter. Return None for other
    claims."""
    for side, other in ((left, right), (right, left)):
        if isinstance(side, tree.Apply) and side.function == "integral" and len(
            side.arguments) <= 2 and not tree.has_binder(other):
            body = side.arguments[0]
            symbol = side.arguments[1] if len(side.arguments) > 1 else tree.Name(
                f"var:{only_symbol(Builder(real=True).build(body))}")
            outcome = equal(tree.Apply("diff", (other, symbol)), body, given)
            outcome.method = f"the antiderivative was differentiated; {outcome.method}"
            return outcome
    return None


def _written_precision(node: Node) -> Rational:
    if isinstance(node, tree.Apply) and node.function == "neg":
        node = node.arguments[0]
    if isinstance(node, Number):
        exponent = node.value.as_tuple().exponent
        return Rational(1, 2) * Rational(10) ** (exponent if isinstance(exponent, int) else 0)
    raise MathSyntaxError("≈ wants a number on its right, whose digits say the precision, or '± tolerance'")


def _about(left: Node, right: Node, tolerance: Rational) -> Outcome:
    builder = Builder(real=True)
    a, b = builder.build(left), builder.build(right)
    if a.free_symbols or b.free_symbols:
        return Outcome(None, "none", "a claim about precision is decided for numbers only")
    sign = sign_of(tolerance - abs(a - b))
    evidence = {"left": str(a.evalf(20)), "right": str(b.evalf(20)), "tolerance": str(tolerance)}
    if not (is_real(a) and is_real(b)):
        return Outcome(None, "none", "a claim about precision is decided for real numbers only", evidence)
    if sign is None:
        return Outcome(
            None, "certain digits", "the difference is as large as the tolerance, as far as digits tell", evidence)
    return Outcome(
        sign >= 0, "certain digits",
        "" if sign >= 0 else "the two sides differ by more than the precision of the claim", evidence
    )


def _unequal_everywhere(left: Node, right: Node, outcome: Outcome, given: Given) -> Outcome:
    if outcome.holds:
        return Outcome(False, outcome.method, "the two sides are equal", outcome.evidence)
    builder = Builder(real=True)
    difference = builder.build(left) - builder.build(right)
    if difference.is_nonzero or difference.is_positive or difference.is_negative:
        return Outcome(True, "signs of the terms", "", {"domain": "real"})
    names = sorted(tree.variables(left) | tree.variables(right))
    for point in given.points(islice(points(names), 24)):
        a, b = value_at(left, builder.build(left), point), value_at(right, builder.build(right), point)
        if a is not None and b is not None and a == b:
            shown = {k: str(v) for k, v in point.items()}
            return Outcome(
                False, "exact evaluation at a point", "the two sides are equal at a point", {"counterexample": shown})
    for relation in (">", "<"):
        ordered = _order(left, right, relation, given)
        if ordered.holds:
            return ordered
    return Outcome(
        None, "signs of the terms", "no value was found at which the sides are equal, and no proof that there is none")


def _order(left: Node, right: Node, relation: str, given: Given) -> Outcome:
    builder = Builder(real=True)
    a, b = builder.build(left), builder.build(right)
    wanted = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}[relation]
    names = sorted(tree.variables(left) | tree.variables(right))
    if not names:
        if not (is_real(a) and is_real(b)):
            return Outcome(False, "evaluation", "complex numbers have no order")
        sign = sign_of(a - b)
        if sign is None:
            return Outcome(None, "certain digits", "the sides agree in all digits that were computed")
        return Outcome(
            sign in wanted, "certain digits", "" if sign in wanted else "the order is another",
            {"left": str(a), "right": str(b)}
        )
    checked = 0

    def fails_at(point: dict[str, Rational]) -> Outcome | None:
        nonlocal checked
        if not given.admits(point):
            return None
        x, y = value_at(left, a, point), value_at(right, b, point)
        if x is None or y is None or not (is_real(x) and is_real(y)):
            return None
        checked += 1
        sign = sign_of(x - y)
        if sign is None or sign in wanted:
            return None
        shown = {k: str(v) for k, v in point.items()}
        return Outcome(
            False, "exact evaluation at a point", "the claim fails at a point",
            {"counterexample": shown, "left": str(x), "right": str(y)})

    tried = list(given.points(islice(points(names), 40)))
    if len(names) == 1 and (a - b).free_symbols and not (tree.has_binder(left) or tree.has_binder(right)):
        tried += [p for point in low_points(a - b, relation, given) if given.admits(p := {names[0]: point})]
    for point in tried:
        if refuted := fails_at(point):
            return refuted
    for point in tried if given else ():
        if (value_at(left, a, point) is None) != (value_at(right, b, point) is None):
            return undefined_at(point)
    difference = sympy.factor(a - b) if relation[0] == ">" else sympy.factor(b - a)
    if difference.is_positive or ("=" in relation and difference.is_nonnegative):
        return Outcome(True, "signs of the factors", "", {"difference": str(difference), "domain": "real"})
    if not checked:
        return Outcome(None, "none", "no point was found at which both sides are defined")
    real = Builder(real=True)
    limits = [(real.build(node), relation) for side in (left, right) for node, relation in conditions(side)]
    total = is_total(left) and is_total(right) and not given
    outcome = decide_order(a - b, relation, Domain(total, [*limits, *given.conditions(real)], fails_at, given.whole))
    if outcome.holds and given:
        outcome.evidence["domain"] = f"real, {given.text}"
    return outcome


def _compare(expression: str, claimed: str) -> Verdict:
    claimed, tolerance = _precision(claimed)
    left, right = grammar.parse_expression(expression), grammar.parse_expression(claimed)
    parsed = tree.show_claim(Claim((left, right), ("=",)))
    outcome = _about(left, right, tolerance) if tolerance is not None else equal(left, right)
    return _verdict(outcome, parsed, **_computed(left))


def _computed(node: Node) -> dict[str, str]:
    value = Builder(real=True).build(node)
    return {"computed": str(sympy.simplify(value) if value.free_symbols else value)[:400]}


def _derivative(expression: str, claimed: str) -> Verdict:
    body, claim = grammar.parse_expression(expression), grammar.parse_expression(claimed)
    symbol = only_symbol(Builder(real=True).build(body))
    node = tree.Apply("diff", (body, tree.Name(f"var:{symbol}")))
    outcome = equal(node, claim)
    computed = sympy.diff(Builder(real=True).build(body), symbol)
    return _verdict(outcome, f"d/d{symbol} {tree.show(body)} = {tree.show(claim)}", computed=str(computed))


def _integral(expression: str, claimed: str) -> Verdict:
    body, claim = grammar.parse_expression(expression), grammar.parse_expression(claimed)
    names = Builder(real=True).build(body)
    symbol = only_symbol(names if names.free_symbols else Builder(real=True).build(claim))
    node = tree.Apply("diff", (claim, tree.Name(f"var:{symbol}")))
    outcome = equal(node, body)
    outcome.method = f"the claim was differentiated; {outcome.method}"
    return _verdict(outcome, f"d/d{symbol} {tree.show(claim)} = {tree.show(body)}")


def _solve(expression: str, claimed: str) -> Verdict:
    claim = grammar.parse(expression)
    if claim.relations not in ((), ("=",)):
        raise MathSyntaxError("solve takes an expression or one equation")
    builder = Builder()
    sides = [builder.build(s) for s in claim.sides]
    equation = sides[0] - (sides[1] if len(sides) > 1 else 0)
    symbol = only_symbol(equation)
    values = [builder.build(grammar.parse_expression(v)) for v in _solution_texts(claimed, str(symbol))]
    evidence: dict[str, object] = {
        "parsed": f"{equation} = 0",
        "method": "substitution and solution set",
        "claimed": [str(v) for v in values],
    }
    for value in values:
        if not _defined_at(claim.sides, str(symbol), value):
            message = f"{symbol} = {value} is not a solution: the equation is not defined there"
            return Verdict(Status.ERROR, ENGINE, message, {**evidence, "counterexample": {str(symbol): str(value)}})
        rest = equation.subs(symbol, value)
        if sympy.simplify(rest) != 0:
            message = f"{symbol} = {value} is not a solution"
            return Verdict(
                Status.ERROR, ENGINE, message,
                {**evidence, "counterexample": {str(symbol): str(value), "left_minus_right": str(rest)}}
            )
    domain = sympy.S.Complexes if any(v.has(sympy.I) for v in values) else sympy.S.Reals
    solutions = sympy.solveset(equation, symbol, domain)
    evidence["domain"] = str(domain)
    if not isinstance(solutions, FiniteSet | type(sympy.S.EmptySet)):
        return Verdict(
            Status.INCONCLUSIVE, ENGINE, "each value is a solution; whether there are more was not decided", evidence)
    solutions = FiniteSet(*(s for s in solutions if _defined_at(claim.sides, str(symbol), s)))
    computed = [str(s) for s in sorted(solutions, key=str)]
    missing = [s for s in solutions if not any(sympy.simplify(s - v) == 0 for v in values)]
    if missing:
        return Verdict(
            Status.ERROR, ENGINE, f"a solution is missing: {symbol} = {missing[0]}",
            {**evidence, "solutions": computed}, computed=computed
        )
    return Verdict(
        Status.VERIFIED, ENGINE, "these are all solutions", {**evidence, "solutions": computed}, computed=computed)


def _defined_at(sides: tuple[Node, ...], name: str, value: Expr) -> bool:
    """Report whether the sides, as they are written, are defined for a value of a variable."""
    try:
        return all(_With(name, value).build(side) is not None for side in sides)
    except Undefined:
        return False


class _With(Builder):
    """Builds with one variable replaced by a value."""

    def __init__(self, name: str, value: Expr) -> None:
        super().__init__()
        self._name, self._value = name, value

    def symbol(self, name: str) -> Any:
        return self._value if name == self._name else super().symbol(name)


def _solution_texts(claimed: str, symbol: str) -> list[str]:
    text = claimed.strip()
    if re.fullmatch(r"(?:\{\s*\}|\[\s*\]|∅|none|no (?:real )?solutions?|empty set)", text, re.I):
        return []
    text = text.strip("{}[]")
    if text.startswith("(") and text.endswith(")") and "," in text:
        text = text[1:-1]
    text = re.sub(rf"\b{re.escape(symbol)}\s*(?:=|∈|in\b)\s*", "", text).strip("{}[] ")
    parts = [p.strip() for p in re.split(r",|;|\bor\b|\band\b|∨", text) if p.strip()]
    out: list[str] = []
    for part in parts:
        if match := re.match(r"(.*)(?:±|\+/-|\+-)(.*)", part):
            base = match[1].strip()
            out += [f"{base} + ({match[2]})" if base else match[2], f"{base} - ({match[2]})"]
        else:
            out.append(part)
    return out


def number_text(value: Expr) -> str:
    """A number as people write it: a terminating fraction as a decimal."""
    if isinstance(value, Rational):
        q = value.q
        for prime in (2, 5):
            while q % prime == 0:
                q //= prime
        if q == 1 and value.q != 1:
            return format((Decimal(value.p) / Decimal(value.q)).normalize(), "f")
    return str(value)
