"""What QWED-Logic does not accept (issue 26.7): values that are not numbers, operators as names, comments, wrong
sorts."""

from __future__ import annotations

import pytest

from qwed_new.engines.claims import verify
from qwed_new.engines.logic import verify_logic
from qwed_new.engines.logic_engine import verify_logic_statement
from qwed_new.engines.math import verify_math
from qwed_new.verdict import Verdict

VALUES = "NaN nan inf Inf Infinity None none NULL null nil undefined NA".split()
OPERATORS = (
    "AND OR NOT IMPLIES IFF XOR GT LT GTE LTE EQ NEQ PLUS MINUS MULT DIV MOD POW ITE FORALL EXISTS IN "
    "and or not Not If").split()


@pytest.mark.parametrize("word", [*VALUES, *OPERATORS])
@pytest.mark.parametrize(
    "query", [
        "(EQ x {})", "(EQ {} {})", "(GT {} 5)", "(AND p (NEQ {} 1))", "(EXISTS (x) (EQ x {}))", "(ITE p (EQ {} 1) q)"])
def test_reserved_words_are_not_names(word: str, query: str) -> None:
    verdict = verify_logic(query.replace("{}", word))
    assert verdict.status == "INCONCLUSIVE" and word in verdict.message


@pytest.mark.parametrize("word", VALUES)
@pytest.mark.parametrize("statement", ["{} = {}", "{} == {}", "{} != 5", "x = {}", "not ({} = 1)"])
def test_nothing_is_equal_to_what_is_not_a_number(word: str, statement: str) -> None:
    text = statement.replace("{}", word)
    assert verify_logic_statement([], text).status == "INCONCLUSIVE"
    assert verify_logic_statement([text], text).status == "INCONCLUSIVE"
    assert verify(text).status in ("INCONCLUSIVE", "BLOCKED")


@pytest.mark.parametrize(
    "query",
    [
        "(AND p ; q\n r)", "(AND (GT x 5) ; (LT x 3)\n)", "(AND p q) ; r", ";", "; (GT x 5)", "(GT x 5);", "p ; not p",
        "(EQ x [1 2])", "(EQ x {1})", "(IN x (1 2 3))", "(IN 5 (1 5))", "(EQ (1 2) (1 2))", "(EXISTS (x x) (GT x 1))",
        "(EXISTS (x Foo) (GT x 1))",
        "(EXISTS (x Int y Int) (GT x y))", "(EXISTS (Int) (GT Int 1))", "(EXISTS ((x Int)) (EQ x 1.5))",
        "(FORALL (x Int) (NEQ x 1.5))",
        "(EXISTS () (GT x 1))", "(EXISTS (5) (GT x 1))", "(EXISTS (AND) (EQ AND 1))", "(FORALL AND (GT AND 1))",
        "(AND)", "(EQ x)", "(AND p (p q))",
    ],
)  # fmt: skip
def test_ill_formed_queries_are_not_decided(query: str) -> None:
    assert verify_logic(query).status == "INCONCLUSIVE"


@pytest.mark.parametrize(
    "query", [
        '(IN x 1 "a")', '(DISTINCT 1 "a")', "(EQ true 1)", '(EQ "1" 1)', "(GT x true)", "(AND 1 p)",
        '(AND (EQ x 1) (EQ x "a"))'])
def test_lists_of_different_sorts_are_errors(query: str) -> None:
    assert verify_logic(query).status == "ERROR"


def test_semicolons_in_texts_are_texts() -> None:
    assert verify_logic('(EQ x "a;b")').model == {"x": "a;b"}
    assert verify_logic("(EXISTS ((x Int)) (EQ (MULT x 2) 4))").verified and verify_logic("(GT sum 5)").verified


@pytest.mark.parametrize("verdict", [
    verify_logic("(AND (GT x 5) (LT х 3))"), verify_logic("(EQ аb ab)"), verify_logic_statement(["p"], "р"),
    verify_logic_statement(["Every man is mortal", "Socrates is a man"], "Sоcrates is mortal"),
    verify_math("x - х = 0"), verify_math("х + 1 = x + 1"),
], ids=lambda v: v.engine)  # fmt: skip
def test_names_that_look_the_same_are_not_decided(verdict: Verdict) -> None:
    assert verdict.status == "INCONCLUSIVE" and "look the same" in verdict.message


def test_names_in_one_script_are_decided() -> None:
    assert verify_logic("(AND (GT х 5) (LT у 3))").verified and verify_math("α + a = a + α").verified
    assert verify_logic("(GT x ５)").status == "INCONCLUSIVE" and "５" in verify_logic("(GT x ５)").message
