"""The AI bill of materials."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

COMPLIANCE = "QWED_AI_SPM_v1"


class AIBOMGenerator:
    """Makes manifests of the models, engines and tools of a pipeline."""

    def generate_manifest(
        self, llm_model: str, qwed_engines_used: Sequence[str] | None = None,
        mcp_tools_used: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return the manifest. `manifest_hash` is the SHA-256 of all but the timestamp, as JSON with sorted keys and
        without spaces.

        Raise ValueError if the model is empty or a name is not a string.
        """
        if not isinstance(llm_model, str) or not llm_model.strip():
            raise ValueError("llm_model is a name that is not empty")
        components = {
            "models": _components([llm_model], "generator"),
            "verification_engines": _components(qwed_engines_used or (), "qwed_deterministic"),
            "mcp_tools": _components(mcp_tools_used or (), "action_execution"),
        }
        hashed = {"components": components, "compliance": COMPLIANCE}
        canonical = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
        return {
            "timestamp": datetime.now(UTC).isoformat(),
            **hashed,
            "manifest_hash": hashlib.sha256(canonical.encode()).hexdigest(),
        }


def _components(names: Sequence[str], kind: str) -> list[dict[str, str]]:
    if isinstance(names, str) or not all(isinstance(n, str) for n in names):
        raise ValueError("engines and tools are lists of names")
    return [{"name": name, "type": kind} for name in names]
