"""What a code analyser finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SEVERITIES = ("critical", "high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason against running a program.

    message begins `Dangerous pattern:` for what is known to be dangerous and `Unresolved reflection:` for what
    could not be resolved; line counts from 1, 0 where there is none.
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
    """Each message once, in the order of first sight."""
    return list({f.message: f for f in reversed(findings)}.values())[::-1]
