"""Several engines on one claim: only what engines that are really independent agree on."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import z3
from mpmath import iv

from qwed_new.engines import english_math
from qwed_new.engines.claims import verify
from qwed_new.engines.math.grammar import parse
from qwed_new.engines.math.tree import Claim, Name, Node, Number
from qwed_new.limits import TimeLimit, limited
from qwed_new.verdict import Status, Verdict

ENGINE = "consensus"
MODES = {"single": 1, "high": 2, "maximum": 3}
SECONDS = 20.0
# The confidence in a verdict on which so many engines agree.
_CONFIDENCE = (Fraction(0), Fraction(9, 10), Fraction(19, 20), Fraction(99, 100))


class _NotFor(ValueError):
    """This engine does not know that kind of claim."""


def verify_consensus(query: str, mode: str = "single", min_confidence: float | str | Decimal = 0.8) -> Verdict:
    """Decide a claim by 1, 2 or 3 engines (`single`, `high`, `maximum`) that share no code: SymPy, Z3, interval and
    rational arithmetic.

    VERIFIED needs all engines that were asked for to decide, to agree, and `confidence` to reach min_confidence;
    one refutation is ERROR. Engines that do not know the kind of claim are named, and do not count.
    """
    if mode not in MODES:
        return Verdict(Status.UNKNOWN, ENGINE, f"the mode {mode!r} is not one of {', '.join(MODES)}", confidence=0.0)
    try:
        wanted = Fraction(str(min_confidence))
    except (ValueError, ZeroDivisionError):
        wanted = Fraction(2)
    if not 0 <= wanted <= 1:
        return Verdict(Status.UNKNOWN, ENGINE, "min_confidence is from 0 to 1", confidence=0.0)
    first = verify(query)
    votes: dict[str, bool | None] = {str(first.get("query_type", "auto")) + " (" + first["engine"] + ")": _vote(first)}
    if first["status"] == "BLOCKED":
        return Verdict(Status.BLOCKED, ENGINE, first["message"], {"votes": votes}, confidence=0.0, engines_used=1)
    left_out: dict[str, str] = {}
    if MODES[mode] > 1 and votes[next(iter(votes))] is not None:
        claim = _claim(query)
        for name, decide in _INDEPENDENT.items():
            if len(votes) >= MODES[mode]:
                break
            try:
                votes[name] = limited(SECONDS, decide, claim)
            except (ValueError, ArithmeticError, z3.Z3Exception, RecursionError) as error:
                left_out[name] = str(error) or type(error).__name__
            except TimeLimit:
                left_out[name] = "its time was over"
    return _conclude(votes, left_out, MODES[mode], wanted)


def _vote(verdict: Verdict) -> bool | None:
    return True if verdict["status"] == "VERIFIED" else False if verdict["status"] == "ERROR" else None


def _conclude(votes: dict[str, bool | None], left_out: dict[str, str], needed: int, wanted: Fraction) -> Verdict:
    decided = {name: vote for name, vote in votes.items() if vote is not None}
    agree = len(set(decided.values())) == 1
    confidence = float(_CONFIDENCE[len(decided)]) if agree else 0.0
    evidence = {"votes": votes, "left_out": left_out, "engines_wanted": needed}
    fields: dict[str, Any] = {"confidence": confidence, "engines_used": len(decided)}
    if decided and not agree:
        return Verdict(Status.INCONCLUSIVE, ENGINE, "the engines disagree", evidence, **fields)
    if decided and not next(iter(decided.values())):
        return Verdict(Status.ERROR, ENGINE, f"refuted by {', '.join(decided)}", evidence, **fields)
    if len(decided) < needed:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"{len(decided)} of {needed} engines decided", evidence, **fields)
    if Fraction(str(confidence)) < wanted:
        return Verdict(
            Status.INCONCLUSIVE, ENGINE, f"the confidence {confidence} is below {float(wanted)}", evidence, **fields)
    return Verdict(Status.VERIFIED, ENGINE, f"{len(decided)} engine(s) agree: {', '.join(decided)}", evidence, **fields)


def _claim(query: str) -> Claim:
    translated = english_math.translate(query)
    text = query
    try:
        return parse(query)
    except ValueError:
        if translated is None:
            raise _NotFor("the claim is not arithmetic") from None
        text, question = translated
    if question:
        value = verify(query).get("value")
        text = f"{text} = {value}"
    return parse(text)


def _by_z3(claim: Claim) -> bool:
    """The claim over the real numbers: valid, or refuted by a model."""
    symbols: dict[str, Any] = {}
    extra: list[Any] = []
    terms = [_z3_term(side, symbols, extra) for side in claim.sides]
    compare = {
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    if not claim.relations or any(r not in compare for r in claim.relations):
        raise _NotFor("Z3 decides exact relations")
    holds = z3.And([compare[r](terms[i], terms[i + 1]) for i, r in enumerate(claim.relations)])
    solver = z3.Solver()
    solver.set("timeout", 5_000)
    solver.add(*extra)
    if solver.check() != z3.sat:
        raise _NotFor("the claim is defined nowhere over the real numbers")
    solver.add(z3.Not(holds))
    answer = solver.check()
    if answer == z3.unknown:
        raise _NotFor("the solver did not decide")
    return answer == z3.unsat


def _z3_term(node: Node, symbols: dict[str, Any], extra: list[Any]) -> Any:
    if isinstance(node, Number):
        return z3.RealVal(format(node.value, "f"))
    if isinstance(node, Name):
        if not node.name.startswith("var:"):
            raise _NotFor(f"Z3 knows no exact {node.name}")
        return symbols.setdefault(node.name, z3.Real(node.name[4:]))
    parts = [_z3_term(a, symbols, extra) for a in node.arguments]
    if node.function in ("add", "sub", "mul"):
        return {"add": lambda: parts[0] + parts[1], "sub": lambda: parts[0] - parts[1],
            "mul": lambda: parts[0] * parts[1]}[node.function]()
    if node.function == "neg":
        return -parts[0]
    if node.function == "div":
        extra.append(parts[1] != 0)
        return parts[0] / parts[1]
    if node.function == "abs":
        return z3.If(parts[0] >= 0, parts[0], -parts[0])
    if node.function == "pow" and isinstance(node.arguments[1], Number) and node.arguments[1].value in range(0, 17):
        return z3.Product([parts[0]] * int(node.arguments[1].value)) if node.arguments[1].value else z3.RealVal(1)
    if node.function == "sqrt":
        root = z3.FreshReal("root")
        extra.extend([root >= 0, root * root == parts[0]])
        return root
    raise _NotFor(f"Z3 knows no {node.function}")


def _by_rationals(claim: Claim) -> bool:
    """A claim without variables in Python's fractions; roots by whole-number roots."""
    if not claim.relations:
        raise _NotFor("nothing is claimed")
    values = [_fraction(side) for side in claim.sides]
    compare: dict[str, Callable[[Fraction, Fraction], bool]] = {
        "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    }  # fmt: skip
    if any(r not in compare for r in claim.relations):
        raise _NotFor("fractions decide exact relations")
    return all(compare[r](values[i], values[i + 1]) for i, r in enumerate(claim.relations))


def _fraction(node: Node) -> Fraction:
    if isinstance(node, Number):
        return Fraction(node.value)
    if isinstance(node, Name):
        raise _NotFor("fractions are for claims without variables")
    parts = [_fraction(a) for a in node.arguments]
    if node.function == "pow":
        if parts[1].denominator != 1 or abs(parts[1]) > 500 or max(
            abs(parts[0].numerator), parts[0].denominator).bit_length() > 2_000:
            raise _NotFor("the power is not a fraction")
        return parts[0] ** int(parts[1])
    if node.function == "sqrt":
        return Fraction(_root(parts[0].numerator), _root(parts[0].denominator))
    simple: dict[str, Callable[..., Fraction]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "neg": lambda a: -a,
        "abs": abs,
    }
    if node.function not in simple:
        raise _NotFor(f"fractions know no {node.function}")
    return simple[node.function](*parts)


def _root(n: int) -> int:
    import math

    if n < 0 or math.isqrt(n) ** 2 != n:
        raise _NotFor("the root is not a fraction")
    return math.isqrt(n)


def _by_intervals(claim: Claim) -> bool:
    """A claim without variables by intervals of 60 digits: refutes equalities, decides orders."""
    iv.dps = 60
    values = [_interval(side) for side in claim.sides]
    results = []
    for i, relation in enumerate(claim.relations):
        difference = values[i] - values[i + 1]
        apart = not (difference.a <= 0 <= difference.b)
        if relation in ("=", "!=") and apart:
            results.append(relation == "!=")
        elif relation in ("<", "<=", ">", ">=") and apart:
            results.append((difference.b < 0) == (relation[0] == "<"))
        else:
            raise _NotFor("the intervals overlap")
    if not results:
        raise _NotFor("nothing is claimed")
    return all(results)


def _interval(node: Node) -> Any:
    if isinstance(node, Number):
        return iv.mpf(str(node.value))
    if isinstance(node, Name):
        if node.name in ("pi", "e"):
            return {"pi": iv.pi, "e": iv.e}[node.name] + 0
        raise _NotFor("intervals are for claims without variables")
    parts = [_interval(a) for a in node.arguments]
    simple: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
        "neg": lambda a: -a,
        "sqrt": iv.sqrt, "exp": iv.exp, "ln": iv.log, "sin": iv.sin, "cos": iv.cos, "pow": lambda a, b: a**b,
    }  # fmt: skip
    if node.function not in simple:
        raise _NotFor(f"intervals know no {node.function}")
    return simple[node.function](*parts)


_INDEPENDENT: dict[str, Callable[[Claim], bool]] = {
    "Z3": _by_z3,
    "rational arithmetic": _by_rationals,
    "interval arithmetic": _by_intervals,
}
