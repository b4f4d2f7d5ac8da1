"""Claims that two careful readers read in two ways, or that hold nowhere: never VERIFIED."""

from __future__ import annotations

import pytest

from qwed_new.engines.claims import verify
from qwed_new.engines.consensus import verify_consensus
from qwed_new.engines.logic import verify_logic, verify_logic_statement
from qwed_new.engines.math import verify_math, verify_math_expression

OPEN = [
    "5!=119", "5!=120", "x!=x+1", "5% 3 = 2", "100 + 10% = 110", "100 + 10% = 100.1", "50 - 5% = 47.5", "6/2(1+2)=9",
    "6/2(1+2)=1", "1/2x=0.5x", "√x^2=x", "sqrt x^2 = x", "0x10=0", "0x10=16", "1e2x=100x", "0.(9)=1",
    "oo=oo", "oo+1=oo", "infinity=infinity+1", "sin(oo)=sin(oo)", "1^oo=1", "5 < oo", "log(e)=1", "log(100)=2",
    "sinx = sin(x)", "(-8)^(1/3) = -2", "sum(k,k,10,1)=-44", "sum(k,k,10,1)=0",
    "sum(k,k,0.5,2.5)=4.5", "sum(1,k,n,5)=6-n", "pi = 3.142 to 2 decimal places", "2 = 2.4 to 0 decimal places",
    "limit(sin(x),x,oo)=0", "integral(1/x,x,-1,1)=0", "integral(tan(x),x,0,pi)=0",
]  # fmt: skip
WRONG = [
    "limit(1/x,x,0)=oo", "limit(abs(x)/x,x,0)=1", "limit(sign(x),x,0)=1", "limit(floor(x),x,1)=1",
    "limit(exp(1/x),x,0)=oo", "limit(atan(1/x),x,0)=pi/2", "limit(1/(1+exp(1/x)),x,0)=0", "integral(1/x^2,x,-1,1)=-2",
    "integral(1/(2+cos(x)),x,0,2*pi)=0", "tan(pi/2)=0", "0^0=1", "binomial(5,2.5)=10", "sqrt(-1)>0", "i<1",
]  # fmt: skip
RIGHT = [
    "sqrt(x)*sqrt(y)=sqrt(x*y)",
    "limit(1/x^2,x,0)=oo", "limit(sqrt(x),x,0)=0", "limit(x^x,x,0)=1", "sum(1/k,k,1,oo)=oo", "integral(1/x,x,0,1)=oo",
    "integral(2x,x)=x^2+5", "integral(1/x,x)=ln(abs(x))", "cbrt(-8) = -2", "50% + 20% = 70%", "-10% = -0.1",
    "2+2=5 ± 1", "Pi = pi", "7%3=1", "7 mod 3 = 1", "x^2/(2y) = x*x/(2*y)", "sum(k,k,1,0)=0", "log(8,2)=3", "5 != 119",
    "5! = 120",
]  # fmt: skip


@pytest.mark.row("P-008")
@pytest.mark.parametrize("claim", OPEN)
def test_two_readings_are_not_decided(claim: str) -> None:
    assert verify_math(claim).status in ("INCONCLUSIVE", "BLOCKED"), verify_math(claim)


@pytest.mark.row("P-008")
@pytest.mark.parametrize("claim", WRONG)
def test_what_holds_for_no_reader_is_refuted(claim: str) -> None:
    assert verify_math(claim).status == "ERROR", verify_math(claim)


@pytest.mark.row("P-008")
@pytest.mark.parametrize("claim", RIGHT)
def test_what_holds_for_every_reader_is_verified(claim: str) -> None:
    assert verify_math(claim).verified, verify_math(claim)


@pytest.mark.row("Q-069")
def test_a_value_where_the_equation_is_undefined_is_no_solution() -> None:
    assert verify_math_expression("x^2/x", "0", "solve").status == "ERROR"
    assert verify_math_expression("(x-1)*x/x", "{1}", "solve").verified and verify_math_expression(
        "(x-1)*x/x", "{0, 1}", "solve").status == "ERROR"


@pytest.mark.row("P-007")
@pytest.mark.parametrize(
    "claim",
    [
        "the square root of 16 plus 9 is 13", "the square root of 16 + 9 is 5", "the sum of 1 and 2 times 3 is 9",
        "half of 10 plus 2 is 7", "twice 5 plus 1 is 11", "absolute value of -3 plus 1 is 4", "-3 squared is -9",
        "minus 3 squared is 9", "the difference between 3 and 5 is -2", "the difference between 3 and 5 is 2",
        "5 percent of 100 plus 5 is 10", "what is 100 + 10%", "what is 20% more than 50",
        "import duties are 100% of everything", "from 2 import tariffs", "for x in R: x = x + 1", "while x: 2+2=5",
        "try: 2+2=5", "class A: B", "const x = 2+2===5", "let x = 5", "x => x+1", "def f(x) = x+1", "@home",
        "With tax, 2+2 from 4 is 0", "Update: revenue is set to 5",
    ],
)  # fmt: skip
def test_sentences_with_two_readings_are_not_decided(claim: str) -> None:
    verdict = verify(claim)
    assert verdict.status == "INCONCLUSIVE" and verdict.message, verdict


