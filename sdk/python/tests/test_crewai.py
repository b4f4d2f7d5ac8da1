"""QWEDVerifiedAgent in a real crew: CrewAI itself, the real `airlock serve`, a model that follows a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from service import IMAGES, PROGRAM, ROOT, serving

from qwed_sdk import QWEDClient

LIBRARY = ROOT / "bin" / "python-crewai"
pytestmark = pytest.mark.skipif(
    not (PROGRAM.exists() and (IMAGES / "python.lock").exists() and (LIBRARY / "crewai").exists()),
    reason="needs bin/airlock, its images and bin/python-crewai"
)


@pytest.mark.row("A-063")
def test_tool_calls_of_a_crew_are_judged_before_they_run(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        key = service.token("sdk", "agents")
        with QWEDClient(key, service.url) as client:
            agent = client.register_agent("Crew", permissions={"allowed_tools": ["fetch_report"]})
        paths = [p for p in sys.path if p]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": ":".join([str(ROOT / "sdk/python/src"), str(LIBRARY), *paths]),
            "CREWAI_DISABLE_TELEMETRY": "true",
            "CREWAI_TRACING_ENABLED": "false",
            "OTEL_SDK_DISABLED": "true",
            "CREWAI_STORAGE_DIR": str(tmp_path),
        }
        program = [
            sys.executable, str(ROOT / "sdk/python/tests/programs/crew.py"), service.url, agent["agent_id"],
            agent["agent_token"]]
        run = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=300)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, run.stderr[-2000:]
    assert json.loads(lines[-1].removeprefix("RESULT ")) == {
        "ran": ["fetch_report"],
        "refusals": ["Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.0)"],
        "output": "2+2=5",
        "verdicts": ["ERROR"],
        "others": ["fetch_report", "my_custom_tool"],  # another agent of the same process is not ours
        "away": {"ran": [], "refusals": 2},  # a service that is away approves nothing
        "closed": ["fetch_report", "my_custom_tool"],
    }
