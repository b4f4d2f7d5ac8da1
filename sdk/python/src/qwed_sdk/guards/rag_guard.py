"""RAGGuard: do retrieved chunks come from the document that was meant?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from qwed_sdk.guards.answers import allowed, refused


class RAGGuardConfigError(ValueError):
    """max_drm_rate is not an exact fraction from 0 to 1."""


class RAGGuard:
    """Compares the `metadata.document_id` of chunks with the document that was asked for.

    max_drm_rate is the largest share of mismatches that passes, exact: a Fraction, an int, or a text such as "1/10".
    Chunks without a document count as mismatches unless require_metadata is False.
    """

    def __init__(self, max_drm_rate: Fraction | str | int = Fraction(0), require_metadata: bool = True) -> None:
        if isinstance(max_drm_rate, float | bool):
            raise RAGGuardConfigError(
                "max_drm_rate is a Fraction, a text such as '1/10', or an int: floats are not exact")
        try:
            self._limit = Fraction(max_drm_rate)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise RAGGuardConfigError(f"max_drm_rate {max_drm_rate!r} is not a fraction") from error
        if not 0 <= self._limit <= 1:
            raise RAGGuardConfigError("max_drm_rate is from 0 to 1")
        self._require_metadata = require_metadata

    @property
    def max_drm_rate(self) -> Fraction:
        """The largest share of mismatches that passes."""
        return self._limit

    def verify_retrieval_context(self, target_document_id: str, retrieved_chunks: Sequence[Mapping[str, Any]]) -> dict[
        str, Any]:
        """Compare every chunk; the answer has drm_rate, chunks_checked, mismatched_count and details. No chunks
        support nothing and are refused."""
        if not isinstance(target_document_id, str) or not target_document_id:
            raise ValueError("target_document_id is a text that is not empty")
        chunks = list(retrieved_chunks or ())
        if not chunks:
            return refused(
                "NO_CONTEXT",
                "There are no chunks that could support an answer.",
                drm_rate=0.0,
                chunks_checked=0,
                mismatched_count=0,
                details=[],
            )
        details = [d for chunk in chunks if (d := self._mismatch(chunk, target_document_id))]
        rate = Fraction(len(details), len(chunks))
        fields = {
            "drm_rate": float(rate),
            "drm_fraction": str(rate),
            "chunks_checked": len(chunks),
            "mismatched_count": len(details),
            "details": details,
        }
        if rate > self._limit:
            message = (
                f"{len(details)} of {len(chunks)} chunks are not from {target_document_id!r}; {self._limit} may be.")
            return refused("DOCUMENT_RETRIEVAL_MISMATCH", message, **fields)
        return allowed(
            f"{len(chunks) - len(details)} of {len(chunks)} chunks are from {target_document_id!r}.", **fields)

    def _mismatch(self, chunk: Any, target: str) -> dict[str, Any] | None:
        found = _document_of(chunk)
        if found == target or (found is None and not self._require_metadata):
            return None
        issue = "MISSING_DOCUMENT_ID" if found is None else "WRONG_DOCUMENT"
        return {"chunk_id": chunk.get("id", "unknown") if isinstance(chunk, Mapping) else "unknown", "issue": issue,
            "wrong_source": found}

    def filter_valid_chunks(self, target_document_id: str, retrieved_chunks: Sequence[Mapping[str, Any]]) -> list[
        Mapping[str, Any]]:
        """Return the chunks that are not a mismatch."""
        return [c for c in retrieved_chunks if self._mismatch(c, target_document_id) is None]


def _document_of(chunk: Any) -> Any:
    if not isinstance(chunk, Mapping):
        return None
    metadata = chunk.get("metadata")
    found = metadata.get("document_id") if isinstance(metadata, Mapping) else None
    return chunk.get("document_id") if found is None else found
