"""Clauses, appositions, relative clauses and letter case of facts (issue 26.11), and what must not be taken from a
sentence."""

from __future__ import annotations

import pytest

from qwed_new.engines.facts import verify_fact

SUPPORTED = [
    ("Profits fell", "Sales rose 5% in 2020, but profits fell."),
    ("Sales rose 5% in 2020", "Sales rose 5% in 2020, but profits fell."),
    ("Ann was born in Rome", "Ann, who was born in Rome, won the Nobel Prize."),
    ("Ann won the Nobel Prize", "Ann, who was born in Rome, won the Nobel Prize."),
    ("Acme was founded in 1990", "Acme was founded in 1990 by Ann Lee in Paris, and it employs 500 people."),
    ("Acme was founded in 2020", "Acme was founded in 2020 and sells cars."),
    ("Acme sells cars", "Acme was founded in 2020 and sells cars."),
    ("The sky is blue", "Bob is tall, but the sky is blue."),
    ("Bob is tall", "Bob is tall, but the sky is blue."), ("Bob is tall", "Bob is tall; the sky is blue."),
    ("The sky is blue", "Bob is tall; the sky is blue."), ("The sky is blue", "Because Bob is tall, the sky is blue."),
    ("Bob is tall", "Although Bob is tall, Ann is taller."), ("the company is in paris", "The company is in Paris."),
    ("acme was founded in 2020", "Acme was founded in 2020."),
    ("ACME WAS FOUNDED IN 2020", "Acme was founded in 2020."),
    ("Acme Was Founded In Paris", "Acme was founded in Paris."),
    ("acme was founded in paris", "In 2020, Acme was founded in Paris."),
    ("Bob is the CEO of Acme", "Bob, the CEO of Acme, lives in Paris."),
    ("Bob lives in Paris", "Bob, the CEO of Acme, lives in Paris."),
    ("Bob lives in Paris", "Bob, who is the CEO of Acme, lives in Paris."),
    ("Bob is the CEO of Acme", "Bob, who is the CEO of Acme, lives in Paris."),
    ("Acme makes cars", "Acme, which makes cars, was founded in 2020."),
    ("Acme was founded in 2020", "Acme, which makes cars, was founded in 2020."),
    ("The Eiffel Tower is in Paris", "The Eiffel Tower, a landmark, is in Paris."),
    ("The Eiffel Tower is a landmark", "The Eiffel Tower, a landmark, is in Paris."),
    ("Water boils at 100 degrees", "Water boils at 100 degrees, and ice melts at 0 degrees."),
    ("Ice melts at 0 degrees", "Water boils at 100 degrees, and ice melts at 0 degrees."),
    ("Tim Cook is CEO of Apple", "Tim Cook, CEO of Apple, is in Paris."), ("Bob is rich", "Bob is rich and is happy."),
    ("Bob is happy", "Bob is rich and is happy."), ("Paris is large", "Paris is large while Lyon is small."),
]  # fmt: skip
UNSUPPORTED = [
    ("Acme was founded in 2020", "Not! Acme was founded in 2020."),
    ("Acme was founded in 2020", "Acme was founded in 2020. Not!"),
    ("Acme was founded in 2020", "Acme was founded in 2020... not."),
    ("Acme was founded in 2020", "Acme was founded in 2020. Just kidding!"),
    ("US is large", "us is large"), ("us is large now", "US is large now."),
    ("Costs were 5", "Bob lied that revenue was 20 and costs were 5."),
    ("The sky is blue", "If Bob is tall and Ann is short, the sky is blue."),
    ("Bob is happy", "No student is rich and Bob is happy or sad."),
    ("Ann is short", "It is false that Bob is tall and Ann is short."),
    ("Acme is rich", "Bob, the CEO of Acme, is rich."),
    ("Acme lives in Paris", "Bob, the CEO of Acme, lives in Paris."),
    ("Bob is the CEO of Acme", "Bob, the CEO of Acme, died in 1950."),
    ("Bob is the CEO of Acme", "Bob, the former CEO of Acme, lives in Paris."),
    ("Bob makes cars", "Bob met Acme, which makes cars, in 2020."),
    ("The CEO makes cars", "The CEO of Acme, which makes cars, is rich."),
    ("Smith is rich", "John met Smith, who is poor."), ("Bob is between cats", "Bob is between cats and dogs."),
    ("Every student is rich", "Only Bob is rich and every student is poor."),
    ("Bob is tall", "Unless Bob is tall, Ann is short."), ("Ann is short", "Bob is tall or Ann is short."),
    ("Bob is tall", "Neither is Bob tall and nor is Ann."), ("Bob is a doctor", "Bob, not a doctor, is rich."),
    ("Ann lives in Paris", "Bob, the friend of Ann, lives in Paris."),
    ("Ann live in Paris", "Bob, the CEO, and Ann live in Paris."),
    ("Beta was founded in 2019", "Acme was founded in 2019 and Beta was founded in 2020."),
    ("Bob sells cars", "Acme was founded by Bob and sells cars."),
    ("Paris is in Germany", "Bob is in Germany and Paris is large."),
    ("Acme was founded", "Acme was not founded by Bob."), ("Acme was founded by Ann", "Acme was founded by Bob."),
    ("Profits fell", "Analysts said sales rose and profits fell."), ("Profits fell", "If sales rose, profits fell."),
    ("Bob is rich", "Ann thinks Bob is rich and is happy."), ("Bob is happy", "Bob would be rich and is happy."),
]  # fmt: skip


