"""ProvenanceGuard: does content declare its origin as it must?"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from qwed_legal.disclosure import is_disclosed

_REQUIRED = ("content_hash", "model_id", "generation_timestamp")
_RISKS = {
    "hash_integrity": "CONTENT_TAMPERED", "metadata_completeness": "INCOMPLETE_PROVENANCE",
    "disclosure_present": "MISSING_DISCLOSURE",
          "model_allowed": "UNAUTHORIZED_MODEL", "human_review": "UNREVIEWED_CONTENT",
          "timestamp_valid": "INVALID_TIMESTAMP"}  # fmt: skip


@dataclass(frozen=True)
class ProvenanceRecord:
    """The declared origin of a text."""

    content_hash: str
    model_id: str
    generation_timestamp: str
    disclosure_text: str = ""
    human_reviewed: bool = False
    reviewer_id: str | None = None


class ProvenanceGuard:
    """Checks that a declaration fits its content. All of it is declared by the caller: `assurance` is SELF_DECLARED.

    allowed_models None allows all, [] none.
    """

    def __init__(
        self, require_disclosure: bool = True, require_human_review: bool = False,
        allowed_models: Sequence[str] | None = None
    ) -> None:
        self.require_disclosure, self.require_human_review = require_disclosure, require_human_review
        self.allowed_models = None if allowed_models is None else set(allowed_models)

    def verify_provenance(self, content: str, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """A dict with verified, status, risk, message, checks_passed, checks_failed and assurance."""
        if not isinstance(content, str) or not content.strip():
            return _answer({"content_valid": False}, "INVALID_CONTENT")
        if not isinstance(provenance, Mapping):
            return _answer({"provenance_valid": False}, "INVALID_PROVENANCE")
        checks = {
            "metadata_completeness": all(
                isinstance(provenance.get(f), str) and provenance[f].strip() for f in _REQUIRED),
            "hash_integrity": _same_hash(content, provenance.get("content_hash")),
            "timestamp_valid": _past(provenance.get("generation_timestamp")),
        }
        if self.require_disclosure:
            checks["disclosure_present"] = is_disclosed(content)
        if self.allowed_models is not None:
            checks["model_allowed"] = provenance.get("model_id") in self.allowed_models
        if self.require_human_review:
            checks["human_review"] = provenance.get("human_reviewed") is True
        return _answer(checks)

    def generate_provenance(
        self, content: str, model_id: str, disclosure_text: str = "", human_reviewed: bool = False,
        reviewer_id: str | None = None
    ) -> ProvenanceRecord:
        """Return the record of a text that was just generated."""
        now = datetime.now(UTC).isoformat()
        return ProvenanceRecord(
            hashlib.sha256(content.encode()).hexdigest(), model_id, now, disclosure_text, human_reviewed, reviewer_id)


def _same_hash(content: str, given: object) -> bool:
    expected = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return isinstance(given, str) and hmac.compare_digest(
        expected.encode(), given.strip().lower().removeprefix("sha256:").encode("utf-8", "replace")
    )


def _past(given: object) -> bool:
    try:
        moment = datetime.fromisoformat(str(given))
    except ValueError:
        return False
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment <= datetime.now(UTC) + timedelta(minutes=5)


def _answer(checks: dict[str, bool], risk: str = "") -> dict[str, Any]:
    failed = [name for name, passed in checks.items() if not passed]
    return {
        "verified": not failed,
        "status": "ERROR" if failed else "VERIFIED",
        "risk": "" if not failed else risk
        or next((r for name, r in _RISKS.items() if name in failed), "PROVENANCE_VERIFICATION_FAILED"),
        "message": f"Provenance checks failed: {', '.join(failed)}." if failed else "All provenance checks passed.",
        "checks_passed": [name for name, passed in checks.items() if passed],
        "checks_failed": failed,
        "assurance": "SELF_DECLARED",
    }
