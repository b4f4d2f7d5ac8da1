"""The logic engine."""

from __future__ import annotations

import pytest

from qwed_new.engines.logic import verify_logic
from qwed_new.engines.logic_engine import verify_logic_statement


@pytest.mark.row("P-009")
def test_the_documents_query_has_a_model() -> None:
    verdict = verify_logic("(AND (GT x 5) (LT y 10))")
    assert verdict.verified and verdict.model["x"] > 5 and verdict.model["y"] < 10
    assert verdict.evidence["sorts"] == {"x": "Int", "y": "Int"}


@pytest.mark.row("P-009")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("(AND (GT x 5) (LT x 6))", "INCONCLUSIVE"), ("(AND (GT x 5) (LT x 6) (EQ (MOD x 1) 0))", "ERROR"),
        ("(AND (GT x 5.0) (LT x 6))", "VERIFIED"), ("(IFF p (NOT p))", "ERROR"),
        ("(EQ (DIV 7 2) z)", "VERIFIED"), ("(EQ (DIV x 0) 1)", "ERROR"), ("(FORALL x (EXISTS y (GT y x)))", "VERIFIED"),
        ("(EXISTS x (FORALL y (GT x y)))", "ERROR"), ("(FORALL x (IMPLIES (GT x 2) (GT (MULT x x) 4)))", "VERIFIED"),
        ("(EXISTS (x y) (EQ (PLUS (MULT x x) (MULT y y)) 25))", "VERIFIED"), ('(EQ name "bob")', "VERIFIED"),
        ("(XOR p p)", "ERROR"),
        ("(DISTINCT a b c)", "VERIFIED"), ("(AND (EQ (MOD x 7) 3) (GT x 100))", "VERIFIED"),
        ("(ITE p (GT x 1) (LT x 1))", "VERIFIED"),
        ("(AND p (GT p 3))", "ERROR"), ("(GT x", "INCONCLUSIVE"), ("(foo x y)", "INCONCLUSIVE"), ("", "INCONCLUSIVE"),
        (")", "INCONCLUSIVE"),
        ("__import__('os').system('id')", "INCONCLUSIVE"), ("(" * 500 + "x" + ")" * 500, "BLOCKED"),
        ("(AND " + "p " * 9000 + ")", "BLOCKED"),
    ],
    ids=lambda v: v[:32],
)  # fmt: skip
def test_queries(query: str, status: str) -> None:
    verdict = verify_logic(query)
    assert verdict.status == status, verdict
    assert status == "VERIFIED" or verdict.model is None


@pytest.mark.row("P-009")
def test_contradictions_come_with_their_core() -> None:
    verdict = verify_logic("(AND (GT x 5) (LT x 3) (GT y 0))")
    assert sorted(verdict.unsat_core) == ["(GT x 5)", "(LT x 3)"]


def test_real_division_is_real() -> None:
    assert verify_logic("(EQ (DIV 7 2) z)").model == {"z": "7/2"}


def test_a_problem_that_never_ends_stops_at_the_limit() -> None:
    fermat = "(AND (GT a 0) (GT b 0) (GT c 0) (EQ (PLUS (POW a 3) (POW b 3)) (POW c 3)))"
    verdict = verify_logic(fermat, seconds=1)
    assert verdict.status == "INCONCLUSIVE" and "time limit" in verdict.message
    assert verify_logic("(GT x 5)").verified


@pytest.mark.row("Q-055", "Q-070")
@pytest.mark.parametrize(
    ("premises", "conclusion", "status"),
    [
        (["If it rains then the ground is wet", "It rains"], "The ground is wet", "VERIFIED"),
        (["If it rains then the ground is wet", "The ground is wet"], "It rains", "ERROR"),
        (["p -> q", "p"], "q", "VERIFIED"), (["p -> q", "q"], "p", "ERROR"), (["p -> q", "not q"], "not p", "VERIFIED"),
        (["Socrates is mortal"], "Socrates is immortal", "ERROR"),
        (["All men are mortal", "Socrates is a man"], "Socrates is mortal", "VERIFIED"),
        (["All men are mortal", "Socrates is mortal"], "Socrates is a man", "ERROR"),
        (["No fish are mammals", "All whales are mammals"], "No whales are fish", "VERIFIED"),
        (["Some cats are black"], "All cats are black", "ERROR"),
        (["All birds can fly", "Tweety is a bird"], "Tweety can fly", "VERIFIED"),
        (["A or B", "not A"], "B", "VERIFIED"), (["x > 5", "y > x"], "y > 3", "VERIFIED"),
        (["(IMPLIES p q)", "p"], "q", "VERIFIED"),
        (["If it rains, it is wet", "It does not rain"], "It is not wet", "ERROR"), (["p", "not p"], "q", "ERROR"),
        (["if p then q", "if q then r"], "if p then r", "VERIFIED"),
        (["Alle Menschen sind sterblich"], "Sokrates ist sterblich", "INCONCLUSIVE"),
        ([""], "p", "INCONCLUSIVE"), (["所有人都会死"], "苏格拉底会死", "INCONCLUSIVE"), ([], "p or not p", "VERIFIED"),
        ([], "p", "ERROR"),
    ],
    ids=str,
)  # fmt: skip
def test_arguments(premises: list[str], conclusion: str, status: str) -> None:
    verdict = verify_logic_statement(premises, conclusion)
    assert verdict["status"] == status, verdict


@pytest.mark.parametrize(
    ("premises", "conclusion", "status", "word"),
    [
        (["p <=> q", "p"], "q", "VERIFIED", ""), (["p ⇔ q", "q"], "p", "VERIFIED", ""),
        (["p <==> q", "p"], "q", "VERIFIED", ""), (["p ⟹ q", "p"], "q", "VERIFIED", ""),
        (["p <=> q"], "p", "ERROR", ""), (["T.f > 3"], "T.f > 2", "VERIFIED", ""),
        (["T.f > 3"], "U.f > 2", "ERROR", ""), (["T.f > 3"], "f > 2", "INCONCLUSIVE", "qualifier"),
        (["T.f > 3"], "t.f > 2", "INCONCLUSIVE", "capitals"), (["p\0"], "p", "INCONCLUSIVE", "without U+0000"),
    ],
)  # fmt: skip
def test_equivalences_and_qualified_names(premises: list[str], conclusion: str, status: str, word: str) -> None:
    """Issue 26: the notations of an equivalence, and names with a qualifier."""
    verdict = verify_logic_statement(premises, conclusion)
    assert verdict.status == status and word in verdict.message, verdict