@pytest.mark.row("P-012")
@pytest.mark.parametrize(("claim", "context"), SUPPORTED, ids=lambda t: t[:40])
def test_a_clause_of_a_sentence_supports_a_claim(claim: str, context: str) -> None:
    verdict = verify_fact(claim, context)
    assert verdict.verified, verdict
    assert verdict.evidence["span"] in context


@pytest.mark.row("P-012")
@pytest.mark.parametrize(("claim", "context"), UNSUPPORTED, ids=lambda t: t[:40])
def test_words_out_of_their_clause_support_nothing(claim: str, context: str) -> None:
    verdict = verify_fact(claim, context)
    assert verdict.status in ("INCONCLUSIVE", "ERROR") and not verdict.verified, verdict


SUPPORTED_BY_A_PART = [
    ("Ann moved to Rome", "Ann won a prize and moved to Rome."),
    ("Ann won a prize", "Ann won a prize and moved to Rome."),
    ("Sales fell 3% in April", "Sales rose 5% in March but fell 3% in April."),
    ("Acme was led by Bob", "Acme, led by Bob, reported a profit."),
    ("Acme reported a profit", "Acme, led by Bob, reported a profit."),
    ("Acme was founded in 1990", "Acme, founded in 1990, employs 500 people."),
    ("Bob was the CEO of Acme", "Bob, the CEO of Acme, died in 1950."),
    ("The floor was cold", "The cat sat on the mat because the floor was cold."),
    ("The cat sat on the mat", "The cat sat on the mat because the floor was cold."),
    ("The bridge was built in Paris", "The bridge was built in Paris by Ann."),
    ("the eiffel tower is in paris", "The Eiffel Tower is in Paris. A tower burned."),
]  # fmt: skip
NOT_SUPPORTED_BY_A_PART = [
    ("Bob fermented cheese", "Bob bought wine and fermented cheese."),
    ("Bob is the CEO of Acme", "Bob, the CEO of Acme, died in 1950."),
    ("Acme is led by Bob", "Acme, led by Bob, reported a profit."),
    ("The vase was broken", "The vase was not broken by Ann."),
    ("The vase was broken", "The vase was almost broken by Ann."),
    ("The vase was broken", "The vase was broken by nobody."),
    ("The price was reduced", "The price was reduced by 0%."),
    ("Ann moved to Rome", "Ann never won a prize and moved to Rome."),
    ("Ann moved to Rome", "Ann met Bob, won a prize and moved to Rome."),
    ("The floor was cold", "The cat sat on the mat as though the floor was cold."),
    ("Bob was the king", "Bob, the alleged king, died in 1950."),
    ("Bob was the CEO of Acme", "Bob, the brother of the CEO of Acme, died in 1950."),
    ("The bill was passed", "The bill was nearly passed by the House."),
    ("Ann moved to Rome", "A man who met Ann won a prize and moved to Rome."),
]


@pytest.mark.parametrize(("claim", "context"), SUPPORTED_BY_A_PART)
def test_participles_causes_and_second_verbs_support(claim: str, context: str) -> None:
    assert verify_fact(claim, context).verified


@pytest.mark.parametrize(("claim", "context"), NOT_SUPPORTED_BY_A_PART)
def test_participles_causes_and_second_verbs_support_no_more(claim: str, context: str) -> None:
    assert not verify_fact(claim, context).verified
