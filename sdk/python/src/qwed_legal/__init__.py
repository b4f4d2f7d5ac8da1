"""Guards of legal work: deadlines, citations, liability, jurisdiction, limitation periods, provenance.

They decide what can be computed or looked up, and call the rest INCONCLUSIVE. None of it is legal advice.
"""

from qwed_legal.citation_guard import CitationGuard
from qwed_legal.deadline_guard import DeadlineGuard
from qwed_legal.jurisdiction_guard import JurisdictionGuard
from qwed_legal.legal_guard import LegalGuard
from qwed_legal.liability_guard import LiabilityGuard
from qwed_legal.provenance_guard import ProvenanceGuard, ProvenanceRecord
from qwed_legal.statute_guard import StatuteOfLimitationsGuard

__all__ = [
    "CitationGuard",
    "DeadlineGuard",
    "JurisdictionGuard",
    "LegalGuard",
    "LiabilityGuard",
    "ProvenanceGuard",
    "ProvenanceRecord",
    "StatuteOfLimitationsGuard",
]
