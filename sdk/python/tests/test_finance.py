"""Banking and commerce."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qwed_finance import FinanceVerifier, ISOGuard
from qwed_ucp import UCPVerifier


@pytest.mark.row("Q-058")
def test_calculations() -> None:
    verifier = FinanceVerifier()
    assert verifier.verify_compound_interest(10000, "0.075", 5, "$14,499.48", compounding="quarterly").verified
    assert verifier.verify_compound_interest(
        10000, 0.075, 5, "14490.97", compounding="quarterly").computed_value == "$14,499.48"
    assert verifier.verify_monthly_payment(
        200_000, 0.06, 360, "$1,199.10").verified and not verifier.verify_monthly_payment(
            200_000, 0.06, 360, "$1,199.11").verified
    assert verifier.verify_monthly_payment(1200, 0, 12, "100").verified
    assert verifier.verify_total_interest(200_000, 0.06, 360, "231676.38").verified and verifier.verify_total_interest(
        200_000, 0.06, 360, "231676.00").verified
    assert verifier.verify_npv([-1000, 300, 400, 400, 300], 0.10,
        "$108.88").status == "ERROR" and verifier.verify_npv([-1000, 1100], 0.10, "$0.00").verified
    assert verifier.verify_irr([-1000, 1100], "10%").verified and verifier.verify_irr([-1000, 1100],
        "0.10").verified and not verifier.verify_irr([-1000, 1100], "11%").verified
    assert verifier.verify_irr([-1, 3, -2], "0").status == "INCONCLUSIVE" and verifier.verify_irr([1, 2],
        "0").status == "INCONCLUSIVE"
    assert verifier.verify_simple_interest(1000, "0.05", 2, "100").verified
    assert verifier.add_money("$0.10", "$0.20") == "$0.30" and verifier.subtract_money(
        "$1,000.00", "2000") == "-$1,000.00" and verifier.multiply_money("$19.99", 3) == "$59.97"
    for bad in ("", "about ten", "NaN", None, "1e99999999"):
        assert verifier.verify_npv([-1000, 1100], 0.1, bad).status == "INCONCLUSIVE"
    assert verifier.verify_monthly_payment(1, 0.1, 10**9, "1").status == "INCONCLUSIVE"


@pytest.mark.row("Q-073", "Q-058")
@pytest.mark.parametrize(
    ("scenario", "output", "status"),
    [
        ("Senior Citizen deposits 100000 at 7% for 1 year, simple interest with an additional 0.5%",
            "The interest is 7,500.00", "VERIFIED"),
        ("Senior Citizen deposits 100000 at 7% for 1 year, simple interest with an additional 0.5%",
            "The interest is 7,000.00", "ERROR"),
        ("Calculate the monthly payment on a $200,000 loan at 6% for 30 years", "The payment is $1,199.10 a month",
            "VERIFIED"),
        ("Calculate the monthly payment on a $200,000 loan at 6% for 30 years", "The payment is $1,299.10 a month",
            "ERROR"),
        ("Insurance premium of 2.5% on a sum of $80,000", "The premium is $2,000.00", "VERIFIED"),
        ("Insurance premium of 2.5% on a sum of $80,000", "The premium is $2,500.00", "ERROR"),
        ("$10,000 at 7.5% compounded quarterly for 5 years", "It grows to $14,499.48", "VERIFIED"),
        ("$10,000 at 7.5% compounded quarterly for 5 years", "It grows to $14,490.97", "ERROR"),
        ("A customer asks about overdrafts", "Fine", "INCONCLUSIVE"), ("", "", "INCONCLUSIVE"),
        ("$5 at 5% and $6 at 6%", "1", "INCONCLUSIVE"), ("存款 100 元", "100", "INCONCLUSIVE"),
    ],
)  # fmt: skip
def test_banking_scenarios(scenario: str, output: str, status: str) -> None:
    assert FinanceVerifier().verify_banking_compliance(scenario, output).status == status


@pytest.mark.row("Q-073")
@pytest.mark.parametrize(
    ("scenario", "output"),
    [
        ("Premium is 5% of $1,000", "The premium is not $50"),
        ("Premium is 5% of $1,000", "The premium is $40, certainly not $50"),
        ("Premium is 5% of $1,000", "Either $50 or $60"), ("Premium is 5% of $1,000", "The premium is €50"),
        ("Premium is 5% of $1,000", "$50k"), ("Premium is 5% of $1,000", "50 thousand"),
        ("Premium is 5% of $1 million", "$0.05"), ("Premium is 5% of $1,000 less a discount", "$50"),
        ("Fee of 5% on $1000 is waived", "50"),
        ("Tax of 5% on $1000, total to pay", "50"), ("10% discount on $1000, final price", "100"),
        ("Interest on $1000 at 5%", "50"), ("Interest on $1000 at 5% per month", "50"),
        ("Interest on $1000 at 5% for 2 years", "100"),
        ("Compound interest on $1000 at 5% for 2 years", "1102.50"),
        ("future value of $1000 at 5% per month for 2 years compounded monthly", "1104.94"),
        ("future value of $1000 monthly deposit at 5% for 2 years compounded monthly", "1104.94"),
        ("simple interest on $1000 at 5% for 90 days", "50"),
        ("Monthly payment on a $1000 loan at 12% for 12 months with 10% down", "88.85"),
    ],
)  # fmt: skip
def test_scenarios_that_are_not_read_whole_are_not_decided(scenario: str, output: str) -> None:
    verdict = FinanceVerifier().verify_banking_compliance(scenario, output)
    assert verdict.status == "INCONCLUSIVE" and verdict.message, verdict


@pytest.mark.row("Q-073")
def test_the_sign_of_an_answer_counts() -> None:
    for wrong in ("-$50", "(50)", "$ -50"):
        assert not FinanceVerifier().verify_banking_compliance("Premium is 5% of $1,000", wrong).verified, wrong


@pytest.mark.row("Q-058")
def test_impossible_arguments_are_not_decided() -> None:
    verifier = FinanceVerifier()
    assert verifier.verify_total_interest("x", "1", 1, "1").status == "INCONCLUSIVE"
    assert verifier.verify_compound_interest(
        1000, "0.05", 2, "1102.50", compounding=None).status == "INCONCLUSIVE"  # type: ignore[arg-type]
    assert verifier.verify_irr([-100, 110], "50%",
        tolerance=100).status == "INCONCLUSIVE" and verifier.verify_irr([-100, 110], "10%",
            tolerance=-1).status == "INCONCLUSIVE"
    assert verifier.verify_monthly_payment(-1000, "0.12", 12, "-88.85").status == "INCONCLUSIVE"
    for amount in ("5,0", "1,2345", "$50 €", "1_000"):
        assert verifier.verify_simple_interest(1000, "0.05", 1, amount).status == "INCONCLUSIVE", amount


PAYMENT: dict[str, Any] = {
    "MsgId": "ABC123", "CreDtTm": "2026-01-15T10:00:00Z", "NbOfTxs": 1,
    "TtlIntrBkSttlmAmt": {"amount": 100.5, "currency": "EUR"},
    "CdtTrfTxInf": [{
        "EndToEndId": "E1", "IntrBkSttlmAmt": {"amount": "100.50", "currency": "EUR"},
        "DbtrAcct": {"IBAN": "DE89370400440532013000"}, "DbtrAgt": {"BICFI": "DEUTDEFF"}}],
}  # fmt: skip


@pytest.mark.row("Q-059")
def test_iso_20022() -> None:
    guard = ISOGuard()
    assert guard.verify_payment_message(PAYMENT).verified, guard.verify_payment_message(PAYMENT)
    assert guard.verify_payment_message({"MsgId": "X", "CreDtTm": "2026-01-15T10:00:00", "NbOfTxs": "2"},
        "pacs.008.001.08").verified
    transaction = PAYMENT["CdtTrfTxInf"][0]
    for change in (
        {"MsgId": ""}, {"MsgId": "x" * 36}, {"MsgId": "ümläut"}, {"CreDtTm": "yesterday"},
        {"CreDtTm": "2026-02-30T10:00:00"}, {"NbOfTxs": 0}, {"NbOfTxs": 2}, {"NbOfTxs": True},
        {"TtlIntrBkSttlmAmt": {"amount": 99, "currency": "EUR"}},
        {"TtlIntrBkSttlmAmt": {"amount": 100.5, "currency": "EURO"}},
        {"TtlIntrBkSttlmAmt": {"amount": -1, "currency": "EUR"}},
        {"CdtTrfTxInf": [{**transaction, "DbtrAcct": {"IBAN": "DE89370400440532013001"}}]},
        {"CdtTrfTxInf": [{**transaction, "DbtrAgt": {"BICFI": "XX"}}]},
        {"TtlIntrBkSttlmAmt": {"amount": "100.505", "currency": "EUR"}},
        {"TtlIntrBkSttlmAmt": {"amount": "100.5", "currency": "JPY"}},
        {"TtlIntrBkSttlmAmt": {"amount": "NaN", "currency": "EUR"}},
    ):  # fmt: skip
        assert guard.verify_payment_message({**PAYMENT, **change}).status == "ERROR", change
    assert guard.verify_payment_message(PAYMENT, "camt.999").status == "UNKNOWN"
    assert guard.verify_payment_message([]).status == "ERROR"  # type: ignore[arg-type]


@pytest.mark.row("Q-060", "Q-074")
@pytest.mark.parametrize(
    ("cart", "status"),
    [
        ({"currency": "USD", "items": [{"price": 10.10, "quantity": 3}], "subtotal": 30.30, "tax": 2.5, "total": 32.80},
            "VERIFIED"),
        ({"currency": "USD", "items": [{"price": 10.10, "quantity": 3}], "subtotal": 30.30, "tax": 2.5, "total": 32.81},
            "ERROR"),
        ({"currency": "USD", "items": [{"price": 10.10, "quantity": 3}], "subtotal": 30.31}, "ERROR"),
        ({"items": [{"price": 0.1, "quantity": 3}], "total": 0.3}, "VERIFIED"),
        ({"currency": "USD", "items": [{"price": 1, "quantity": 3}], "total": 3, "total_currency": "EUR"}, "ERROR"),
        ({"currency": "USD", "items": [{"price": 1, "quantity": 3, "currencyCode": "GBP"}], "total": 3}, "ERROR"),
        ({"currency": "USD", "items": [{"price": 1, "quantity": 3}], "total": 3, "displayCurrency": "USD"}, "VERIFIED"),
        ({"currency": "USD",
            "totals": [{"type": "subtotal", "amount": 100.0}, {"type": "tax", "amount": 8.25},
                {"type": "total", "amount": 108.25}]}, "VERIFIED"),
        ({"currency": "USD",
            "totals": [{"type": "subtotal", "amount": 10000}, {"type": "items_discount", "amount": 500},
                {"type": "total", "amount": 9500}]}, "VERIFIED"),
        ({"currency": "USD",
            "line_items": [{"item": {"price": 500}, "quantity": 2, "totals": [{"type": "subtotal", "amount": 1000}]}],
            "totals": [{"type": "total", "amount": 1000}]}, "VERIFIED"),
        ({"items": [{"price": -5, "quantity": 1}], "total": -5}, "ERROR"),
        ({"items": [{"price": 5, "quantity": 0}], "total": 0}, "ERROR"), ({"currency": "XXX", "items": []}, "ERROR"),
        ({}, "INCONCLUSIVE"),
        ({"currency": "JPY", "items": [{"price": "10.5", "quantity": 1}], "total": "10.5"}, "ERROR"),
        ({"items": [{"price": 5, "total": 6}], "total": 6}, "ERROR"),
        ({"items": [{"price": 100, "quantity": 1}], "tax_rate": 0.0825, "tax": 8.25, "total": 108.25}, "VERIFIED"),
        ({"items": [{"price": 100}], "tax_rate": 0.1, "tax": 9, "total": 109}, "ERROR"),
    ],
)  # fmt: skip
def test_carts(cart: dict[str, Any], status: str) -> None:
    assert UCPVerifier().verify_cart(json.dumps(cart)).status == status, UCPVerifier().verify_cart(json.dumps(cart))


ONE = {"price": 10, "quantity": 2}


@pytest.mark.row("Q-074")
@pytest.mark.parametrize(
    "cart",
    [
        {"items": [], "subtotal": 100, "total": 100}, {"subtotal": 100, "tax": -8.25, "total": 91.75},
        {"items": [{**ONE, "discount": {"amount": 1}}], "total": 20},
        {"items": [ONE], "totals": [{"type": "total", "amount": 20}, {"type": "total", "amount": 0}]},
        {"items": [ONE], "total": 20, "shipping": {"amount": 5}}, {"items": [ONE], "total": 20, "tax": {"amount": 5}},
        {"items": [ONE], "total": 20, "service_charge": 5}, {"items": [ONE], "total": 20, "tax_rate": 0.1},
        {"items": [ONE], "total": 20, "grand_total": 25},
        {"items": [{**ONE, "currency": "EUR"}], "total": 20, "currency": "USD"},
        {"items": [{"price": {"amount": 10, "currency": "EUR"}, "quantity": 2}], "total": 20, "currency": "USD"},
        {"items": [ONE], "line_items": [{"price": 1}], "total": 1},
        {"items": [{"price": "$10", "quantity": 2}], "total": "€20"},
        {"items": [{"price": 10, "unit_price": 20}], "total": 20}, {"items": [{**ONE, "qty": 3}], "total": 20},
        {"items": [{**ONE, "tax": 5}], "total": 20}, {"items": {"a": ONE}, "total": 20},
        {"items": [ONE], "total": 20, "totals": [{"type": "total", "amount": 25}]},
        {"items": [{"price": "1,5", "quantity": 1}], "total": 15},
        {"items": [{"price": "１５", "quantity": 1}], "total": 15},
    ],
    ids=str,
)  # fmt: skip
def test_carts_that_only_seem_to_add_up(cart: dict[str, Any]) -> None:
    assert UCPVerifier().verify_cart(cart).status == "ERROR", UCPVerifier().verify_cart(cart)


@pytest.mark.row("Q-074")
def test_bad_carts_and_checkouts() -> None:
    for bad in (
        "{", "[]", "null", '{"total": NaN}', "[" * 100_000, '{"items": [{"price": "x"}], "total": 1}',
        '{"totals": [1]}'):
        assert UCPVerifier().verify_cart(bad).status == "ERROR", bad[:20]
    checkout = {
        "currency": "USD",
        "totals": [{"type": "subtotal", "amount": 100.0}, {"type": "tax", "amount": 8.25},
            {"type": "total", "amount": 108.25}], "status": "ready_for_complete"}
    result = UCPVerifier().verify_checkout(checkout)
    assert result.verified and [g["guard_name"] for g in result.guards] == [
        "Money Guard", "State Guard", "Structure Guard"]
    assert not UCPVerifier().verify_checkout({
        **checkout, "status": "shipped"}).verified and not UCPVerifier().verify_checkout({
            k: v for k, v in checkout.items() if k != "status"}).verified


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"service": "5.00"}, "INCONCLUSIVE"), ({"insurance": 5}, "INCONCLUSIVE"), ({"service_charge": "5"}, "ERROR"),
        ({"processing": {"amount": "5.00"}}, "INCONCLUSIVE"), ({"fees": [{"amount": "5.00"}]}, "ERROR"),
        ({"adjustments": [{"amount": "-5.00"}]}, "INCONCLUSIVE"), ({"Total": "25.00"}, "INCONCLUSIVE"),
        ({"amount_due": "25.00"}, "INCONCLUSIVE"), ({"amount_due": "20.00"}, "VERIFIED"),
        ({"products": [{"price": "90.00"}]}, "INCONCLUSIVE"), ({"messages": 5}, "ERROR"),
        ({"currency": ["USD"]}, "ERROR"),
        ({"line_items": [{"unit_price": "10", "quantity": 2, "line_price": "25.00"}]}, "INCONCLUSIVE"),
        ({"line_items": [{"unit_price": "10", "quantity": 2, "discounts": [{"amount": "5"}]}]}, "ERROR"),
        ({"fees": [{"amount": "5.00"}], "total": "25.00"}, "VERIFIED"),
        ({"tax": "5", "total": "25", "taxes": [{"amount": "1"}]}, "ERROR"),
        ({"tax": "5", "total": "25", "taxes": {"state": "4.00"}}, "ERROR"),
        ({"tax": "5", "total": "25", "taxes": {"state": "4.00", "city": "1.00"}}, "VERIFIED"),
        ({"taxes": [{"amount": "1.50"}, {"amount": "0.50"}], "total": "22.00"}, "VERIFIED"),
        ({"discount": "5", "total": "15", "discounts": [{"amount": "4"}]}, "ERROR"),
        ({"version": 3, "item_count": 2, "weight": 1.5, "title": "1984", "order_number": "1001"}, "VERIFIED"),
        ({"extra": {"eco_fee": "1.00"}}, "INCONCLUSIVE"), ({"total": None}, "ERROR"),
        ({"payment": {"amount": "20.00"}}, "VERIFIED"), ({"original_price": "40.00"}, "VERIFIED"),
        ({"discount": "5.00", "discounts": {"applied": [{"amount": "5.00"}]}, "total": "15.00"}, "VERIFIED"),
    ],
)  # fmt: skip
def test_amounts_that_no_sum_contains(more: dict[str, Any], status: str) -> None:
    """Issue 26: an amount under any name is added up or named; numbers that are not charged do not matter."""
    cart = {"currency": "USD", "status": "incomplete", "line_items": [{"unit_price": "10.00", "quantity": 2}],
        "subtotal": "20.00", "total": "20.00"}  # fmt: skip
    assert UCPVerifier().verify_checkout({**cart, **more}).status == status
