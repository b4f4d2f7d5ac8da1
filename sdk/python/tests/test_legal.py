"""The guards of legal work."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path

import pytest

from qwed_legal import (
    CitationGuard,
    DeadlineGuard,
    JurisdictionGuard,
    LegalGuard,
    LiabilityGuard,
    ProvenanceGuard,
    StatuteOfLimitationsGuard,
)
from qwed_legal.disclosure import is_disclosed


@pytest.mark.row("Q-027", "Q-061", "Q-075")
@pytest.mark.parametrize(
    ("signed", "term", "claimed", "verified", "computed"),
    [
        ("2026-01-15", "30 business days", "2026-02-14", False, "2026-03-02"),
        ("2026-01-15", "30 business days", "2026-03-02", True, "2026-03-02"),
        ("2026-01-15", "30 days", "2026-02-14", True, "2026-02-14"),
        ("2024-02-28", "1 day", "2024-02-29", True, "2024-02-29"), ("2023-02-28", "1 day", "2023-02-29", False, None),
        ("2026-01-15", "2 weeks", "2026-01-29", True, "2026-01-29"),
        ("2026-01-31", "1 month", "2026-02-28", True, "2026-02-28"),
        ("2024-02-29", "1 year", "2025-02-28", True, "2025-02-28"),
        ("2026-01-15", "thirty (30) days", "2026-02-14", True, "2026-02-14"),
        ("2026-01-15", "6 months and 10 days", "2026-07-25", True, "2026-07-25"),
        ("January 15, 2026", "30 days", "14 February 2026", True, "2026-02-14"),
        ("2026-07-02", "1 business day", "2026-07-06", True, "2026-07-06"),
        ("01/02/2026", "30 days", "2026-02-14", False, None),
        ("2026-01-15", "a reasonable time", "2026-02-14", False, None),
        ("2026-01-15", "99999 years", "2026-02-14", False, None),
        ("2026-01-15", "99999 business days", "2026-02-14", False, None), ("", "", "", False, None),
        ("２０２６-01-15", "30 days", "2026-02-14", False, None),
    ],
)  # fmt: skip
def test_deadlines(signed: str, term: str, claimed: str, verified: bool, computed: str | None) -> None:
    result = DeadlineGuard(country="US").verify(signed, term, claimed)
    assert result.verified is verified
    assert result.computed_deadline == (date.fromisoformat(computed) if computed else None)
    assert computed or result.status == "INCONCLUSIVE"


def test_deadlines_of_other_calendars() -> None:
    assert DeadlineGuard("DE").verify("2026-04-30", "1 business day", "2026-05-04").verified
    assert DeadlineGuard("ZZ").verify("2026-04-30", "1 business day", "2026-05-04").status == "INCONCLUSIVE"


@pytest.mark.row("Q-063", "Q-077")
def test_liability() -> None:
    guard = LiabilityGuard()
    assert guard.verify_cap(5_000_000, 200, 10_000_000).verified and not guard.verify_cap(
        5_000_000, 200, 15_000_000).verified
    assert guard.verify_cap("1,000,000.01", "33.3", "333000.00").verified and not guard.verify_cap(
        "1,000,000.01", "33.3", "333000.01").verified
    assert guard.verify_cap(0.1, 300, 0.3).verified
    assert guard.verify_tiered_liability([{"base": 1_000_000, "percentage": 100}, {"base": 500_000, "percentage": 50}],
        1_250_000).verified
    assert guard.verify_indemnity_limit(100_000, 3, 300_000).verified and not guard.verify_indemnity_limit(
        100_000, 3, 400_000).verified
    for bad in (float("nan"), float("inf"), None, "x", True):
        assert guard.verify_cap(bad, 100, 1).status == "INCONCLUSIVE"


@pytest.mark.row("Q-062", "Q-076")
@pytest.mark.parametrize(
    ("citation", "valid"),
    [
        ("Brown v. Board of Education, 347 U.S. 483 (1954)", True), ("Smith v. Jones, 123 F.3d 456 (2020)", True),
        ("42 U.S.C. § 1983", True), ("999 X.Y.Z 1", False),
        ("Fake v. Case, 999 X.Y.Z. 123 (2020)", False), ("123 U.S. 456 (1990)", False), ("", False),
        ("Brown v. Board, 347 U.S. 483 (1775)", False), ("hello", False),
        ("Smith v. Jones, 12 F.4th 34 (1950)", False), ("判例 v. 判例", False), ("a" * 5000, False),
    ],
)  # fmt: skip
def test_citations(citation: str, valid: bool) -> None:
    result = CitationGuard().verify(citation)
    assert (result.valid, result.verified, bool(result.issues)) == (valid, valid, not valid), result


def test_citations_in_batches_and_parts() -> None:
    parts = CitationGuard().verify("Brown v. Board of Education, 347 U.S. 483 (1954)").parsed_components
    assert (parts["volume"], parts["reporter"], parts["page"], parts["year"]) == (347, "U.S.", 483, 1954)
    assert CitationGuard().check_statute_citation("42 U.S.C. § 1983").parsed_components["title"] == 42
    batch = CitationGuard().verify_batch(["Brown v. Board, 347 U.S. 483 (1954)", "Invalid v. Citation, 999 FAKE 123"])
    assert (batch.total, batch.valid, batch.invalid) == (2, 1, 1)


@pytest.mark.row("Q-064")
def test_jurisdiction() -> None:
    guard = JurisdictionGuard()
    assert guard.verify_choice_of_law(
        parties_countries=["US", "US"], governing_law="Delaware", forum="Delaware").verified
    conflict = guard.verify_choice_of_law(["US", "UK"], "Delaware", "London")
    assert conflict.status == "ERROR" and conflict.conflicts
    assert guard.verify_choice_of_law(["US", "Atlantis"], "Delaware").status == "INCONCLUSIVE"
    applies = guard.check_convention_applicability(["US", "DE"], "CISG")
    assert applies.verified and "applies" in applies.message
    # it may have joined since the table was made
    assert guard.check_convention_applicability(["US", "GB"], "CISG").status == "INCONCLUSIVE"
    assert guard.check_convention_applicability(["US", "HK"], "CISG").status == "INCONCLUSIVE"
    assert guard.check_convention_applicability(["US", "DE"], "Hague").status == "INCONCLUSIVE"
    assert guard.verify_forum_selection("NY", contract_value=100000).verified
    assert guard.verify_forum_selection("federal district court of Delaware", contract_value=75000).status == "ERROR"
    assert guard.verify_forum_selection("Mars").status == "INCONCLUSIVE"


@pytest.mark.row("Q-065")
@pytest.mark.parametrize(
    ("claim", "place", "incident", "filed", "status"),
    [
        ("breach_of_contract", "California", "2024-01-15", "2026-06-01", "VERIFIED"),
        ("breach_of_contract", "California", "2018-01-15", "2026-06-01", "ERROR"),
        ("breach of contract", "California", "2020-03-02", "2024-03-02", "VERIFIED"),
        ("breach_of_contract", "New York", "2020-01-15", "2026-01-15", "VERIFIED"),
        ("breach_of_contract", "New York", "2020-01-15", "2026-01-16", "ERROR"),
        ("breach_of_contract", "Atlantis", "2020-01-15", "2026-01-16", "INCONCLUSIVE"),
        ("witchcraft", "California", "2020-01-15", "2026-01-16", "INCONCLUSIVE"),
        ("breach_of_contract", "India", "2024-02-29", "2027-02-28", "VERIFIED"),
        ("breach_of_contract", "California", "2026-01-15", "2025-01-15", "ERROR"),
        ("breach_of_contract", "California", "x", "y", "INCONCLUSIVE"),
        ("breach_of_contract", "California", "2022-01-15", "2026-01-15", "VERIFIED"),
        ("defamation", "California", "2024-06-08", "2025-06-09", "INCONCLUSIVE"),
    ],
)  # fmt: skip
def test_limitation_periods(claim: str, place: str, incident: str, filed: str, status: str) -> None:
    result = StatuteOfLimitationsGuard().verify(claim, place, incident, filed)
    assert result.status == status, result
    assert status not in ("VERIFIED",) or result.evidence["source"]


def test_limitation_periods_compared() -> None:
    guard = StatuteOfLimitationsGuard()
    assert guard.compare_jurisdictions("breach_of_contract", ["California", "New York", "Delaware", "Mars"]) == {
        "California": 4.0, "New York": 6.0, "Delaware": 3.0, "Mars": None}


@pytest.mark.row("Q-028")
def test_provenance() -> None:
    content = "This AI-generated memo reviews the indemnification terms."
    good = {"content_hash": hashlib.sha256(content.encode()).hexdigest(), "model_id": "claude-4.5-sonnet",
        "generation_timestamp": "2026-03-24T12:00:00+00:00"}
    result = ProvenanceGuard(require_disclosure=True).verify_provenance(content, good)
    assert result["verified"] and result["checks_passed"] == [
        "metadata_completeness", "hash_integrity", "timestamp_valid", "disclosure_present"]
    for change in ({"content_hash": "0" * 64}, {"content_hash": None}, {"model_id": ""},
        {"generation_timestamp": "tomorrow"}, {"generation_timestamp": "2999-01-01T00:00:00"}):
        assert not ProvenanceGuard().verify_provenance(content, {**good, **change})["verified"], change
    plain = "This memo was not AI-generated."
    assert not ProvenanceGuard().verify_provenance(
        plain, {**good, "content_hash": hashlib.sha256(plain.encode()).hexdigest()})["verified"]
    assert not ProvenanceGuard(allowed_models=[]).verify_provenance(content, good)["verified"]
    assert not ProvenanceGuard(require_human_review=True).verify_provenance(content, {**good, "human_reviewed": "yes"})[
        "verified"]
    record = ProvenanceGuard().generate_provenance(content, "m")
    assert ProvenanceGuard().verify_provenance(content, vars(record))["verified"]


@pytest.mark.row("Q-029")
def test_all_in_one() -> None:
    guard = LegalGuard()
    assert guard.verify_deadline("2026-01-15", "30 days", "2026-02-14").verified and guard.verify_liability_cap(
        5_000_000, 200, 10_000_000).verified
    assert guard.verify_citation(
        "Brown v. Board of Education, 347 U.S. 483 (1954)").valid and guard.verify_jurisdiction(["US"], "Delaware",
            "Delaware").verified
    assert guard.verify_statute_of_limitations("breach_of_contract", "California", "2024-01-15", "2026-06-01").verified


@pytest.mark.row("Q-065")
@pytest.mark.parametrize(
    ("claim", "where", "years"),
    [
        ("breach_of_contract", "England", 6.0), ("breach_of_contract", "London", 6.0),
        ("breach_of_contract", "Scotland", None), ("breach_of_contract", "UK", None),
        ("breach_of_contract", "Northern Ireland", None),
        ("property_damage", "Delaware", None), ("personal_injury", "Delaware", 2.0),
        ("breach_of_contract", "Georgia", None),
    ],
)  # fmt: skip
def test_periods_are_those_of_one_legal_system(claim: str, where: str, years: float | None) -> None:
    assert StatuteOfLimitationsGuard().get_limitation_period(claim, where) == years
    status = StatuteOfLimitationsGuard().verify(claim, where, "2024-01-15", "2025-01-15").status
    assert (status == "VERIFIED") is (years is not None)


@pytest.mark.row("Q-064")
def test_law_and_forum_of_two_legal_systems_of_one_country_conflict() -> None:
    assert JurisdictionGuard().verify_choice_of_law(["UK", "US"], "Scotland", "London").status == "ERROR"
    assert JurisdictionGuard().verify_choice_of_law(["UK", "US"], "England and Wales", "London").verified


@pytest.mark.parametrize(
    ("text", "disclosed"),
    [
        ("We detect AI-generated content.", False), ("Our policy covers AI-generated text.", False),
        ("Any claim that this was generated by AI is mistaken.", False), ("It was AI-generated, he joked.", False),
        ("I doubt that this was generated by AI.", False), ("He said it was AI-generated; that is wrong.", False),
        ("The other document was generated by AI.", False), ("Please report AI-generated spam.", False),
        ("This report was generated by AI.", True), ("As required by law, this text was generated by AI.", True),
        ("In line with our policy, this summary is AI-generated.", True),
    ],
)  # fmt: skip
def test_statements_about_other_texts_disclose_nothing(text: str, disclosed: bool) -> None:
    """Issue 26: only a statement about the text itself is a disclosure."""
    assert is_disclosed(text) == disclosed


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Foo v. Bar, 12 F.3d 34 (2099)", "ERROR"), ("Brown v. Board, 347 U.S. 483 (19545)", "ERROR"),
        ("-1 U.S.C. § 1", "ERROR"), ("42 U.S.C. § 0", "ERROR"), ("Foo v. Bar, 347 U.S. 483 (1954) (2020)", "ERROR"),
        ("Foo v. Bar, 347 U.S. 483 (9th Cir. 1954)", "ERROR"),
        ("Roe v. Wade, 410 U.S. 113 (1973) (per curiam)", "VERIFIED"),
        ("Brown v. Board of Education, 347 U.S. 483 (1954) (holding that segregation is legal)", "INCONCLUSIVE"),
        ("Foo v. Bar, 12 F.3d 34 (N.D. Cal. Mar. 3, 2001)", "VERIFIED"),
        ("Foo v. Bar, 347 U.S. 483, 74 S. Ct. 686 (1954)", "VERIFIED"),
        ("Foo v. Bar, 12 F.3d 34 (9th Cir. 1999) (en banc)", "VERIFIED"),
    ],
)  # fmt: skip
def test_years_courts_and_remarks_of_citations(text: str, status: str) -> None:
    """Issue 26: a remark in parentheses is a claim that is not verified, and years and courts have to fit."""
    assert CitationGuard().verify(text).status == status


@pytest.mark.parametrize("citation", [
    "9 Ex. 341", "Hadley v. Baxendale, 9 Ex. 341 (1854)", "Hadley v. Baxendale, 9 Exch. 341 (1854)",
    "Donoghue v Stevenson [1932] AC 562", "R v Dudley and Stephens (1884) 14 QBD 273",
    "Carlill v Carbolic Smoke Ball Co [1893] 1 QB 256", "Rylands v. Fletcher, L.R. 3 H.L. 330 (1868)",
    "Caparo v Dickman [1990] 2 AC 605",
])  # fmt: skip
def test_a_citation_of_the_english_reports_is_not_refuted(citation: str) -> None:
    """Issue 26: an unknown series is not an error."""
    verdict = CitationGuard().verify(citation)
    assert verdict.status == "INCONCLUSIVE" and not verdict.valid, verdict


@pytest.mark.parametrize("citation", ["9 Zx. 341", "Mahoney v. Bar, 9 Zx. 341 (1854)", "Hadley v. Baxendale, Ex. 341"])
def test_an_unknown_reporter_is_an_error(citation: str) -> None:
    assert CitationGuard().verify(citation).status == "ERROR"


def _rows(name: str) -> list[list[str]]:
    lines = (Path(__file__).parent / "programs" / name).read_text().splitlines()
    return [line.split(" ", 1) for line in lines if not line.startswith("#")]


@pytest.mark.row("Q-076")
@pytest.mark.parametrize(("kind", "citation"), _rows("citation_forms.txt"))
def test_forms_of_citations(kind: str, citation: str) -> None:
    assert CitationGuard().verify(citation).verified == (kind == "V")


@pytest.mark.parametrize(("kind", "content"), _rows("disclosures.txt"))
def test_only_a_statement_about_the_text_itself_discloses(kind: str, content: str) -> None:
    assert is_disclosed(content) == (kind == "T")
