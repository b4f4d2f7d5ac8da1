"""Texts that SymPy and other packages evaluate (issue 26.1), and the table of functions that do so."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
import reach

from qwed_new.engines.code import verify_code

PROGRAMS = Path(__file__).parent / "programs"
# TEXT is replaced by a text that reads a file or runs a program when it is evaluated; ⏎ is the end of a line.
ROUTES = [line.replace("⏎", "\n") for line in (PROGRAMS / "evaluated_texts.txt").read_text().splitlines() if line]
ATTACKS = (
    "__import__('os').system('id')",
    "open('/etc/passwd').read()",
    "eval('1+1')",
    "().__class__.__base__.__subclasses__()",
    "x.subs(x, \"__import__('os')\")",
    "__import__('os')\n.system('id')",
    "__import__('os').system('id') + 3!",
    "preview('x')",
)
LIBRARIES = [line for line in (PROGRAMS / "libraries.txt").read_text().split("\n---\n") if line.strip()]
HARMLESS = [p.strip() for p in (PROGRAMS / "harmless_sympy.txt").read_text().split("\n---\n")]


def test_the_table_of_functions_is_that_of_the_sources() -> None:
    table = files("qwed_new.engines.code").joinpath("libraries.tsv").read_text("utf-8").splitlines()
    known = {tuple(line.split("\t")[:3]) for line in table if line and not line.startswith("#")}
    found: dict[tuple[str, str], set[str]] = {}
    for package, paths in reach.packages().items():
        for path in paths:
            for where, sink in reach.reaching(path):
                found.setdefault((package, where), set()).add(sink)
    now = {(*key, ",".join(sorted(sinks))) for key, sinks in found.items()}
    assert len(now) > 150
    assert now - known == set(), "judge these in libraries.tsv: a package brings functions that reach code"
    assert known - now == set(), "remove these from libraries.tsv: the packages no longer have them"


@pytest.mark.row("Q-117")
def test_packages_do_not_hand_on_the_standard_library() -> None:
    names = {(package, name) for package, paths in reach.packages().items() for path in paths
        for name in reach.exported(path) if reach.leads_out(name)}
    assert len(names) > 250
    passed = [(package, name) for package, name in names
        if verify_code(f"import {package}\n{package}.part.{name}").status != "BLOCKED"
        or verify_code(f"from {package} import {name}").status != "BLOCKED"]
    assert not passed, passed


@pytest.mark.row("Q-033", "Q-117")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a[:24].replace("\n", " "))
def test_texts_that_are_evaluated_are_judged_as_code(attack: str) -> None:
    passed = [route for route in ROUTES if verify_code(route.replace("TEXT", repr(attack))).status != "BLOCKED"]
    assert len(ROUTES) >= 100 and not passed


@pytest.mark.row("Q-117")
@pytest.mark.parametrize("program", LIBRARIES, ids=lambda p: p[:60].replace("\n", "; "))
def test_packages_do_not_lead_out(program: str) -> None:
    assert verify_code(program).status == "BLOCKED"


@pytest.mark.row("Q-118")
@pytest.mark.parametrize("program", HARMLESS, ids=lambda p: p[:60].replace("\n", "; "))
def test_mathematics_with_texts_passes(program: str) -> None:
    verdict = verify_code(program)
    assert verdict.verified, verdict.message
