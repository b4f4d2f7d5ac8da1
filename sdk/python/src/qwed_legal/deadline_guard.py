"""DeadlineGuard: is a deadline what its term makes it?"""

from __future__ import annotations

from datetime import date, timedelta

import holidays
from dateutil.relativedelta import relativedelta

from qwed_new.calendar_dates import read_date, read_term
from qwed_new.verdict import Status, Verdict

MAX_BUSINESS_DAYS = 20_000
ENGINE = "legal.deadline"


class DeadlineGuard:
    """Compute deadlines in the calendar of a country or one of its states. The package `holidays` provides public
    holidays.

    The day of signing does not count. Months end on the last day of a shorter month. A deadline that is not on a
    business day is not moved, because contracts differ in that. The verdict states this.
    """

    def __init__(self, country: str = "US", state: str | None = None) -> None:
        self.country, self.state = country, state

    def verify(self, signing_date: str, term: str, claimed_deadline: str) -> Verdict:
        """Compare; the verdict has computed_deadline (a date, or None), difference_days and holidays_skipped."""
        try:
            start, parts, claimed = read_date(signing_date), read_term(term), read_date(claimed_deadline)
            computed, skipped = self._add(start, parts)
        except (ValueError, OverflowError, NotImplementedError) as error:
            return Verdict(
                Status.INCONCLUSIVE, ENGINE, f"not decided: {error}", computed_deadline=None, difference_days=None,
                holidays_skipped=[]
            )
        evidence = {
            "signing_date": start.isoformat(), "term": [f"{n} {unit}" for n, unit in parts],
            "claimed_deadline": claimed.isoformat(),
            "computed_deadline": computed.isoformat(), "holidays_skipped": skipped,
            "calendar": f"holidays {holidays.__version__}, {self.country}{'-' + self.state if self.state else ''}",
        }  # fmt: skip
        if computed.weekday() >= 5:
            evidence["note"] = "the deadline is on a weekend; whether it moves is for the contract to say"
        fields = {
            "computed_deadline": computed, "difference_days": abs((claimed - computed).days),
            "holidays_skipped": skipped}
        if claimed == computed:
            return Verdict(Status.VERIFIED, ENGINE, f"the deadline is {computed}", evidence, **fields)
        return Verdict(
            Status.ERROR, ENGINE, f"deadline mismatch: {term} from {start} end on {computed}, not on {claimed}",
            evidence, **fields
        )

    def _add(self, day: date, parts: list[tuple[int, str]]) -> tuple[date, list[str]]:
        skipped: list[str] = []
        for number, unit in parts:
            if unit == "business days":
                day = self._add_business_days(day, number, skipped)
            else:
                day = day + relativedelta(**{unit: number})  # type: ignore[arg-type]
        return day, skipped

    def _add_business_days(self, day: date, number: int, skipped: list[str]) -> date:
        if number > MAX_BUSINESS_DAYS:
            raise ValueError(f"more than {MAX_BUSINESS_DAYS} business days")
        calendar = holidays.country_holidays(self.country, subdiv=self.state)
        while number:
            day += timedelta(days=1)
            if day.weekday() >= 5:
                continue
            if day in calendar:
                skipped.append(f"{day}: {calendar.get(day)}")
                continue
            number -= 1
        return day
