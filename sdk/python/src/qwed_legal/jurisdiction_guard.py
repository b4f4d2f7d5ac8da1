"""JurisdictionGuard: do choice of law, forum and conventions fit together?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qwed_legal.places import place
from qwed_new.money import amount
from qwed_new.verdict import Status, Verdict

ENGINE = "legal.jurisdiction"

# United Nations Convention on Contracts for the International Sale of Goods (Vienna, 1980): states that are parties to
# it. Source: the status of 13 June 2014 as Pace University's Institute of International Commercial Law published it,
# from UNCITRAL (81 states); since then Madagascar (2014), Viet Nam (2015) and Portugal (2020) by the treaty collection
# of the United Nations, chapter X, 10. A state that is not here may have joined since, and is not decided; so is Hong
# Kong.
CISG_PARTIES = frozenset(
    "AR AU AT BY BE BA BR BG CA CL CN CO HR CU CY CZ DK EC EG SV EE FI FR GE DE GR GN HN HU IS IQ IL IT JP KG LV LB "
    "LS LR LT LU MK MG MR MX MD MN ME NL NZ NO PY PE PL PT KR RO RU RS SG SK SI ES SE CH SY TR UG UA US UY UZ VN "
    "ZM".split()
)
# Convention on the Recognition and Enforcement of Foreign Arbitral Awards (New York, 1958): parties among large
# economies.
NEW_YORK_PARTIES = frozenset(
    "AR AU AT BE BR BG CA CL CN CO HR CY CZ DK EG EE FI FR DE GR HU IS IN ID IE IL IT JP KE KR LV LT LU MY MT MX NL "
    "NZ NG NO PK PE PH PL PT RO RU SA SG SK SI ZA ES SE CH TH TR UA AE GB US UY VN".split()
)


class JurisdictionGuard:
    """Look up places and conventions. Anything that is not in the tables is INCONCLUSIVE."""

    def verify_choice_of_law(
        self,
        parties_countries: Sequence[str],
        governing_law: str,
        forum: str | None = None,
        forum_selection: str | None = None,
        contract_type: str | None = None,
    ) -> Verdict:
        """Return ERROR with `conflicts` if law and forum are in different places. `warnings` lists points to review."""
        forum = forum or forum_selection
        law, court = place(governing_law), place(forum) if forum else None
        parties = [place(p) for p in parties_countries]
        unknown = [
            str(t)
            for t, p in [(governing_law, law), *([(forum, court)] if forum else []),
                *zip(parties_countries, parties, strict=True)]
            if p is None
        ]
        conflicts: list[str] = []
        warnings: list[str] = []
        if law and court and law[0] != court[0]:
            conflicts.append(
                f"the governing law is of {governing_law}, the forum is {forum}: a court would apply foreign law")
        elif law and court and law[1] and court[1] and law[1] != court[1]:
            conflicts.append(f"the governing law is of {governing_law}, the forum is in {forum}")
        countries = {p[0] for p in parties if p}
        if law and countries and law[0] not in countries:
            warnings.append(f"no party is of the place of the governing law, {governing_law}")
        if law and len(countries) > 1 and countries <= CISG_PARTIES and "good" in (contract_type or "").lower():
            warnings.append("the CISG applies to the sale of goods between these parties unless it is excluded")
        evidence = {"governing_law": law, "forum": court, "parties": parties}
        fields: dict[str, Any] = {"conflicts": conflicts, "warnings": warnings}
        if conflicts:
            return Verdict(Status.ERROR, ENGINE, "; ".join(conflicts), evidence, **fields)
        if unknown or not parties_countries:
            return Verdict(
                Status.INCONCLUSIVE, ENGINE, f"not known: {', '.join(unknown) or 'the parties'}", evidence, **fields)
        return Verdict(Status.VERIFIED, ENGINE, "the governing law and the forum are of one place", evidence, **fields)

    def check_convention_applicability(self, parties_countries: Sequence[str], convention: str) -> Verdict:
        """Decide whether the CISG, or the New York Convention, applies between parties of these countries."""
        name = convention.strip().lower() if isinstance(convention, str) else ""
        codes = [found[0] if (found := place(p)) else None for p in parties_countries]
        evidence = {"parties": dict(zip(map(str, parties_countries), codes, strict=False)), "convention": convention}
        fields: dict[str, Any] = {"conflicts": [], "warnings": []}
        if None in codes or not codes:
            return Verdict(Status.INCONCLUSIVE, ENGINE, "a party's country is not known", evidence, **fields)
        if name in ("cisg", "vienna convention", "un convention on contracts for the international sale of goods"):
            if len(set(codes)) < 2:
                return Verdict(
                    Status.ERROR, ENGINE, "the CISG does not govern: the parties are of one country", evidence,
                    **fields)
            if set(codes) <= CISG_PARTIES:
                return Verdict(
                    Status.VERIFIED, ENGINE, "the CISG applies to sales of goods between these parties unless excluded",
                    evidence, **fields
                )
            return Verdict(
                Status.INCONCLUSIVE, ENGINE, "whether each country is a party to the CISG is not in the table",
                evidence, **fields
            )
        if name in ("new york convention", "new york", "nyc"):
            if set(codes) <= NEW_YORK_PARTIES:
                return Verdict(
                    Status.VERIFIED, ENGINE, "the New York Convention applies between these countries", evidence,
                    **fields)
            return Verdict(
                Status.INCONCLUSIVE,
                ENGINE,
                "whether each country is a party to the New York Convention is not in the table",
                evidence,
                **fields,
            )
        return Verdict(
            Status.INCONCLUSIVE, ENGINE, f"the convention {convention!r} is not in the tables", evidence, **fields)

    def verify_forum_selection(
        self, forum: str, contract_value: Any = None, contract_type: str | None = None) -> Verdict:
        """Decide whether a forum is a known place. For US federal courts, the amount must exceed 75,000 dollars (28
        U.S.C. § 1332)."""
        found = place(forum)
        fields: dict[str, Any] = {"conflicts": [], "warnings": []}
        evidence: dict[str, Any] = {"forum": found}
        try:
            value = None if contract_value is None else amount(contract_value)
        except ValueError as error:
            return Verdict(Status.INCONCLUSIVE, ENGINE, f"not decided: {error}", evidence, **fields)
        if found is None:
            return Verdict(Status.INCONCLUSIVE, ENGINE, f"the place {forum!r} is not known", evidence, **fields)
        federal = found[0] == "US" and any(w in forum.lower() for w in ("federal", "district court"))
        if federal and value is not None and value <= 75_000:
            message = (
                "a federal court needs more than 75,000 dollars in controversy (28 U.S.C. § 1332(a)) where it rests "
                "on diversity")
            return Verdict(Status.ERROR, ENGINE, message, evidence, conflicts=[message], warnings=[])
        return Verdict(
            Status.VERIFIED, ENGINE, f"{forum} is a known place; whether its courts accept the case is not decided",
            evidence, **fields
        )
