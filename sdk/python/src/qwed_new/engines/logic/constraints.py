"""Decide whether constraints can be met: with a model, or with a set of constraints that contradict each other."""

from __future__ import annotations

from typing import Any

import z3

from qwed_new.engines.logic.dsl import Form, LogicSyntaxError, Tree, parse, show
from qwed_new.engines.logic.sorts import INT, REAL, SortError, Sorts
from qwed_new.engines.logic.terms import Compiler, core_of, divides_by_quantified, divisors, value_of
from qwed_new.limits import NotText, TooLarge
from qwed_new.plain_text import confusable
from qwed_new.verdict import Status, Verdict

ENGINE = "logic"
SECONDS = 5.0


def verify_logic(query: str, seconds: float = SECONDS) -> Verdict:
    """Decide whether the constraints of a QWED-Logic query can be met.

    VERIFIED carries `model`; ERROR means that they contradict each other and carries
    `unsat_core`; a solver that gave up is INCONCLUSIVE.
    """
    try:
        if reason := confusable([query] if isinstance(query, str) else []):
            raise LogicSyntaxError(reason)
        tree = parse(query)
        return _decide(tree, seconds)
    except (LogicSyntaxError, NotText) as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"the query is not understood: {error}", model=None)
    except SortError as error:
        return Verdict(Status.ERROR, ENGINE, f"the query is ill-typed: {error}", model=None)
    except TooLarge as error:
        return Verdict(Status.BLOCKED, ENGINE, str(error), model=None)
    except (z3.Z3Exception, RecursionError, ValueError) as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"the query is not understood: {type(error).__name__}", model=None)


def _conjuncts(tree: Tree) -> list[Tree]:
    if isinstance(tree, Form) and tree.head == "AND":
        return [c for a in tree.arguments for c in _conjuncts(a)]
    return [tree]


def _decide(tree: Tree, seconds: float) -> Verdict:
    """Decide for whole numbers, and also for real numbers if that sort was only assumed and could matter."""
    whole, assumed = _decide_for(tree, seconds, INT)
    if not assumed or whole["status"] == "INCONCLUSIVE" or (whole["status"] == "VERIFIED" and not _quantified(tree)):
        return whole
    real, _ = _decide_for(tree, seconds, REAL)
    if real["status"] == whole["status"]:
        return whole
    message = (
        f"for whole numbers {whole['message']}, for real numbers {real['message']}: write a number with decimals "
        "(0.0) where real numbers are meant, (EQ (MOD x 1) 0) where whole ones are"
    )
    return Verdict(
        Status.INCONCLUSIVE, ENGINE, message, {**whole["evidence"], "whole": whole["status"], "real": real["status"]},
        model=None
    )


_MAX_BOUNDS = 20  # conjuncts whose bounds a model keeps to
_NEAREST = {"GT": 1, "GTE": 0, "LT": -1, "LTE": 0}  # from a bound to the nearest whole number


def _decide_for(tree: Tree, seconds: float, numbers: str) -> tuple[Verdict, bool]:
    """The verdict when numbers are of that sort, and whether that was only assumed of a variable."""
    sorts = Sorts(numbers)
    sorts.infer(tree)
    if divides_by_quantified(tree):
        raise LogicSyntaxError("division by a quantified variable is not decided: it has no value where that is zero")
    verdict = _solve(tree, seconds, sorts)
    return verdict, sorts.assumed


