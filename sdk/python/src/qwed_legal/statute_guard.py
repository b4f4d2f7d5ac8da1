"""StatuteOfLimitationsGuard: is a claim filed in time?"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from importlib.resources import files

from dateutil.relativedelta import relativedelta

from qwed_legal.places import place
from qwed_new.calendar_dates import read_date
from qwed_new.verdict import Status, Verdict

ENGINE = "legal.statute"
_SAME = {
    "contract": "breach_of_contract",
    "written_contract": "breach_of_contract",
    "negligence": "personal_injury",
    "libel": "defamation",
    "slander": "defamation",
}


@functools.cache
def _table() -> dict[tuple[str, str], tuple[Decimal, str]]:
    table = {}
    for line in files("qwed_legal").joinpath("limitation_periods.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            jurisdiction, claim, years, source = line.split("\t")
            table[jurisdiction, claim] = (Decimal(years), source)
    return table


class StatuteOfLimitationsGuard:
    """Check limitation periods with limitation_periods.tsv, which names the statute for each; others are INCONCLUSIVE.

    The period runs from the incident. Discovery rules, tolling and transitional law are not decided, which the verdict
    states.
    """

    def verify(self, claim_type: str, jurisdiction: str, incident_date: str, filing_date: str) -> Verdict:
        """VERIFIED when filed within the period; the verdict has limitation_period_years, expiration_date and
        days_remaining."""
        fields: dict[str, object] = {"limitation_period_years": None, "expiration_date": None, "days_remaining": None}
        try:
            incident, filed = read_date(incident_date), read_date(filing_date)
        except ValueError as error:
            return Verdict(Status.INCONCLUSIVE, ENGINE, f"not decided: {error}", **fields)
        found = self._find(claim_type, jurisdiction)
        if found is None:
            return Verdict(
                Status.INCONCLUSIVE, ENGINE, f"no sourced period for {claim_type!r} in {jurisdiction!r}", **fields)
        if filed < incident:
            return Verdict(Status.ERROR, ENGINE, "the claim is filed before the incident", **fields)
        years, source = found
        last = _last_day(incident, years)
        fields = {
            "limitation_period_years": float(years), "expiration_date": last, "days_remaining": (last - filed).days}
        evidence = {
            "source": source, "period_years": years, "incident_date": incident.isoformat(),
            "last_day": last.isoformat(), "filing_date": filed.isoformat(),
            "not_considered": "discovery rules, tolling, transitional law, shorter periods agreed by contract",
        }  # fmt: skip
        if filed <= last:
            return Verdict(
                Status.VERIFIED, ENGINE, f"WITHIN the period: {years} years ({source}) end on {last}", evidence,
                **fields)
        if last.weekday() >= 5 and (filed - last).days <= 4:
            return Verdict(
                Status.INCONCLUSIVE, ENGINE, f"the last day, {last}, is on a weekend; whether it moves is not decided",
                evidence, **fields
            )
        return Verdict(Status.ERROR, ENGINE, f"EXPIRED: {years} years ({source}) ended on {last}", evidence, **fields)

    def get_limitation_period(self, claim_type: str, jurisdiction: str) -> float | None:
        """Return the period in years, or None if the table has no source for it."""
        found = self._find(claim_type, jurisdiction)
        return float(found[0]) if found else None

    def compare_jurisdictions(self, claim_type: str, jurisdictions: Sequence[str]) -> dict[str, float | None]:
        """The period in each jurisdiction."""
        return {j: self.get_limitation_period(claim_type, j) for j in jurisdictions}

    def _find(self, claim_type: object, jurisdiction: object) -> tuple[Decimal, str] | None:
        where = place(jurisdiction)
        if where is None or not isinstance(claim_type, str):
            return None
        claim = "_".join(claim_type.lower().replace("-", " ").split())
        key = f"{where[0]}-{where[1]}" if where[1] else where[0]
        return _table().get((key, _SAME.get(claim, claim)))


def _last_day(incident: date, years: Decimal) -> date:
    months = int(years * 12)
    return incident + relativedelta(months=months)
