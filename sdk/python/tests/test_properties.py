"""Properties of the grammars of mathematics, money and dates, for inputs that no person chose."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from qwed_new.calendar_dates import read_date
from qwed_new.engines.math import verify_math
from qwed_new.engines.math.grammar import parse, parse_expression
from qwed_new.engines.math.tree import Apply, Name, Node, Number, show
from qwed_new.money import amount, amounts_in

quick = settings(max_examples=120, deadline=None, derandomize=True)
LEAVES = st.one_of(
    st.integers(0, 999).map(lambda n: Number(Decimal(n))), st.sampled_from("xyz").map(lambda n: Name("var:" + n)))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["add", "sub", "mul", "div", "pow"]), inner, inner).map(
            lambda t: Apply(t[0], (t[1], t[2]))), inner.map(lambda n: Apply("neg", (n,)))
    ),
    max_leaves=12,
)
WHOLE = st.integers(-50, 50)


@quick
@given(TREES)
def test_what_was_understood_is_read_back_as_the_same(tree: Node) -> None:
    assert parse_expression(show(tree)) == tree


@quick
@given(st.text(max_size=60))
def test_no_text_fails_the_grammar_in_another_way_than_it_says(text: str) -> None:
    try:
        parse(text)
    except ValueError:
        pass


@quick
@given(WHOLE, WHOLE, st.integers(1, 30), WHOLE)
def test_arithmetic_is_that_of_fractions(a: int, b: int, c: int, wrong: int) -> None:
    value = Fraction(a) * b + Fraction(a, c)
    assert verify_math(f"({a})*({b}) + ({a})/{c} = ({value.numerator})/{value.denominator}").verified
    if wrong:
        assert verify_math(
            f"({a})*({b}) + ({a})/{c} = ({value.numerator})/{value.denominator} + ({wrong})").status == "ERROR"


@quick
@given(st.decimals(min_value=-(10**12), max_value=10**12, places=2))
def test_amounts_are_read_as_they_are_written(value: Decimal) -> None:
    for text in (f"{value:,.2f}", f"{value:.2f}", f"{value:,.2f} USD"):
        assert amount(text) == value, text
    if value > 0:
        assert amount(f"${value:,.2f}") == value and amount(f"(${value:,.2f})") == -value and amounts_in(
            f"It costs ${value:,.2f} now") == [value]


@quick
@given(st.text(alphabet="0123456789.,-+()$€ _e", max_size=14))
def test_what_is_no_amount_is_a_value_error(text: str) -> None:
    try:
        assert amount(text).is_finite()
    except ValueError:
        pass


@quick
@given(st.dates(min_value=date(1000, 1, 1)))
def test_dates_are_read_as_they_are_written(day: date) -> None:
    for text in (
        day.isoformat(), f"{day.day} {day:%B} {day.year}", f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}"):
        assert read_date(text) == day, text
