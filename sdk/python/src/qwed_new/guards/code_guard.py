"""CodeGuard: is this program safe to run?"""

from __future__ import annotations

from typing import Any

from qwed_new.engines.code import verify_code


class CodeGuard:
    """Judges programs by the analyser of their language."""

    def verify_safety(self, code: str, language: str = "python") -> dict[str, Any]:
        """A dict with `verified`, `status`, `violations` (texts such as `Dangerous pattern: os.system`), `message` and
        `findings`.

        A text that does not parse, and in which no dangerous pattern was found, passes: it runs into its SyntaxError.
        """
        verdict = verify_code(code, language, accept_unparsed=True)
        violations = [v["message"] for v in verdict["vulnerabilities"]]
        if not verdict["verified"] and not violations:
            violations = [verdict["message"]]
        findings = [dict(v) for v in verdict["vulnerabilities"]]
        return {
            "verified": verdict["verified"],
            "status": verdict["status"],
            "violations": violations,
            "message": verdict["message"],
            "findings": findings,
        }

    verify_code = verify_safety
