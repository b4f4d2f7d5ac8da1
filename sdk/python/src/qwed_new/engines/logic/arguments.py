"""Decide whether a conclusion follows from premises: with a proof by refutation, or a counter-model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from qwed_new.engines.logic import two_readings
from qwed_new.engines.logic.constraints import ENGINE, SECONDS, new_solver, why_unknown
from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree, show
from qwed_new.engines.logic.english import Statements, sentences
from qwed_new.engines.logic.first_order import all_are_persons, exist, opposites
from qwed_new.engines.logic.sorts import INT, REAL, SortError
from qwed_new.engines.logic.terms import core_of, value_of
from qwed_new.limits import NotText, TooLarge
from qwed_new.plain_text import confusable
from qwed_new.verdict import Status, Verdict

MAX_PREMISES = 200


def verify_logic_statement(
    premises: Sequence[str] | str, conclusion: str | None = None, seconds: float = SECONDS) -> Verdict:
    """Decide whether conclusion follows from premises.

    A statement is QWED-Logic, an infix formula (`p -> q`, `x > 5`), or English of the forms
    that docs/verify.md lists. Texts that are not equal after normalisation are different
    propositions. A single text without a conclusion is decided as a query of QWED-Logic.
    """
    if conclusion is None:
        from qwed_new.engines.logic.constraints import verify_logic

        return verify_logic(premises if isinstance(premises, str) else " ".join(premises), seconds)
    if reason := confusable(t for t in [conclusion, *([premises] if isinstance(premises, str) else premises)]
        if isinstance(t, str)):
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"a statement is not understood: {reason}")
    try:
        return _decide([premises] if isinstance(premises, str) else list(premises), conclusion, seconds)
    except (LogicSyntaxError, NotText, TypeError) as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"a statement is not understood: {error}")
    except SortError as error:
        return Verdict(Status.ERROR, ENGINE, f"the statements are ill-typed: {error}")
    except TooLarge as error:
        return Verdict(Status.BLOCKED, ENGINE, str(error))
    except (z3.Z3Exception, RecursionError, ValueError) as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"the engine failed: {type(error).__name__}")


def _decide(premises: list[str], conclusion: str, seconds: float) -> Verdict:
    if len(premises) > MAX_PREMISES:
        raise TooLarge(f"there are more than {MAX_PREMISES} premises")
    premises = [s for p in premises for s in (sentences(p) if isinstance(p, str) else [p])]
    statements = Statements([*premises, conclusion])
    trees = [statements.read(p) for p in [*premises, conclusion]]
    assumptions = statements.assumptions(trees)
    premises, trees = premises + [t for t, _ in assumptions], [*trees[:-1], *(t for _, t in assumptions), trees[-1]]
    verdicts: list[Verdict] = []
    for read in two_readings.readings(trees):
        verdicts.append(_decide_sorts(statements, read, premises, seconds))
        if verdicts[-1]["status"] != verdicts[0]["status"]:
            message = (
                "whether the conclusion follows depends on how a sentence is read: write apart what "
                f"{two_readings.texts(trees)[0][:100]!r} states")
            return Verdict(Status.INCONCLUSIVE, ENGINE, message, verdicts[0]["evidence"])
    return verdicts[0]


def _decide_sorts(statements: Statements, trees: list[Tree], premises: list[str], seconds: float) -> Verdict:
    """The verdict for whole numbers, and for real ones if the sort of a variable was only assumed."""
    whole, assumed = _decide_for(statements, trees, premises, seconds, INT)
    if not assumed or whole["status"] == "INCONCLUSIVE":
        return whole
    real, _ = _decide_for(statements, trees, premises, seconds, REAL)
    if real["status"] == whole["status"]:
        return whole
    message = f"for whole numbers {whole['message']}; for real numbers {real['message']}"
    return Verdict(Status.INCONCLUSIVE, ENGINE, message, whole["evidence"])


def _decide_for(statements: Statements, trees: list[Tree], premises: list[str], seconds: float, numbers: str) -> tuple[
    Verdict, bool]:
    """The verdict when numbers are of that sort, and whether that was only assumed of a variable."""
    terms, nonzero, assumed = statements.compile(trees, numbers)
    evidence: dict[str, Any] = {
        "premises": [show(t) for t in trees[:-1]],
        "conclusion": show(trees[-1]),
        "propositions": statements.propositions,
        "method": "Z3: premises and the negated conclusion",
    }
    verdict = _prove(trees, premises, terms, nonzero, evidence, seconds)
    if verdict["status"] == "ERROR" and "counterexample" in verdict and (
        doubts := _doubts(statements, trees, terms, nonzero, seconds)):
        message = f"the conclusion was not derived, and that it does not follow is not certain: {'; '.join(doubts[:3])}"
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, {**evidence, "not_understood": doubts[:10]}), assumed
    return verdict, assumed


def _doubts(statements: Statements, trees: list[Tree], terms: list[Any], conditions: list[Any], seconds: float) -> list[
    str]:
    """Return the words because of which a counterexample may be none."""
    doubts = statements.doubts(trees)
    for axioms, doubt in (
        (opposites(trees), "words with the prefixes 'un-', 'in-' and 'non-'"),
        (all_are_persons(trees), "who is a person is not stated"),
        (exist(statements.kinds()), f"whether there is a {min(statements.kinds(), default='')!r} is not stated")):
        solver = new_solver(seconds)
        solver.add(*conditions, *axioms, *terms[:-1], z3.Not(terms[-1]))
        if axioms and solver.check() != z3.sat:
            doubts.append(doubt)
    return doubts


def _prove(
    trees: list[Tree], premises: list[str], terms: list[Any], nonzero: list[Any], evidence: dict[str, Any],
    seconds: float
) -> Verdict:
    solver = new_solver(seconds)
    solver.add(*nonzero)
    if nonzero and solver.check() == z3.unsat:
        return Verdict(Status.INCONCLUSIVE, ENGINE, "a statement divides by zero and has no value", evidence)
    names: dict[str, str] = {}
    for i, (term, text) in enumerate(zip(terms[:-1], premises, strict=True)):
        names[f"premise#{i}"] = text
        solver.assert_and_track(term, f"premise#{i}")
    consistent = solver.check()
    if consistent == z3.unsat:
        core = core_of(solver, names)
        message = "the premises contradict each other, so that anything would follow"
        return Verdict(Status.ERROR, ENGINE, message, {**evidence, "unsat_core": core})
    solver.assert_and_track(z3.Not(terms[-1]), "conclusion#")
    answer = solver.check()
    if answer == z3.unsat:
        if consistent != z3.sat:
            return Verdict(
                Status.INCONCLUSIVE, ENGINE, "the conclusion follows, but whether the premises agree was not decided",
                evidence)
        used = core_of(solver, names)
        return Verdict(
            Status.VERIFIED, ENGINE, "the conclusion follows from the premises", {**evidence, "used_premises": used})
    if answer == z3.sat and (opaque := _opaque(trees[-1]) - {p for t in trees[:-1] for p in _opaque(t)}):
        message = f"the conclusion does not follow by its form, and its text is not understood: {min(opaque)!r}"
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, evidence)
    if answer == z3.sat:
        model = solver.model()
        values = {d.name(): value_of(model[d]) for d in model.decls() if d.arity() == 0 and "#" not in d.name()}
        message = "the conclusion does not follow: the premises can be true while it is false"
        return Verdict(Status.ERROR, ENGINE, message, {**evidence, "counterexample": values}, counterexample=values)
    return Verdict(Status.INCONCLUSIVE, ENGINE, f"the solver did not decide: {why_unknown(solver)}", evidence)


def _opaque(tree: Tree) -> set[str]:
    """The texts of several words that the grammar keeps as one proposition."""
    if isinstance(tree, Form) and tree.head in ("PROP", "CAUSE"):
        return {a.text for a in tree.arguments if isinstance(a, Atom)}
    return {p for a in tree.arguments for p in _opaque(a)} if isinstance(tree, Form) else set()
