"""CitationGuard: is a citation well formed, and of a reporter that exists?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from eyecite import get_citations
from eyecite.models import FullCaseCitation, FullLawCitation
from reporters_db import EDITIONS, REPORTERS

from qwed_new.verdict import Status, Verdict

ENGINE = "legal.citation"
MAX_TEXT = 1_000
_SHAPE = re.compile(r"\b(\d{1,4})\s+([A-Z][\w.' ]{0,30}?)\s+(\d{1,5})\b")


class CitationGuard:
    """Reads citations with eyecite; reporters, their editions and years are those of reporters-db (Free Law Project).

    VERIFIED means that form, reporter and year fit together. Whether the case exists and says what is claimed is not decided.
    """

    def verify(self, citation: str) -> Verdict:
        """Judge one citation of a case or a statute; the verdict has valid, issues and parsed_components."""
        if not isinstance(citation, str) or not citation.strip() or len(citation) > MAX_TEXT:
            return _verdict(["the citation is empty or too long"], {})
        found = [c for c in get_citations(citation) if isinstance(c, FullCaseCitation | FullLawCitation)]
        if not found:
            shape = _SHAPE.search(citation)
            return _verdict([f"Unknown reporter: {shape[2].strip()}" if shape else "the text is no citation"], {})
        if len(found) > 1 and not (isinstance(found[0], FullCaseCitation) and len({c.span()[0] for c in found}) == len(found)):
            return _verdict(["there is more than one citation"], {})
        return self._law(found[0]) if isinstance(found[0], FullLawCitation) else self._case(found[0], citation)

    def check_statute_citation(self, citation: str) -> Verdict:
        """Judge a citation of a statute."""
        verdict = self.verify(citation)
        return verdict if not verdict.valid or "section" in verdict.parsed_components else _verdict(["the citation is of a case"], {})

    def verify_batch(self, citations: Sequence[str]) -> Verdict:
        """Judge many; the verdict has total, valid, invalid and results."""
        results = [self.verify(c) for c in citations]
        valid = sum(1 for r in results if r.valid)
        status = Status.VERIFIED if results and valid == len(results) else Status.ERROR
        return Verdict(
            status,
            ENGINE,
            f"{valid} of {len(results)} citations are well formed",
            total=len(results),
            valid=valid,
            invalid=len(results) - valid,
            results=results,
        )

    def _law(self, found: FullLawCitation) -> Verdict:
        groups = {k: v for k, v in found.groups.items() if v}
        parts: dict[str, Any] = {**groups, "title": int(groups["title"])} if str(groups.get("title", "")).isdigit() else groups
        return _verdict([], {**parts, "section": groups.get("section", "")})

    def _case(self, found: FullCaseCitation, text: str) -> Verdict:
        groups, data = found.groups, found.metadata
        reporter, year = found.corrected_reporter(), int(data.year) if data.year and data.year.isdigit() else None
        parts: dict[str, Any] = {
            "volume": int(groups["volume"]) if str(groups.get("volume")).isdigit() else groups.get("volume"),
            "reporter": reporter, "page": int(groups["page"]) if str(groups.get("page")).isdigit() else groups.get("page"),
            "year": year, "plaintiff": data.plaintiff, "defendant": data.defendant, "court": data.court,
        }  # fmt: skip
        issues = []
        if not (data.plaintiff and data.defendant) and not re.match(r"\s*(?:In re|Ex parte|Matter of)\s", text):
            issues.append("the case name (A v. B) is missing")
        years = re.findall(r"\(([^()]*)\)\s*\.?\s*$", text)
        if years and re.search(r"\d{4}", years[0]) and year is None:
            issues.append(f"the year {years[0]!r} is not understood")
        if year is not None and (span := _years(reporter)) and not span[0] <= year <= span[1]:
            issues.append(f"{reporter} has the years {span[0]} to {span[1]}, not {year}")
        if not parts["page"] or not parts["volume"]:
            issues.append("volume or page is missing")
        return _verdict(issues, parts)


def _years(reporter: str) -> tuple[int, int] | None:
    for entry in REPORTERS.get(EDITIONS.get(reporter, ""), ()):
        edition = entry["editions"].get(reporter)
        if edition and edition.get("start"):
            return edition["start"].year, edition["end"].year if edition.get("end") else 9999
    return None


def _verdict(issues: list[str], parts: dict[str, Any]) -> Verdict:
    fields = {"valid": not issues, "issues": issues, "parsed_components": parts}
    evidence = {
        "parsed": parts,
        "sources": "eyecite, reporters-db",
        "not_decided": "whether the case or section exists and says what is claimed",
    }
    if issues:
        return Verdict(Status.ERROR, ENGINE, "; ".join(issues), evidence, **fields)
    return Verdict(Status.VERIFIED, ENGINE, "the citation is well formed and its reporter is known", evidence, **fields)
