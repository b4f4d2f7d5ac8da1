"""LegalGuard: all guards of this package in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qwed_legal.citation_guard import CitationGuard
from qwed_legal.deadline_guard import DeadlineGuard
from qwed_legal.jurisdiction_guard import JurisdictionGuard
from qwed_legal.liability_guard import LiabilityGuard
from qwed_legal.provenance_guard import ProvenanceGuard
from qwed_legal.statute_guard import StatuteOfLimitationsGuard
from qwed_new.verdict import Verdict


class LegalGuard:
    """Hands each question to the guard that decides it."""

    def __init__(self, country: str = "US", provenance_config: Mapping[str, Any] | None = None) -> None:
        self.deadline, self.liability, self.citation = DeadlineGuard(country), LiabilityGuard(), CitationGuard()
        self.jurisdiction, self.statute = JurisdictionGuard(), StatuteOfLimitationsGuard()
        self.provenance = ProvenanceGuard(**dict(provenance_config or {}))

    def verify_deadline(self, signing_date: str, term: str, claimed_deadline: str) -> Verdict:
        """See DeadlineGuard.verify."""
        return self.deadline.verify(signing_date, term, claimed_deadline)

    def verify_liability_cap(self, contract_value: Any, cap_percentage: Any, claimed_cap: Any) -> Verdict:
        """See LiabilityGuard.verify_cap."""
        return self.liability.verify_cap(contract_value, cap_percentage, claimed_cap)

    def verify_citation(self, citation: str) -> Verdict:
        """See CitationGuard.verify."""
        return self.citation.verify(citation)

    def verify_jurisdiction(
        self, parties_countries: Sequence[str], governing_law: str, forum: str | None = None, **more: Any) -> Verdict:
        """See JurisdictionGuard.verify_choice_of_law."""
        return self.jurisdiction.verify_choice_of_law(parties_countries, governing_law, forum, **more)

    def verify_statute_of_limitations(
        self, claim_type: str, jurisdiction: str, incident_date: str, filing_date: str) -> Verdict:
        """See StatuteOfLimitationsGuard.verify."""
        return self.statute.verify(claim_type, jurisdiction, incident_date, filing_date)

    def verify_provenance(self, content: str, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """See ProvenanceGuard.verify_provenance."""
        return self.provenance.verify_provenance(content, provenance)