@pytest.mark.row("P-007")
@pytest.mark.parametrize(
    "claim", [
        "the square root of 16 is 4", "2 times the sum of 3 and 4 is 14", "the difference between 5 and 3 is 2",
        "2 plus 3 times 4 is 14", "5% of 200 is 10", "3 squared plus 1 is 10"])
def test_sentences_with_one_reading_are_decided(claim: str) -> None:
    assert verify(claim).verified, verify(claim)


@pytest.mark.row("P-015")
@pytest.mark.parametrize(
    "claim", ["sqrt(-1)=sqrt(-1)", "sqrt(-1)*sqrt(-1)=-1", "sqrt(-4)=2", "1/(x-x)=5", "sqrt(-1)>5", "x/(x-x)>1"])
def test_engines_do_not_agree_on_what_is_defined_nowhere(claim: str) -> None:
    for mode in ("high", "maximum"):
        assert not verify_consensus(claim, mode, 0).verified


@pytest.mark.row("P-009")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("(EXISTS x (EQ (DIV 1 x) 0))", "INCONCLUSIVE"),
        ("(EXISTS (x Real) (AND (EQ x 0) (EQ (DIV 5 x) 7)))", "INCONCLUSIVE"), ("(AND)", "INCONCLUSIVE"),
        ("(NOT)", "INCONCLUSIVE"), ("(EQ (SUM) 0)", "INCONCLUSIVE"), ("(EQ (POW 0 0) 1)", "ERROR"),
        ("(AND (GT x 0) (LT x 1))", "INCONCLUSIVE"), ("(EXISTS x (AND (GT x 0) (LT x 1)))", "INCONCLUSIVE"),
        ("(FORALL x (IMPLIES (GT x 2) (GTE x 3)))", "INCONCLUSIVE"),
        ("(FORALL (x Int) (IMPLIES (GT x 2) (GTE x 3)))", "VERIFIED"),
        ("(EXISTS (x Real) (AND (GT x 0) (LT x 1)))", "VERIFIED"),
    ],
)  # fmt: skip
def test_what_rests_on_an_assumption_is_not_decided(query: str, status: str) -> None:
    assert verify_logic(query).status == status, verify_logic(query)


@pytest.mark.row("Q-070")
@pytest.mark.parametrize(
    ("premises", "conclusion"),
    [
        (["Bob was a student"], "Bob is a student"), (["A man was killed", "Bob is a man"], "Bob was killed"),
        (["A man is at the door", "Socrates is a man"], "Socrates is at the door"),
        (["it is not the case that p and q"], "not p"),
        (["it is not the case that p and q"], "q"), (["All cats are not dogs", "Tom is a cat"], "Tom is not a dog"),
        (["Bob and Alice are friends"], "Alice is a friend"), (["x > 0", "x < 2"], "x = 1"), (["x = 5"], "X = 5"),
        (["x = 1/0"], "x = 5"), (["Most men are mortal", "Socrates is a man"], "Socrates is mortal"),
        (["Nothing is better than God", "A sandwich is better than nothing"], "A sandwich is better than God"),
        (["Bob believes all men are mortal", "Socrates is a man"], "Socrates is mortal"),
        (["The temperature is rising", "The temperature is 90"], "90 is rising"),
        (["All unicorns are white"], "Some unicorns are white"),
        (["p or q", "p"], "not q"), (["Bob has a car"], "Bob is a car"),
        (["Bob is a former president"], "Bob is a president"),
        (["it rains and the sun shines or it snows"], "it rains"),
    ],
    ids=str,
)  # fmt: skip
def test_arguments_that_only_look_valid(premises: list[str], conclusion: str) -> None:
    assert not verify_logic_statement(premises, conclusion).verified, verify_logic_statement(premises, conclusion)


@pytest.mark.row("Q-070")
@pytest.mark.parametrize(
    ("premises", "conclusion"),
    [(["1/x = 2"], "x = 0.5"), (["x > 5"], "x > 3"),
        (["Bob was a student", "All students are poor"], "Bob was a student"),
        (["a dog is an animal", "Fido is a dog"], "Fido is an animal"),
        (["not every bird is white"], "some bird is not white")],
    ids=str,
)  # fmt: skip
def test_arguments_that_are_valid(premises: list[str], conclusion: str) -> None:
    assert verify_logic_statement(premises, conclusion).verified, verify_logic_statement(premises, conclusion)
