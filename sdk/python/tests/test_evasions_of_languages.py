"""JavaScript and shell programs that reach an evaluator or another program by a detour (issue 26.6), and harmless
ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_sitter import Node

from qwed_new.engines.code import javascript, javascript_names, trees, verify_code
from qwed_sdk.guards import SystemGuard

PROGRAMS = Path(__file__).parent / "programs"


def programs(name: str) -> list[str]:
    """The programs of a file, one a line; ⏎ is the end of a line of the program."""
    return [line.replace("⏎", "\n") for line in (PROGRAMS / name).read_text().splitlines() if line
        and not line.startswith("//")]


def test_there_are_enough_and_none_twice() -> None:
    for name, least in (("evasions_js.txt", 120), ("harmless_js.txt", 50), ("evasions_shell.txt", 200),
        ("harmless_shell.txt", 60)):
        found = programs(name)
        assert len(found) == len(set(found)) >= least, name


@pytest.mark.row("Q-071", "P-010")
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_javascript_that_evaluates_texts_is_blocked(language: str) -> None:
    passed = [p for p in programs("evasions_js.txt") if verify_code(p, language).status != "BLOCKED"]
    assert not passed


@pytest.mark.row("Q-071")
@pytest.mark.parametrize("program", programs("harmless_js.txt"), ids=lambda p: p[:50])
def test_harmless_javascript_passes(program: str) -> None:
    verdict = verify_code(program, "javascript")
    assert verdict.verified, verdict.message


@pytest.mark.parametrize("statement", [
    "a.b;", "a.eval.c;", "x.fetch;", "a[i];", "fs.read();", "setTimeout(f, 1);", "setTimeout(a.f, 'b');",
    "const v = {};", "a = b;", "w = r.fetch;", "x = 'a' + 'b' + c;", "k.join('');", "for (const p of q) { p[q] }"])
def test_the_nodes_that_the_analysis_of_javascript_visits_grow_with_the_program(
    statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visited = 0

    def counted(root: Node) -> Iterator[Node]:
        nonlocal visited
        for node in trees.walk(root):
            visited += 1
            yield node

    for module in (javascript, javascript_names):
        monkeypatch.setattr(module, "walk", counted)
    head = "const r = (function () { " + "1; " * 50 + "return this })(); const k = [" + "1," * 50 + "];"
    counts = []
    for n in (200, 400):
        visited = 0
        javascript.analyse(head + statement * n)
        counts.append(visited)
    assert counts[0] < counts[1] < 2.2 * counts[0]


@pytest.mark.row("Q-078", "P-010")
def test_shell_commands_that_lead_on_are_blocked() -> None:
    passed = [p for p in programs("evasions_shell.txt") if verify_code(p, "shell").status != "BLOCKED"]
    assert not passed
    assert not [p for p in programs("evasions_shell.txt") if SystemGuard().verify_shell_command(p)["verified"]]


@pytest.mark.row("Q-078")
@pytest.mark.parametrize("program", programs("harmless_shell.txt"), ids=lambda p: p[:50])
def test_harmless_shell_commands_pass(program: str) -> None:
    verdict = verify_code(program, "shell")
    assert verdict.verified, verdict.message
