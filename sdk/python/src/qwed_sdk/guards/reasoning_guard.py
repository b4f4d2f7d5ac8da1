"""SelfInitiatedCoTGuard: does a plan of reasoning cover what it must?"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from qwed_sdk.guards.answers import allowed, refused

_DENIAL = re.compile(
    r"\b(?:not|no|never|skip(?:ping)?|omit(?:ting)?|ignor(?:e|ing)|without|exclud(?:e|ing)|don'?t|won'?t"
    r"|instead of)\b[^.;!?\n]{0,40}$",
    re.I,
)


class SelfInitiatedCoTGuard:
    """Looks for required elements as whole words in a plan; one that is only mentioned to leave it out does not
    count."""

    def __init__(self, required_elements: Sequence[str]) -> None:
        if isinstance(required_elements, str) or not required_elements:
            raise ValueError("required_elements is a list that is not empty")
        if not all(isinstance(e, str) and e.strip() for e in required_elements):
            raise TypeError("required_elements are texts that are not empty")
        self.required_elements = list(required_elements)

    def verify_autonomous_path(self, generated_reasoning_plan: str) -> dict[str, Any]:
        """Judge a plan; the refusal has missing_elements."""
        if not isinstance(generated_reasoning_plan, str):
            raise TypeError("generated_reasoning_plan is a text")
        plan = " ".join(unicodedata.normalize("NFKC", generated_reasoning_plan[:1_000_000]).split())
        missing = [e for e in self.required_elements if not _covers(plan, e)]
        if missing:
            message = f"The plan misses {len(missing)} required element(s): {', '.join(missing)}."
            return refused("INCOMPLETE_REASONING_FRAMEWORK", message, missing_elements=missing)
        return allowed(f"The plan covers all {len(self.required_elements)} required elements.", missing_elements=[])


def _covers(plan: str, element: str) -> bool:
    words = r"\s+".join(re.escape(w) for w in unicodedata.normalize("NFKC", element).split())
    found = re.finditer(rf"(?<!\w){words}(?!\w)" if element.strip()[0].isalnum() else words, plan, re.I)
    return any(not _DENIAL.search(plan[max(0, m.start() - 60) : m.start()]) for m in found)