def _solve(tree: Tree, seconds: float, sorts: Sorts) -> Verdict:
    compiler = Compiler(sorts)
    conjuncts = _conjuncts(tree)
    solver = new_solver(seconds / 2 if _quantified(tree) else seconds)
    names: dict[str, str] = {}
    for i, conjunct in enumerate(conjuncts):
        label = z3.Bool(f"constraint#{i}")
        names[label.decl().name()] = show(conjunct)
        solver.assert_and_track(compiler.compile(conjunct), label)
    for i, divisor in enumerate(divisors(tree)):
        label = z3.Bool(f"divisor#{i}")
        names[label.decl().name()] = f"(NEQ {show(divisor)} 0)"
        solver.assert_and_track(compiler.compile(divisor) != 0, label)
    found = {name: sorts.of(name) for name in sorted(compiler.variables)}
    evidence: dict[str, Any] = {"parsed": show(tree), "method": "Z3", "sorts": found}
    answer = solver.check()
    if answer == z3.unknown and _quantified(tree):
        eliminated = z3.Then("simplify", "qe", "smt").solver()
        eliminated.set("timeout", int(seconds * 500))
        for conjunct in conjuncts:
            eliminated.add(compiler.compile(conjunct))
        for divisor in divisors(tree):
            eliminated.add(compiler.compile(divisor) != 0)
        solver, answer = eliminated, eliminated.check()
        evidence["method"] = "Z3 after elimination of quantifiers"
        if answer == z3.unsat:
            message = "the constraints contradict each other"
            core = list(names.values())
            return Verdict(
                Status.ERROR, ENGINE, message, {**evidence, "unsat_core": core}, model=None, unsat_core=core,
                satisfiable=False)
    if answer == z3.sat:
        model = _tight(solver, conjuncts, compiler)
        values = {
            name: value_of(model.eval(term, model_completion=True)) for name,
            term in sorted(compiler.variables.items())}
        if not _holds(solver, model):
            return Verdict(Status.INCONCLUSIVE, ENGINE, "the solver's model could not be checked", evidence, model=None)
        return Verdict(
            Status.VERIFIED, ENGINE, "the constraints can be met", {**evidence, "model": values}, model=values,
            satisfiable=True)
    if answer == z3.unsat:
        core = core_of(solver, names)
        message = "the constraints contradict each other"
        return Verdict(
            Status.ERROR, ENGINE, message, {**evidence, "unsat_core": core}, model=None, unsat_core=core,
            satisfiable=False)
    return Verdict(
        Status.INCONCLUSIVE, ENGINE, f"the solver did not decide: {why_unknown(solver)}", evidence, model=None)


def _tight(solver: z3.Solver, conjuncts: list[Tree], compiler: Compiler) -> z3.ModelRef:
    """Return a model in which whole numbers are as near to the bounds that are written for them as they can be."""
    model = solver.model()
    for conjunct in conjuncts[:_MAX_BOUNDS]:
        if not isinstance(conjunct, Form) or len(conjunct.arguments) != 2 or conjunct.head not in _NEAREST:
            continue
        left, right = (compiler.compile(a) for a in conjunct.arguments)
        step = _NEAREST[conjunct.head]
        if z3.is_int_value(left):
            left, right, step = right, left, -step
        if not (z3.is_const(left) and z3.is_int(left) and not z3.is_int_value(left) and z3.is_int_value(right)):
            continue
        solver.push()
        solver.add(left == right + step)
        if solver.check() == z3.sat:
            model = solver.model()
        else:
            solver.pop()
    return model


def _quantified(tree: Tree) -> bool:
    return isinstance(tree, Form) and (tree.head in ("FORALL", "EXISTS") or any(_quantified(a) for a in tree.arguments))


def why_unknown(solver: Any) -> str:
    """Why a solver gave up, in words."""
    reason = str(solver.reason_unknown())
    return "its time limit was reached" if reason in ("canceled", "timeout", "interrupted from keyboard") else reason


def _holds(solver: Any, model: Any) -> bool:
    """Whether a model makes every assertion without quantifiers true."""
    for assertion in solver.assertions():
        value = model.eval(assertion, model_completion=True)
        if z3.is_false(value):
            return False
    return True


def new_solver(seconds: float) -> Any:
    """A solver with limits of time and memory."""
    solver = z3.Solver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    solver.set("max_memory", 1_500)
    solver.set("random_seed", 0)
    return solver
