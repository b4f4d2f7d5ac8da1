"""The risk gateway: every tool call is judged before it is dispatched."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from qwed_new.guards.code_guard import CodeGuard

FLAG = "QWED_MCP_TRUSTED_CODE_EXECUTION"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Handler = Callable[[Mapping[str, Any]], "_Ruling"]


class _Ruling:
    """The decision of a handler: the cleaned arguments, or the reason of the refusal."""

    def __init__(self, arguments: dict[str, Any], message: str = "", code: str = "", status: str = "") -> None:
        self.arguments = arguments
        self.message = message
        self.code = code
        self.status = status or ("BLOCKED" if code else "ALLOW_VERIFIED")


class RiskBasedExecutionGateway:
    """Judge calls of `execute_python_code` and `verification_status`, and block all others.

    code_guard judges programs: `verify_safety(code)` returns a dict with `verified` and `violations`; when it raises,
    the call is blocked. Instances may be used from several threads.
    """

    POLICIES: Mapping[str, Mapping[str, Any]] = {
        "execute_python_code": {"risk_level": "high", "requires_verification": True},
        "verification_status": {"risk_level": "low", "requires_verification": True},
    }

    def __init__(self, code_guard: CodeGuard | None = None) -> None:
        self.server_instance_id = str(uuid.uuid4())
        self.tool_policies: dict[str, Mapping[str, Any]] = dict(self.POLICIES)
        self._code_guard = code_guard or CodeGuard()
        self._handlers: dict[str, Handler] = {"execute_python_code": self._execute, "verification_status": self._status}

    def evaluate_and_route(self, tool_name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The decision on a call: verified, status, risk_level, verification_id, normalized_arguments, message;
        error_code when blocked."""
        given = arguments if isinstance(arguments, Mapping) else {}
        policy = self.tool_policies.get(tool_name) if isinstance(tool_name, str) else None
        risk = str(policy["risk_level"]) if policy else "high"
        if policy is None:
            ruling = _Ruling(
                _plain(given), f"Unknown MCP tool '{tool_name}' is blocked by default.", "QWED-MCP-RISK-001")
        elif (handler := self._handlers.get(tool_name)) is None:
            ruling = _Ruling(_plain(given), f"MCP tool '{tool_name}' has no governance handler.", "QWED-MCP-RISK-002")
        else:
            ruling = handler(given)
        return self._decision(str(tool_name), risk, ruling)

    def _execute(self, arguments: Mapping[str, Any]) -> _Ruling:
        code, background = arguments.get("code"), arguments.get("background", False)
        if not isinstance(code, str) or not code.strip():
            return _Ruling({}, "Missing required non-empty 'code' argument.", "QWED-MCP-RISK-003")
        if not isinstance(background, bool):
            return _Ruling({"code": code}, "'background' must be a boolean when provided.", "QWED-MCP-RISK-004")
        clean = {"code": code, "background": background}
        try:
            safety = self._code_guard.verify_safety(code)
            verified, violations = safety["verified"] is True, [str(v) for v in safety.get("violations", ())]
        except Exception as error:  # an analyser that fails approves nothing
            verified, violations = False, [f"code safety verification failed: {type(error).__name__}"]
        if not verified:
            issues = "; ".join(violations[:20]) or "the program was not found safe"
            return _Ruling(clean, f"QWED blocked python execution: {issues}", "QWED-MCP-RISK-005")
        if os.environ.get(FLAG, "").lower() != "true":
            message = (
                f"Python execution was verified, but server policy keeps code execution disabled until {FLAG}=true.")
            return _Ruling(clean, message, "QWED-MCP-RISK-006", "BLOCKED_ADMIN_POLICY")
        return _Ruling(clean, "Python execution was verified.")

    def _status(self, arguments: Mapping[str, Any]) -> _Ruling:
        job = arguments.get("job_id")
        if not isinstance(job, str) or not job.strip():
            return _Ruling({}, "Missing required non-empty 'job_id' argument.", "QWED-MCP-RISK-007")
        clean = job.strip().lower()
        if not _UUID.fullmatch(clean):
            return _Ruling({"job_id": job}, "Invalid job_id format: a canonical UUID is required.", "QWED-MCP-RISK-008")
        return _Ruling({"job_id": clean}, "Status lookup was verified.")

    def _decision(self, tool: str, risk: str, ruling: _Ruling) -> dict[str, Any]:
        decision: dict[str, Any] = {
            "verified": ruling.status == "ALLOW_VERIFIED",
            "status": ruling.status,
            "risk_level": risk,
            "verification_id": self._fingerprint(tool, ruling.arguments),
            "normalized_arguments": ruling.arguments,
            "message": ruling.message,
        }
        if ruling.code:
            decision["error_code"] = ruling.code
        return decision

    def _fingerprint(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """SHA-256 over tool, arguments, a nonce, the time and this instance: another one for every call."""
        hashed = {
            "tool_name": tool,
            "normalized_arguments": arguments,
            "nonce": secrets.token_hex(16),
            "timestamp": time.time_ns(),
            "server_instance_id": self.server_instance_id,
        }
        return hashlib.sha256(
            json.dumps(hashed, sort_keys=True, separators=(",", ":"), default=str).encode("utf-8", "surrogatepass")
        ).hexdigest()

    @staticmethod
    def format_blocked(decision: Mapping[str, Any]) -> str:
        """The text of a blocked decision: `BLOCKED: … (verification_id=…)`."""
        return f"{decision['status']}: {decision['message']} (verification_id={decision['verification_id']})"


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {str(k): v for k, v in arguments.items()}
