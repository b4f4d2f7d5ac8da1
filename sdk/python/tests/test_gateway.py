"""The risk gateway."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from qwed_mcp.security import RiskBasedExecutionGateway

FLAG = "QWED_MCP_TRUSTED_CODE_EXECUTION"


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> RiskBasedExecutionGateway:
    monkeypatch.setenv(FLAG, "true")
    return RiskBasedExecutionGateway()


@pytest.mark.row("Q-113", "Q-121..127", "Q-136")
def test_the_documents_call_is_allowed(gateway: RiskBasedExecutionGateway) -> None:
    decision = gateway.evaluate_and_route("execute_python_code", {"code": "print('hello world')", "background": False})
    assert (decision["verified"], decision["status"], decision["risk_level"]) == (True, "ALLOW_VERIFIED", "high")
    assert decision["normalized_arguments"] == {"code": "print('hello world')", "background": False}
    assert re.fullmatch(r"[0-9a-f]{64}", decision["verification_id"]) and decision[
        "message"] and "error_code" not in decision


@pytest.mark.row(
    "Q-003", "Q-115", "Q-128", "Q-130..135", "Q-031", "Q-032", "Q-114", "Q-120", "Q-052", "Q-053", "Q-138..140",
    "Q-142", "Q-039")
@pytest.mark.parametrize(
    ("tool", "arguments", "code", "text"),
    [
        ("verify_math", {}, "001", "Unknown MCP tool 'verify_math' is blocked by default."),
        ("", {}, "001", "Unknown MCP tool"),
        ("execute_python_code", {}, "003", "Missing required non-empty 'code' argument."),
        ("execute_python_code", {"code": ""}, "003", ""), ("execute_python_code", {"code": " \n"}, "003", ""),
        ("execute_python_code", {"code": 7}, "003", ""), ("execute_python_code", None, "003", ""),
        ("execute_python_code", {"code": "1", "background": "yes"}, "004",
            "'background' must be a boolean when provided."),
        ("execute_python_code", {"code": "1", "background": 1}, "004", ""),
        ("execute_python_code", {"code": "1", "background": None}, "004", ""),
        ("execute_python_code", {"code": "eval(input())"}, "005",
            "QWED blocked python execution: Dangerous pattern: eval"),
        ("execute_python_code", {"code": "eval("}, "005", "QWED blocked python execution: "),
        ("verification_status", {}, "007", ""), ("verification_status", {"job_id": " "}, "007", ""),
        ("verification_status", {"job_id": 7}, "007", ""),
        ("verification_status", {"job_id": "not-a-uuid"}, "008", "Invalid job_id format"),
        ("verification_status", {"job_id": "{3f8a1b2c-4d5e-6f7a-8b9c-0d1e2f3a4b5c}"}, "008", ""),
        ("verification_status", {"job_id": "urn:uuid:3f8a1b2c-4d5e-6f7a-8b9c-0d1e2f3a4b5c"}, "008", ""),
        ("verification_status", {"job_id": "3f8a1b2c4d5e6f7a8b9c0d1e2f3a4b5c"}, "008", ""),
    ],
)  # fmt: skip
def test_blocked_calls(gateway: RiskBasedExecutionGateway, tool: str, arguments: Any, code: str, text: str) -> None:
    decision = gateway.evaluate_and_route(tool, arguments)
    assert (decision["verified"], decision["status"], decision["error_code"]) == (
        False, "BLOCKED", f"QWED-MCP-RISK-{code}")
    assert decision["message"].startswith(text)
    assert gateway.format_blocked(
        decision) == f"BLOCKED: {decision['message']} (verification_id={decision['verification_id']})"


@pytest.mark.row("Q-137", "Q-120")
def test_job_ids_are_trimmed_and_lower_case(gateway: RiskBasedExecutionGateway) -> None:
    job = str(uuid.uuid4())
    decision = gateway.evaluate_and_route("verification_status", {"job_id": f" {job.upper()}\n"})
    assert decision["verified"] and decision["risk_level"] == "low" and decision["normalized_arguments"] == {
        "job_id": job}


@pytest.mark.row("Q-012", "Q-034", "Q-119", "Q-133", "Q-141")
def test_the_administrator_decides_last(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = RiskBasedExecutionGateway()
    for value in (None, "", "false", "1", "yes", " true"):
        monkeypatch.delenv(FLAG, raising=False)
        if value is not None:
            monkeypatch.setenv(FLAG, value)
        decision = gateway.evaluate_and_route("execute_python_code", {"code": "print(1)"})
        assert (decision["status"], decision["error_code"]) == ("BLOCKED_ADMIN_POLICY", "QWED-MCP-RISK-006"), value
        assert gateway.format_blocked(decision).startswith(
            "BLOCKED_ADMIN_POLICY: Python execution was verified, but server policy keeps code execution disabled "
            "until QWED_MCP_TRUSTED_CODE_EXECUTION=true. (verification_id="
        )
        assert gateway.evaluate_and_route("execute_python_code", {"code": "eval('1')"})[
            "error_code"] == "QWED-MCP-RISK-005"
    for value in ("true", "TRUE", "True"):
        monkeypatch.setenv(FLAG, value)
        assert gateway.evaluate_and_route("execute_python_code", {"code": "print(1)"})["verified"]


@pytest.mark.row("Q-129")
def test_a_policy_without_a_handler_is_blocked(gateway: RiskBasedExecutionGateway) -> None:
    gateway.tool_policies["new_tool"] = {"risk_level": "low", "requires_verification": True}
    decision = gateway.evaluate_and_route("new_tool", {})
    assert (decision["error_code"], decision["risk_level"]) == ("QWED-MCP-RISK-002", "low")


@pytest.mark.row("Q-132")
@pytest.mark.parametrize("answer", [RuntimeError("broken"), None, {}, {"verified": 1}, {"verified": "true"}])
def test_an_analyser_that_fails_approves_nothing(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    class Broken:
        def verify_safety(self, code: str) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setenv(FLAG, "true")
    decision = RiskBasedExecutionGateway(Broken()).evaluate_and_route(
        "execute_python_code", {"code": "print(1)"})  # type: ignore[arg-type]
    assert (decision["verified"], decision["error_code"]) == (False, "QWED-MCP-RISK-005")


@pytest.mark.row("Q-124")
def test_identifiers_never_repeat(gateway: RiskBasedExecutionGateway) -> None:
    calls = [gateway.evaluate_and_route("verification_status", {"job_id": "x"}) for _ in range(1000)]
    assert len({c["verification_id"] for c in calls}) == 1000
