"""The shape in which guards answer."""

from __future__ import annotations

from typing import Any


def allowed(message: str, **fields: Any) -> dict[str, Any]:
    """An answer that lets pass."""
    return {"verified": True, "status": "VERIFIED", **fields, "message": message}


def refused(risk: str, message: str, **fields: Any) -> dict[str, Any]:
    """An answer that does not."""
    return {"verified": False, "status": "BLOCKED", "risk": risk, **fields, "message": message}
