"""The verdict: the result type of every engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any


class Status(StrEnum):
    """What an engine found.

    Only VERIFIED means that the claim holds. ERROR means that it was refuted or is
    malformed; BLOCKED that the input is hostile or beyond a limit; INCONCLUSIVE that it was
    not decided; UNKNOWN that no engine knows this kind of claim; SIMPLIFIED that a batch
    item claimed nothing and was only rewritten.
    """

    VERIFIED = "VERIFIED"
    ERROR = "ERROR"
    INCONCLUSIVE = "INCONCLUSIVE"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"
    SIMPLIFIED = "SIMPLIFIED"


class Fields(dict[str, Any]):
    """A dict whose keys can be read as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Finding(Fields):
    """Something dangerous in a program."""

    severity: str
    message: str
    line: int


class Summary(Fields):
    """The counts of a batch. success_rate is a fraction of total."""

    total: int
    verified: int
    failed: int
    undecided: int
    success_rate: float


class Item(Fields):
    """The verdict on one item of a batch."""

    query: str
    verified: bool
    status: str
    message: str


class Verdict(Mapping[str, Any]):
    """A status with its evidence, readable as attributes and as a mapping.

    `evidence` describes the decision: the parsed form, the method, a counter-example
    or model, the span that supports a fact. An engine can add fields (`model`,
    `vulnerabilities`, `confidence`, …) to the common ones.
    """

    __slots__ = ("_fields",)

    # Every verdict has these.
    verified: bool
    is_valid: bool
    status: str
    engine: str
    message: str
    evidence: dict[str, Any]

    # These are set by the engine in the comment; reading them from another verdict raises AttributeError.
    model: dict[str, Any]  # logic: values that satisfy the constraints
    vulnerabilities: list[Finding]  # code
    confidence: float  # consensus: from 0 to 1
    summary: Summary  # batch
    results: list[Item]  # batch, in the order of its items
    value: Any  # auto: the exact answer to a question
    pii_detected: list[str]  # verify_fact of a client: kinds of personal data

    def __init__(
        self, status: Status | str, engine: str, message: str, evidence: Mapping[str, Any] | None = None,
        **fields: Any) -> None:
        status = Status(status)
        self._fields: dict[str, Any] = {
            "verified": status is Status.VERIFIED,
            "is_valid": status is Status.VERIFIED,
            "status": str(status),
            "engine": engine,
            "message": message,
            "evidence": dict(evidence or {}),
        }
        for name, value in fields.items():
            if name in self._fields:
                raise ValueError(f"field {name!r} of a verdict is derived from its status")
            self._fields[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"this verdict has no field {name!r}; it has {', '.join(self._fields)}") from None

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __bool__(self) -> bool:
        return self._fields["verified"]

    def __repr__(self) -> str:
        return f"Verdict({self._fields['status']}, {self._fields['engine']}: {self._fields['message']})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Verdict.from_dict, (self.to_dict(),))

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON types only. Exact numbers become text."""
        return {name: plain(value) for name, value in self._fields.items()}

    def to_json(self) -> str:
        """The verdict as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """Read the output of to_dict. `verified` is always derived from the status."""
        rest = {k: v for k,
            v in data.items() if k not in ("verified", "is_valid", "status", "engine", "message", "evidence")}
        evidence = data.get("evidence")
        return cls(
            str(data["status"]),
            str(data.get("engine", "")),
            str(data.get("message", "")),
            evidence if isinstance(evidence, Mapping) else None,
            **rest,
        )

    def with_fields(self, **fields: Any) -> Verdict:
        """A copy with further fields."""
        return Verdict.from_dict({**self._fields, **fields})


def plain(value: Any) -> Any:
    """Return value as JSON types. Exact numbers and values of other types become text."""
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
    return str(value)
