"""Facts: claims that a context supports, denies, or only seems to support."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwed_new.engines.facts import verify_fact

CONTEXT = "Acme Corp was established in 2020 in San Francisco."


@pytest.mark.row("P-012")
@pytest.mark.parametrize(
    ("claim", "context", "status"),
    [
        ("The company was founded in 2020", CONTEXT, "VERIFIED"), ("The company was founded in 2019", CONTEXT, "ERROR"),
        ("The company was not founded in 2020", CONTEXT, "ERROR"),
        ("Acme was founded in San Francisco", CONTEXT, "VERIFIED"),
        ("Acme was founded in Boston", CONTEXT, "INCONCLUSIVE"),
        ("The company was sold in 2020", CONTEXT, "INCONCLUSIVE"),
        ("Google bought YouTube", "YouTube bought Google.", "INCONCLUSIVE"),
        ("Google bought YouTube in 2006", "Google acquired YouTube in 2006 for $1.65 billion.", "VERIFIED"),
        ("Revenue was 5 million", "Revenue was $5,000,000 last year.", "VERIFIED"),
        ("Revenue was 6 million", "Revenue was $5,000,000 last year.", "ERROR"),
        ("Revenue grew 5%", "Revenue did not grow 5%.", "ERROR"),
        ("Acme was founded in 2020", "Acme was reportedly founded in 2020.", "INCONCLUSIVE"),
        ("公司成立于2020年", "公司成立于2020年。", "VERIFIED"),
        ("公司成立于2020年", "公司不是成立于2020年。", "INCONCLUSIVE"), ("", "", "INCONCLUSIVE"),
        ("The company was founded in 2020", "", "INCONCLUSIVE"),
        ("Paris is the capital of France", "Paris is the capital of France, and Lyon is not.", "VERIFIED"),
        ("The meeting is on 15 January 2026", "The meeting is on 2026-01-15.", "VERIFIED"),
        ("The meeting is on 16 January 2026", "The meeting is on 2026-01-15.", "ERROR"),
        ("x" * 10_000, CONTEXT, "BLOCKED"),
    ],
)  # fmt: skip
def test_facts(claim: str, context: str, status: str) -> None:
    verdict = verify_fact(claim=claim, context=context)
    assert verdict.status == status, verdict
    if status == "VERIFIED":
        assert verdict.evidence["span"] in context and context[verdict.evidence["start"] :].startswith(
            verdict.evidence["span"])


LINES = (Path(__file__).parent / "programs" / "facts.txt").read_text().splitlines()[1:]


@pytest.mark.row("P-012")
@pytest.mark.parametrize("line", LINES)
def test_everyday_facts(line: str) -> None:
    claim, context = line[2:].split(" || ")
    status = verify_fact(claim, context).status
    assert {"T": status == "VERIFIED", "F": status != "VERIFIED", "E": status == "ERROR"}[line[0]], status


@pytest.mark.row("P-012")
@pytest.mark.parametrize("after", [
    "This was later retracted.", "APRIL FOOLS", "The report was corrected the next day.", "This is disputed.",
    "Erratum: see page 4.", "It rained. The above report is false.", "It rained. It snowed. This story was fabricated.",
    "The result was annulled.", "The claim is unverified.", "It was a prank.",
])  # fmt: skip
def test_a_retraction_is_no_support(after: str) -> None:
    assert verify_fact("Ann won the race", "Ann won the race.").verified
    assert verify_fact("Ann won the race", f"Ann won the race. {after}").status == "INCONCLUSIVE"


# A claim has every word of its context, or nearly, and is not supported by it.
UNSUPPORTED = [
    ("The company was founded in 2020", "Acme Corp was established in 2019. Beta Corp was established in 2020."),
    ("Beta was founded in 2019", "Acme was founded in 2019 and Beta was founded in 2020."),
    ("Acme was founded in 2020", "Acme was founded in 2019 and Beta was founded in 2020."),
    ("Acme acquired Beta", "Acme was acquired by Beta."), ("Acme was acquired by Beta", "Acme acquired Beta."),
    ("Alice hit Bob", "Alice was hit by Bob."), ("Alice is taller than Bob", "Bob is taller than Alice."),
    ("Revenue rose 10% in 2020", "Revenue rose 20% in 2020 and costs rose 10%."),
    ("Revenue was 10 million", "Costs were 10 million and revenue was 20 million."),
    ("Revenue was 20 million", "Analysts doubt that revenue was 20 million."),
    ("Revenue was 20 million", "Bob lied that revenue was 20 million."),
    ("Revenue was 20 million", "Was revenue 20 million?"),
    ("Revenue was 20 million", "Contrary to reports, revenue was 20 million."),
    ("Revenue was 20 million", "Revenue was up to 20 million."),
    ("Revenue was 20 million", "Revenue was less than 20 million."),
    ("Revenue was 20 million", "Revenue was at least 20 million."),
    ("Revenue was over 20 million", "Revenue was 20 million."),
    ("Revenue was $20 million", "Revenue was €20 million."), ("Profit was -5 million", "Profit was 5 million."),
    ("The score was 3-2", "The score was 2-3."), ("The score is 3 to 2", "The score is 2 to 3."),
    ("He worked from 2010 to 2020", "He worked from 2020 to 2010."),
    ("Price rose from 5 to 10", "Price rose from 10 to 5."), ("Bob passed", "Only Bob passed."),
    ("Students passed", "Few students passed."),
    ("Every student passed", "Every other student passed."), ("Bob pays", "Bob rarely pays."),
    ("Bob pays", "Bob used to pay."), ("Bob paid", "Alice said Bob paid."), ("Bob paid", "Bob promised he paid."),
    ("Bob died", "Bob's dog died."), ("Bob's father died", "Bob died and his father wept."),
    ("Bob is CEO", "Bob is the former CEO."), ("Bob is president", "Bob is vice president."),
    ("Bob is the president of France", "Bob is the president of the Bank of France."),
    ("Bob is a doctor", "Bob is a fake doctor."), ("Bob is guilty", "Bob is far from guilty."),
    ("The product is safe", "The product is neither safe nor cheap."),
    ("The product is safe", "The product is too hot to be safe."),
    ("The product is safe", "The myth: the product is safe."),
    ("The product is safe", "Is the product safe?"),
    ("The product is safe", "The following is false:\nThe product is safe."),
    ("The product is safe", "The product is safe. That is a lie."),
    ("The contract starts on 31 January 2026", "The contract starts on 31 January 2025 and ends on 31 January 2026."),
    ("It ends on 5 May 2025", "It ends before 5 May 2025."),
    ("The contract ends on 01/02/2025", "The contract ends on 02/01/2025."),
    ("Version 1.2 is current", "Version 1.20 is current."), ("IP is 10.0.0.1", "IP is 10.0.0.2"),
    ("Phone is 555-1234", "Phone is 1234-555"),
    ("The cat is on the mat", "The mat is on the cat."), ("dogs chase cats", "cats chase dogs"),
    ("Acme sells cars", "Acme sells car parts"), ("John Smith is rich", "John met Smith, who is rich."),
    ("Bob has 3 children", "Bob has 3 dogs and 2 children."),
    ("Bob has 3 cats and 2 dogs", "Bob has 2 cats and 3 dogs."),
    ("The GDP of Germany is 3 trillion", "The GDP of Germany is 4 trillion and of France is 3 trillion"),
    ("The ratio is 1:2", "The ratio is 2:1"), ("The bid was 1/2", "The bid was 2/1"),
    ("It is 10 m long", "It is 10 million long"), ("The limit is 100", "The limit is 100 per day"),
    ("The limit is 100", "The limit is 100 in France."),
    ("IT is important", "It is important"), ("US is large", "us is large"),
    ("Bob founded Acme", "Bob founded Acme's rival"), ("Acme was founded by Bob", "Acme was founded by Bob's father"),
    ("Bob owns 50% of Acme", "Bob owns 50% of Beta, which owns Acme"), ("Acme ran a marathon", "Acme led a marathon"),
    ("Bob starts in 2020", "Bob was founded in 2020"), ("Sales made 5", "Sales earned 5"),
    ("Acme was not founded in 2020", "Acme was not founded in 2020 in Paris."),
    ("Revenue was 5 million in 2019", "Revenue was 5 million in 2020."), ("Is Acme rich?", "Is Acme rich?"),
    ("Acme", "Acme"),
]  # fmt: skip


@pytest.mark.row("P-012")
@pytest.mark.parametrize(("claim", "context"), UNSUPPORTED, ids=lambda t: t[:40])
def test_words_alone_support_nothing(claim: str, context: str) -> None:
    assert verify_fact(claim, context).status in ("INCONCLUSIVE", "ERROR"), verify_fact(claim, context)


@pytest.mark.row("P-012")
@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("Acme was founded in 2020", "Acme was founded in 2019 and in 2020."),
        ("Acme was founded in 2020", "Acme was not founded in 2020 in Paris."),
        ("The company was founded in 2020", "Acme was founded in 2019. Bob was born in 1950."),
        ("Acme was founded in 2020", "Acme was founded in 2020. Acme was founded in 2019."),
        ("Acme employed 400 people", "Acme employed 500 people in 2019."),
        ("Revenue was 1.2 million", "Costs were 3 million."),
        ("Version 1.2.3 is current", "Version 1.2.4 is current."),
    ],
)  # fmt: skip
def test_what_another_sentence_leaves_open_is_not_refuted(claim: str, context: str) -> None:
    assert verify_fact(claim, context).status == "INCONCLUSIVE", verify_fact(claim, context)


@pytest.mark.row("P-012")
@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("Acme was founded in 2020", "In 2020, Acme Inc was established in Paris, France."),
        ("Acme was founded in Paris, France", "In 2020, Acme Inc. was established in Paris, France."),
        ("Acme was founded in 2020", "Bob is tall. Acme was founded in 2020 and Beta was sold."),
        ("Revenue was 20 million", "Revenue was 20,000,000."), ("The tax is 5%", "The tax is 5 percent."),
        ("Prices increased by 5%", "Prices rose by 5% in May 2024."), ("Bob is not guilty", "Bob isn't guilty."),
        ("the product is safe", "The product is safe."),
        ("Acme was sold for $5 million", "Acme was sold for $5,000,000 in 2019."),
    ],
)  # fmt: skip
def test_what_a_sentence_says_in_other_words_is_supported(claim: str, context: str) -> None:
    assert verify_fact(claim, context).verified, verify_fact(claim, context)


@pytest.mark.parametrize(("claim", "context", "status"), [
    ("Acme was founded in 2020", "ACME WAS FOUNDED IN 2020.", "VERIFIED"),
    ("acme was founded in 2020", "ACME WAS FOUNDED IN 2020.", "VERIFIED"),
    ("Acme was founded in 2019", "ACME WAS FOUNDED IN 2020.", "ERROR"),
    ("They told us the truth", "THEY TOLD US THE TRUTH.", "INCONCLUSIVE"),
])  # fmt: skip
def test_a_context_in_capitals(claim: str, context: str, status: str) -> None:
    """Issue 26.11."""
    assert verify_fact(claim, context).status == status
