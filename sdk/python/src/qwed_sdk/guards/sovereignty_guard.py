"""SovereigntyGuard: may this prompt leave for that provider?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from qwed_new.plain_text import plain
from qwed_sdk.guards import personal_data
from qwed_sdk.guards.answers import allowed, refused

_MARKS = re.compile(
    r"\b(?:confidential|privileged|attorney[- ]client|trade secret|internal only|classified|(?:top )?secret|restricted"
    r"|do not distribute|nda)\b",
    re.I,
)


class SovereigntyGuard:
    """Keeps prompts with personal data, credentials or marks of confidentiality with local providers."""

    def __init__(self, required_local_providers: Sequence[str] = ("ollama", "vllm_local")) -> None:
        self.local_providers = {p.strip().lower() for p in required_local_providers}

    def verify_routing(self, prompt: str, target_provider: str) -> dict[str, Any]:
        """Judge one route; the refusal has `sensitive`, the kinds that were found."""
        if not isinstance(prompt, str) or not isinstance(target_provider, str):
            return refused("INVALID_INPUT", "prompt and target_provider are texts.", sensitive=[])
        kinds = [f["type"] for f in personal_data.find(prompt)]
        if mark := _MARKS.search(plain(prompt)):
            kinds.append(f"mark: {mark[0].lower()}")
        if kinds and target_provider.strip().lower() not in self.local_providers:
            message = (
                f"The prompt contains {', '.join(kinds)} and may not go to {target_provider!r}, which is not local.")
            return refused("DATA_SOVEREIGNTY_VIOLATION", message, sensitive=kinds)
        return allowed("The prompt may go there.", sensitive=kinds)
