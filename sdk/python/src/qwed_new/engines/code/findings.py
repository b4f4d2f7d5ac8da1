"""The findings of a code analyser."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SEVERITIES = ("critical", "high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason against running a program.

    message begins with `Dangerous pattern:` if the code is known to be dangerous, and with `Unresolved reflection:` if
    it could not be resolved. line counts from 1; it is 0 if the line is unknown.
    """

    rule: str
    severity: str
    message: str
    line: int = 0
    alternative: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The finding in JSON's types."""
        return asdict(self)


def unique(findings: list[Finding]) -> list[Finding]:
    """Return the findings without duplicate messages, in their original order."""
    return list({f.message: f for f in reversed(findings)}.values())[::-1]
