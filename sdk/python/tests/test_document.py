"""The programs of the SDK's document, unchanged; their free names (`code`, `chunks`, `url`, files) are defined here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

CLIENT = 'from qwed_sdk import QWEDClient\nclient = QWEDClient(api_key="qwed_your_key")\n'
CACHE = """
from qwed_sdk.cache import CacheContext, VerificationCache

ctx = CacheContext(
    provider="openai",
    model="gpt-4o",
    policy_version="v1",
    tenant_id="tenant-alpha",       # optional
    env_fingerprint="sha256-...",   # optional
)

cache = VerificationCache()

print(cache.get("2+2", ctx))              # None (miss)
cache.set("2+2", {"verified": True}, ctx)
print(cache.get("2+2", ctx))              # {"verified": True}

# Different provider — deterministic miss (replay prevention)
ctx2 = CacheContext(provider="claude", model="claude-opus-4-5", policy_version="v1")
print(cache.get("2+2", ctx2))             # None
"""
ASYNC = """
from qwed_sdk import QWEDAsyncClient
import asyncio

async def main():
    async with QWEDAsyncClient(api_key="qwed_...") as client:
        result = await client.verify("2+2=4")
        print(result.verified)

asyncio.run(main())
"""
GUARDS = """
from qwed_sdk.guards import (
    RAGGuard,
    ExfiltrationGuard,
    MCPPoisonGuard,
    SelfInitiatedCoTGuard,
    SovereigntyGuard,
    SystemGuard,
    ConfigGuard,
)

# Prevent RAG hallucinations from wrong document chunks
rag_guard = RAGGuard(max_drm_rate="1/10")
result = rag_guard.verify_retrieval_context(
    target_document_id="contract_v2",
    retrieved_chunks=chunks
)
print(result["verified"])
# Block data exfiltration to unauthorized endpoints
exfil_guard = ExfiltrationGuard(allowed_endpoints=["https://api.openai.com"])
result = exfil_guard.verify_outbound_call(
    destination_url=url,
    payload=data
)
print(result["verified"])
# Detect poisoned MCP tool definitions
mcp_guard = MCPPoisonGuard()
result = mcp_guard.verify_tool_definition(tool_schema)
print(result["verified"])
# Block dangerous shell commands (v4.0.0)
sys_guard = SystemGuard()
result = sys_guard.verify_shell_command("rm -rf /")
print(result["verified"])
# Detect plaintext secrets in config (v4.0.0)
cfg_guard = ConfigGuard()
result = cfg_guard.verify_config_safety(config_data)
print(result["verified"])
"""


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("QWED_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("salary\n60000\n50000\n")
    Image.new("RGB", (4, 3)).save(tmp_path / "photo.jpg")
    chunks = [{"id": i, "metadata": {"document_id": "contract_v2"}} for i in range(10)]
    return {
        "code": "eval(input())", "chunks": chunks, "url": "https://api.openai.com/v1/x", "data": "hello",
        "tool_schema": {"name": "t", "description": "Adds numbers."},
        "config_data": {"password": "hunter2!"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        pytest.param(
            CLIENT + 'result = client.verify("Is 2+2=4?")\n'
            'print(result.verified)  # True\n'
            'print(result.status)    # "VERIFIED"', "True\nVERIFIED\n", marks=pytest.mark.row("P-001", "P-002")),
        pytest.param(ASYNC, "True\n", marks=pytest.mark.row("P-005")),
        pytest.param(
            CLIENT + 'result = client.verify("What is 15% of 200?")\nprint(result.value)', "30\n",
            marks=pytest.mark.row("P-007")),
        pytest.param(
            CLIENT + 'result = client.verify_math("x**2 + 2*x + 1 = (x+1)**2")\nprint(result.verified)', "True\n",
            marks=pytest.mark.row("P-008")),
        pytest.param(
            CLIENT + 'result = client.verify_logic("(AND (GT x 5) (LT y 10))")\n'
            'print(result.model)', "{'x': 6, 'y': 9}\n", marks=pytest.mark.row("P-009")),
        pytest.param(
            CLIENT + 'result = client.verify_code(code, language="python")\n'
            'for vuln in result.vulnerabilities:\n'
            '    print(f"{vuln.severity}: {vuln.message}")',
            "critical: Dangerous pattern: eval\n",
            marks=pytest.mark.row("P-010"),
        ),
        pytest.param(
            CLIENT + 'result = client.verify_sql(\n'
            '    query="SELECT * FROM users WHERE id = 1",\n'
            '    schema_ddl="CREATE TABLE users (id INT, name TEXT)",\n'
            '    dialect="postgresql"\n'
            ')\n'
            'print(result.verified)',
            "True\n",
            marks=pytest.mark.row("P-011"),
        ),
        pytest.param(
            CLIENT + 'result = client.verify_fact(\n'
            '    claim="The company was founded in 2020",\n'
            '    context="Acme Corp was established in 2020 in San Francisco."\n'
            ')\n'
            'print(result.verified)  # True',
            "True\n",
            marks=pytest.mark.row("P-012"),
        ),
        pytest.param(
            CLIENT + 'result = client.verify_stats(\n'
            '    query="The average salary is above 50000",\n'
            '    file_path="data.csv"\n'
            ')\n'
            'print(result.verified)', "True\n", marks=pytest.mark.row("P-014")),
        pytest.param(
            CLIENT + 'result = client.verify_consensus(\n'
            '    query="The square root of 144 is 12",\n'
            '    mode="high",\n'
            '    min_confidence=0.8\n'
            ')\n'
            'print(result.verified)     # True\n'
            'print(result.confidence)   # 0.95',
            "True\n0.95\n",
            marks=pytest.mark.row("P-015"),
        ),
        pytest.param(
            CLIENT + 'result = client.verify_image(\n'
            '    image_path="photo.jpg",\n'
            '    claim="This image contains a cat"\n'
            ')\n'
            'print(result.status)', "INCONCLUSIVE\n", marks=pytest.mark.row("P-016")),
        pytest.param(
            CLIENT + 'results = client.verify_batch([\n'
            '    {"query": "2+2=4", "type": "math"},\n'
            '    {"query": "3*3=9", "type": "math"},\n'
            '])\n'
            'print(results.summary.success_rate)', "1.0\n", marks=pytest.mark.row("P-017")
        ),
        pytest.param(CACHE, "None\n{'verified': True}\nNone\n", marks=pytest.mark.row("P-019..022")),
        pytest.param(GUARDS, "True\nTrue\nTrue\nFalse\nFalse\n", marks=pytest.mark.row("P-038..044")),
    ],
)  # fmt: skip
def test_the_programs_of_the_document_run(
    program: str, printed: str, given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program, "document", "exec"), given)
    if "client" in given and hasattr(given["client"], "close"):
        given["client"].close()
    assert capsys.readouterr().out == printed
