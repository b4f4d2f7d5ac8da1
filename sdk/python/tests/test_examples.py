"""The documents' programs, as they stand: past the gateway, then run by the interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from qwed_mcp.security import RiskBasedExecutionGateway


def run(code: str, monkeypatch: pytest.MonkeyPatch) -> subprocess.CompletedProcess[str]:
    """Judge a program as the gateway does, and run it."""
    monkeypatch.setenv("QWED_MCP_TRUSTED_CODE_EXECUTION", "true")
    decision = RiskBasedExecutionGateway().evaluate_and_route("execute_python_code", {"code": code})
    assert decision["verified"], decision["message"]
    return subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True,
        text=True, timeout=120, check=False)


@pytest.mark.row("Q-005")
def test_all_packages_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("import qwed_new, qwed_legal, qwed_finance, qwed_ucp, qwed_sdk, qwed_mcp", monkeypatch).returncode == 0


@pytest.mark.row("Q-023")
def test_the_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from sympy import symbols, diff\n"
        "x = symbols('x')\n"
        "result = diff(x**3, x)\n"
        "print(f'derivative of x^3 = {result}')\n"
        "assert str(result) == '3*x**2', 'Mismatch!'\n"
        "print('VERIFIED')")
    assert run(code, monkeypatch).stdout == "derivative of x^3 = 3*x**2\nVERIFIED\n"


@pytest.mark.row("Q-024", "Q-021")
def test_the_financial_example_fails_as_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from decimal import Decimal, ROUND_HALF_UP\n"
        "\n"
        "P = Decimal('10000')\n"
        "r = Decimal('0.075')\n"
        "n = Decimal('4')\n"
        "t = Decimal('5')\n"
        "\n"
        "A = P * (1 + r/n) ** (n*t)\n"
        "A = A.quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)\n"
        "print(f'Future value: ${A}')\n"
        "assert A == Decimal('14490.97'), f'Expected 14490.97, got {A}'"
    )
    done = run(code, monkeypatch)
    assert done.returncode != 0 and done.stdout == "Future value: $14499.48\n"
    assert "AssertionError: Expected 14490.97, got 14499.48" in done.stderr


@pytest.mark.row("Q-025", "Q-026")
def test_the_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from qwed_new.guards.code_guard import CodeGuard\n"
        "\n"
        "guard = CodeGuard()\n"
        "result = guard.verify_safety(\"import os; os.system('rm -rf /')\")\n"
        "print(f'Verified: {result[\"verified\"]}')\n"
        "if result.get('violations'):\n"
        "    for v in result['violations']:\n"
        "        print(f'  - {v}')"
    )
    assert run(code, monkeypatch).stdout == "Verified: False\n  - Dangerous pattern: os.system\n"
    code = (
        "from qwed_new.guards.sql_guard import SQLGuard\n"
        "\n"
        "guard = SQLGuard()\n"
        "result = guard.verify_query(\"SELECT * FROM users WHERE id = '1' OR '1'='1'\")\n"
        "print(f'Verified: {result[\"verified\"]}')\nprint(f'Message: {result.get(\"message\", \"\")}')"
    )
    assert run(code, monkeypatch).stdout.startswith("Verified: False\nMessage: always true: ")


@pytest.mark.row("Q-027", "Q-028", "Q-029")
def test_legal_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from qwed_legal import DeadlineGuard\n"
        "\n"
        "guard = DeadlineGuard(country='US')\n"
        "result = guard.verify('2026-01-15', '30 business days', '2026-02-14')\n"
        "print(f'Verified: {result.verified}')\nprint(f'Computed deadline: {result.computed_deadline}')"
    )
    assert run(code, monkeypatch).stdout == "Verified: False\nComputed deadline: 2026-03-02\n"
    code = (
        "import hashlib\n"
        "from qwed_legal import ProvenanceGuard\n"
        "\n"
        "content = 'This AI-generated memo reviews the indemnification terms.'\n"
        "content_hash = hashlib.sha256(content.encode()).hexdigest()\n"
        "\n"
        "guard = ProvenanceGuard(require_disclosure=True)\n"
        "result = guard.verify_provenance(content, {\n"
        "    'content_hash': content_hash,\n"
        "    'model_id': 'claude-4.5-sonnet',\n"
        "    'generation_timestamp': '2026-03-24T12:00:00+00:00',\n"
        "})\n"
        "print(f'Verified: {result[\"verified\"]}')\n"
        "print(f'Checks passed: {result[\"checks_passed\"]}')"
    )
    assert run(code, monkeypatch).stdout.startswith("Verified: True\nChecks passed: ['metadata_completeness', ")
    assert run(
        "from qwed_legal import LegalGuard\n\nguard = LegalGuard()\nprint('All checks passed')",
        monkeypatch).stdout == "All checks passed\n"


@pytest.mark.row("Q-144")
def test_a_missing_package_is_for_the_interpreter_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ModuleNotFoundError" in run("import qwed_nothing", monkeypatch).stderr


@pytest.mark.row("Q-088", "Q-089", "Q-113")
def test_programs_about_governance(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from qwed_mcp.observability.aibom import AIBOMGenerator\n"
        "bom = AIBOMGenerator().generate_manifest(llm_model='gpt-4o')\n"
        "print(bom['compliance'])")
    assert run(code, monkeypatch).stdout == "QWED_AI_SPM_v1\n"
    code = (
        "from qwed_mcp.security import SkillProvenanceGuard, RiskBasedExecutionGateway\n"
        "print(SkillProvenanceGuard().verify_skill(manifest={})['status'])")
    assert run(code, monkeypatch).stdout == "BLOCKED\n"
