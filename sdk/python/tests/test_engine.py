"""The entry point of sandboxes and workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwed_sdk.engine import ENGINES, answer_json, preload

SOURCE = Path(__file__).parent.parent / "src"


def test_every_engine_can_be_imported_ahead() -> None:
    assert preload() == list(ENGINES)


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ('{"engine": "math", "arguments": {"expression": "2+2=4"}}', "VERIFIED"),
        ('{"engine": "math", "arguments": {"expression": "2+2=5"}}', "ERROR"),
        ('{"engine": "nothing"}', "UNKNOWN"), ("not json", "UNKNOWN"), ("[" * 100_000, "UNKNOWN"), ("[]", "UNKNOWN"),
        ('{"engine": "math", "arguments": {"text": "2+2=4"}}', "UNKNOWN"),
        ('{"engine": "math", "arguments": {"expression": 7}}', "INCONCLUSIVE"),
        ('{"engine": "math", "arguments": {"expression": "2+2=4"}, "x": 1}', "UNKNOWN"),
        ('{"engine": "math", "arguments": []}', "UNKNOWN"), (" " * (17 * 1024 * 1024), "BLOCKED"),
    ],
    ids=lambda v: v[:40],
)  # fmt: skip
def test_whatever_comes_in_a_verdict_goes_out(request_text: str, status: str) -> None:
    assert json.loads(answer_json(request_text))["status"] == status


def test_the_program_serves_one_line_after_another() -> None:
    lines = (
        '{"engine": "math", "arguments": {"expression": "9**9**9**9=1"}}\n'
        'not json\n'
        '{"engine": "logic", "arguments": {"query": "(GT x 5)"}}\n')
    run = subprocess.run(
        [sys.executable, "-m", "qwed_sdk.engine", "--serve"],
        input=lines, capture_output=True, text=True, timeout=120, check=True,
        env={"PYTHONPATH": ":".join([str(SOURCE), *sys.path])},
    )  # fmt: skip
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert answers[0] == {"ready": True}
    assert [a["status"] for a in answers[1:]] == ["BLOCKED", "UNKNOWN", "VERIFIED"]


_TEMPLATE = """
import json, os, random, signal, sys, threading
before = [signal.getsignal(s) for s in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)]
from qwed_sdk import engine
engine.preload()
assert threading.active_count() == 1, threading.enumerate()
assert before == [signal.getsignal(s) for s in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)]
import sympy.core.random as sampler
for _ in range(2):
    if not os.fork():
        ask = lambda e, **a: json.loads(engine.answer_json(json.dumps({"engine": e, "arguments": a})))["status"]
        assert ask("math", expression="(x+2)**2 = x**2 + 4*x + 4") == "VERIFIED"
        assert ask("logic", query="(AND (GT x 5) (LT y 10))") == "VERIFIED"
        assert ask("math", expression="integral(x^x^x,x,1,2) = 3", seconds=0.3) == "INCONCLUSIVE"
        say = lambda: print(ask("math", expression="2+2=4"), random.random(), sampler.rng.random(), flush=True)
        worker = threading.Thread(target=say)
        worker.start(), worker.join()
        os._exit(0)
    os.wait()
"""


def test_what_is_copied_from_one_template_works_and_draws_its_own_randomness() -> None:
    run = subprocess.run([sys.executable, "-c", _TEMPLATE], env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin"},
        capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    first, second = (line.split() for line in run.stdout.splitlines())
    assert first[0] == second[0] == "VERIFIED" and first[1] != second[1] and first[2] != second[2]

_SCRIPTS = (
    "from sympy import *\nx = symbols('x')\nprint(solve(x**2 - 2, x), integrate(x * sin(x), x), simplify(sin(x)**2))",
    "from z3 import *\nx = Int('x')\ns = Solver()\ns.add(x > 5)\nprint(s.check(), s.model())",
    "from qwed_new.engines.math_engine import verify_math\nprint(verify_math('2+2=4'))",
    "from qwed_new.engines.logic_engine import verify_logic_statement\n"
    "print(verify_logic_statement(['p -> q', 'p'], 'q'))",
    "from qwed_new.guards.code_guard import CodeGuard\nprint(CodeGuard().verify_safety('print(1)'))",
    "from qwed_new.guards.sql_guard import SQLGuard\nprint(SQLGuard().verify_query('SELECT 1'))",
    "from qwed_sdk.guards.system_guard import SystemGuard\nprint(SystemGuard().verify_shell_command('ls'))",
    "from qwed_sdk.guards.config_guard import ConfigGuard\nprint(ConfigGuard().verify_config_safety({'a': 'b'}))",
    "from qwed_finance import FinanceVerifier, ISOGuard",
    "from qwed_legal import CitationGuard, DeadlineGuard\nprint(CitationGuard().verify('347 U.S. 483 (1954)'))\n"
    "print(DeadlineGuard().verify('2024-01-15', '30 business days', '2024-02-28'))",
    "from qwed_ucp import UCPVerifier",
)


def test_scripts_find_their_imports_loaded() -> None:
    """Issue 26: a script of the gateway does not wait for the imports of the packages that scripts use."""
    program = (
        "import contextlib, io, json, sys\nfrom qwed_sdk import engine\nengine.preload_scripts()\nlate = {}\n"
        "for script in json.loads(sys.argv[1]):\n"
        "    before = set(sys.modules)\n"
        "    with contextlib.redirect_stdout(io.StringIO()):\n        exec(script, {})\n"
        "    late[script] = sorted(m for m in set(sys.modules) - before if not m.startswith('holidays.'))\n"
        "print(json.dumps(late))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(_SCRIPTS)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    late = json.loads(done.stdout)
    assert {script: modules for script, modules in late.items() if modules} == {}


@pytest.mark.parametrize(("name", "arguments"), [
    ("math", {"expression": "2+2=4\0"}),
    ("logic", {"query": "(GT x \0 5)"}),
    ("sql", {"query": "SELECT 1\0"}),
    ("code", {"code": "x = 1\0", "language": "python"}),
    ("code", {"code": "r\0m x", "language": "shell"}),
    ("fact", {"claim": "Ann came\0", "context": "Ann came."}),
    ("stats", {"query": "The mean of a is 1\0", "csv_text": "a\n1\n"}),
])  # fmt: skip
def test_a_nul_character_is_named(name: str, arguments: dict[str, str]) -> None:  # issue 26.13
    verdict = json.loads(answer_json(json.dumps({"engine": name, "arguments": arguments})))
    assert not verdict["verified"] and "NUL character: write it without U+0000" in verdict["message"]
