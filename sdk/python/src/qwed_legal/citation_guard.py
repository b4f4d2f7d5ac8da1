"""CitationGuard: is a citation well formed, and of a reporter that exists?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from eyecite import get_citations
from eyecite.models import FullCaseCitation, FullLawCitation
from reporters_db import EDITIONS, REPORTERS

from qwed_legal import federal_rules
from qwed_new.verdict import Status, Verdict

ENGINE = "legal.citation"
MAX_TEXT = 1_000
_SHAPE = re.compile(r"\b(\d{1,4})\s+([A-Z][\w.' ]{0,30}?)\s+(\d{1,5})\b")


# English law reports, of which reporters-db knows none: (1854) 9 Ex. 341, [1932] AC 562, L.R. 3 H.L. 330, 156 ER 145.
_ENGLISH = re.compile(
    r"\b\d{1,3}\s+(?:Ex(?:ch)?|E\.?\s?R|H\.?\s?L(?:\.?\s?C(?:as)?)?|Q\.?\s?B(?:\.?\s?D)?|K\.?\s?B|Ch(?:\.?\s?D)?|"
    r"Ex\.?\s?D|C\.?\s?P(?:\.?\s?D)?|App\.?\s?Cas|M\.?\s?&\s?W|B\.?\s?&\s?S|E\.?\s?&\s?[BE]"
    r"|Cr\.?\s?App\.?\s?R)\.?\s+\d{1,4}\b|\[\d{4}\]\s+(?:\d\s+)?(?:A\.?C|Q\.?B|K\.?B|Ch|Fam|W\.?L\.?R|All\s?E\.?R"
    r"|Lloyd's Rep|UKSC|UKHL|EWCA (?:Civ|Crim)|EWHC)\.?\s+\d{1,5}\b")


# The titles of the federal codes: 53 of the U.S. Code and 35 of the C.F.R. are reserved.
_TITLES = {
    "USC": frozenset(str(n) for n in range(1, 55) if n != 53),
    "CFR": frozenset(str(n) for n in range(1, 51) if n != 35),
}
_SECTION = r"\d+[A-Za-z]{0,4}(?:[-–.]\d+[A-Za-z]{0,4})*(?:\((?:[A-Za-z]{1,5}|\d{1,3})\))*"
# A citation of a federal code: 42 U.S.C. §§ 1331, 1343; 15 USC 78j(b); 12 C.F.R. pt. 1026; 42 U.S.C.A. § 1983
# (West 2012).
_FEDERAL = re.compile(
    r"(?P<sign>[-−.]\s*)?(?<![\w-])(?P<title>\d+)\s+"
    r"(?P<reporter>U\.?\s?S\.?\s?C(?:\.\s?[AS]\.|[AS](?!\w))?\.?|C\.?\s?F\.?\s?R\.?)(?!\w)"
    r"(?:,?\s*(?:§§?|(?:sections?|secs?\.|parts?|pts?\.)(?!\w))?\s*"
    r"(?P<section>(?:SECTION)(?:\s*(?:[-–,&]|and)\s*SECTION)*))?"
    r"(?:\s+note\b)?(?:,?\s+et seq\.?)?(?:\s*\((?:[A-Z][\w. ]{0,20} )?\d{4}\))?".replace("SECTION", _SECTION), re.I)
# The last volumes of series that have ended, and more volumes than the other series will soon have.
_LAST_VOLUMES = {
    "F.": 300, "F.2d": 999, "F.3d": 999, "F. Supp.": 999, "F. Supp. 2d": 999, "L. Ed.": 100,
    "U.S.": 700, "S. Ct.": 200, "L. Ed. 2d": 400, "F.4th": 999, "F. Supp. 3d": 999,
}  # fmt: skip
_NOMINATIVE = 90  # the volumes of U.S. Reports up to this one were numbered later; they report cases from 1754 to 1875
_SUPREME = frozenset(("U.S.", "S. Ct.", "L. Ed.", "L. Ed. 2d"))
# Words around a citation that do not state anything.
_SIGNALS = frozenset(
    "see also cf eg e g accord compare but with contra id at in re ex parte and v the aff rev d cert denied et "
    "seq".split())


class CitationGuard:
    """Reads citations with eyecite; reporters, their editions and years are those of reporters-db (Free Law Project).

    VERIFIED means that form, reporter and year fit together. It does not mean that the case or section exists, or that
    it holds what a text claims. A text that states more than a citation is INCONCLUSIVE.
    """

    def verify(self, citation: str) -> Verdict:
        """Judge one citation of a case or a statute; the verdict has valid, issues and parsed_components."""
        if not isinstance(citation, str) or not citation.strip() or len(citation) > MAX_TEXT:
            return _verdict(["the citation is empty or too long"], {})
        if (source := federal_rules.judge(citation)) is not None:
            return _verdict(*source)
        if federal := list(_FEDERAL.finditer(citation)):
            return _federal(federal, citation)
        found = [c for c in get_citations(citation) if isinstance(c, FullCaseCitation | FullLawCitation)]
        if not found:
            if series := _ENGLISH.search(citation):
                return _english(series[0])
            shape = _SHAPE.search(citation)
            return _verdict([f"Unknown reporter: {shape[2].strip()}" if shape else "the text is not a citation"], {})
        if len(found) > 1 and not (
            isinstance(found[0], FullCaseCitation) and len({c.span()[0] for c in found}) == len(found)):
            return _verdict(["there is more than one citation"], {})
        is_law = isinstance(found[0], FullLawCitation)
        verdict = self._law(found[0], citation) if is_law else self._case(found[0], citation)
        rest = " ".join([_beyond(citation, [c.full_span() for c in found]), *map(_remark, found)]).strip()
        return _with_rest(verdict, rest)

    def check_statute_citation(self, citation: str) -> Verdict:
        """Judge a citation of a statute."""
        verdict = self.verify(citation)
        return verdict if not verdict.valid or "section" in verdict.parsed_components else _verdict([
            "the citation is of a case"], {})

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

    def _law(self, found: FullLawCitation, text: str) -> Verdict:
        groups = {k: v for k, v in found.groups.items() if v}
        parts: dict[str, Any] = {**groups, "title": int(groups["title"])} if str(
            groups.get("title", "")).isdigit() else groups
        issues = ["the title has a sign"] if re.search(r"[-−.]\s*$", text[: found.span()[0]]) else []
        if str(groups.get("reporter", "")).startswith("Pub. L."):
            issues += _congress(str(groups.get("title", "")))
        return _verdict(issues, {**parts, "section": groups.get("section", "")})

    def _case(self, found: FullCaseCitation, text: str) -> Verdict:
        groups, data = found.groups, found.metadata
        reporter, year = found.corrected_reporter(), int(data.year) if data.year and data.year.isdigit() else None
        parts: dict[str, Any] = {
            "volume": int(groups["volume"]) if str(groups.get("volume")).isdigit() else groups.get("volume"),
            "reporter": reporter,
            "page": int(groups["page"]) if str(groups.get("page")).isdigit() else groups.get("page"),
            "year": year, "plaintiff": data.plaintiff, "defendant": data.defendant, "court": data.court,
        }  # fmt: skip
        issues = []
        if not (data.plaintiff and data.defendant) and not re.match(r"\s*(?:In re|Ex parte|Matter of)\s", text):
            issues.append("the case name (A v. B) is missing")
        years = re.findall(r"\(([^()]*\d{4})\)", text)
        if unclear := [y for y in years if year is None or not re.search(r"(?<!\d)\d{4}$", y)]:
            issues.append(f"the year {unclear[0]!r} is not understood")
        if re.search(r"\d{4}\)\s*\([^()]*\d{4}\)", text):
            issues.append("two years are given")
        if reporter in _SUPREME and data.court not in (None, "scotus"):
            issues.append(f"{reporter} has decisions of the Supreme Court only")
        if year is not None and (span := _years(reporter, parts["volume"])) and not span[0] <= year <= span[1]:
            issues.append(f"{reporter} has the years {span[0]} to {span[1]}, not {year}")
        if re.search(r"\((?:[^()]*\s)?'?\d{2}\)\s*\.?\s*$", text):
            issues.append("the year has two digits")
        if isinstance(parts["volume"], int) and parts["volume"] > _LAST_VOLUMES.get(reporter, parts["volume"]):
            issues.append(f"{reporter} has no volume {parts['volume']}")
        if re.search(r"[-−]$", text[: found.span()[0]]):
            issues.append("the volume has a sign")
        if (circuit := re.search(r"\((\d+)\w\w Cir\.?", text)) and not 1 <= int(circuit[1]) <= 11:
            issues.append(f"there is no {circuit[0][1:]}")
        if not parts["page"] or not parts["volume"]:
            issues.append("volume or page is missing")
        return _verdict(issues, parts)


def _years(reporter: str, volume: int | str | None) -> tuple[int, int] | None:
    if reporter == "U.S." and isinstance(volume, int) and volume <= _NOMINATIVE:
        return 1754, 1875
    for entry in REPORTERS.get(EDITIONS.get(reporter, ""), ()):
        edition = entry["editions"].get(reporter)
        if edition and edition.get("start"):
            end = edition.get("end") or datetime.now(UTC)
            return edition["start"].year, end.year
    return None


def _congress(number: str) -> list[str]:
    """Return what is wrong with the number of a public law: the Congress, which sits for two years, and its law."""
    match, sitting = re.fullmatch(r"(\d{1,3})[-–](\d{1,4})", number), (datetime.now(UTC).year - 1789) // 2 + 1
    if match is None or not int(match[2]):
        return [f"the number {number!r} of the public law is not understood"]
    return [] if 1 <= int(match[1]) <= sitting else [f"there was no {match[1]}th Congress"]


def _federal(found: list[re.Match[str]], text: str) -> Verdict:
    """Judge a citation of the U.S. Code or the C.F.R."""
    if len(found) > 1:
        return _verdict(["there is more than one citation"], {})
    match = found[0]
    title, section = match["title"], match["section"] or ""
    code = "CFR" if match["reporter"][0] in "Cc" else "USC"
    issues = [] if title in _TITLES[code] else [f"{'.'.join(code)}. has no title {title}"]
    if not re.search(r"[1-9]", section):
        issues.append("the section is missing")
    elif re.match(r"[\w(§]|[-–.]\w|\s*(?:U\.?\s?S\.?\s?C|C\.?\s?F\.?\s?R)\b", text[match.end() :]):
        issues.append(f"the section {section + text[match.end() :][:20]!r} is not understood")
    if match["sign"] or re.search(r"\d\.$", text[: match.start()]):
        issues.append("the title has a sign")
    parts = {"title": int(title), "reporter": match["reporter"], "section": section}
    return _with_rest(_verdict(issues, parts), _beyond(text, [match.span()]))


def _with_rest(verdict: Verdict, rest: str) -> Verdict:
    """Return a verdict on a citation, undecided if the text states more than the citation."""
    if not rest or not verdict.valid:
        return verdict
    message = f"the citation is well formed; nothing else in the text was checked: {rest[:80]!r}"
    evidence = {**verdict.evidence, "not_checked": rest}
    return Verdict(Status.INCONCLUSIVE, ENGINE, message, evidence, **_fields([], verdict.parsed_components))


def _verdict(issues: list[str], parts: dict[str, Any]) -> Verdict:
    fields = _fields(issues, parts)
    evidence = {
        "parsed": parts,
        "sources": "eyecite, reporters-db",
        "not_decided": "whether the case or section exists and says what is claimed",
    }
    if issues:
        return Verdict(Status.ERROR, ENGINE, "; ".join(issues), evidence, **fields)
    message = (
        "the citation is well formed and its reporter is known; whether it exists, and what it holds, was not checked")
    return Verdict(Status.VERIFIED, ENGINE, message, evidence, **fields)


def _english(citation: str) -> Verdict:
    message = f"{citation!r} is of the English law reports, which are not known here; only American reporters are"
    return Verdict(Status.INCONCLUSIVE, ENGINE, message, {"citation": citation}, **_fields([message], {}))


def _fields(issues: list[str], parts: dict[str, Any]) -> dict[str, Any]:
    return {"valid": not issues, "issues": issues, "parsed_components": parts}


def _remark(found: FullCaseCitation | FullLawCitation) -> str:
    """Return what the parentheses of a citation state about the case, unless it only describes the decision."""
    text = getattr(found.metadata, "parenthetical", None) or ""
    described = re.fullmatch(
        r"(?:per curiam|en banc|plurality(?: opinion)?|mem\.|table"
        r"|[\w., ]{1,40} (?:concurring|dissenting))\.?", text, re.I)
    return "" if described else text


def _beyond(text: str, spans: list[tuple[int, int]]) -> str:
    """Return what a text has beside its citations, signals and dates: a statement that nothing here verifies."""
    if re.fullmatch(r"[A-Z][\w&'.-]*(?: [A-Z&][\w&'.-]*)*\.\s+", text[: spans[0][0]]):  # Chevron U.S.A. Inc. v. …
        spans = [(0, spans[0][1]), *spans[1:]]
    rest = "".join(" " if any(a <= i < b for a, b in spans) else c for i, c in enumerate(text))
    rest = re.sub(r"\([^()]*\)|§+", " ", rest)
    words = [w for w in re.findall(r"(?<![\w.-])[^\W\d_]{2,}", rest) if w.lower() not in _SIGNALS]
    return " ".join(rest.split()) if words else ""
