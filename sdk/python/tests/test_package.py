"""What the wheel will hold: types, licence, data, dependencies, the command, a README whose programs run."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def test_every_package_is_typed() -> None:
    packages = [p for p in (HERE / "src").iterdir() if (p / "__init__.py").exists()]
    assert len(packages) == 6 and all((p / "py.typed").exists() for p in packages)


def test_the_licence_is_the_one_of_the_repository() -> None:
    assert PROJECT["license-files"] == ["LICENSE"] and (HERE / "LICENSE").read_bytes() == (
        HERE.parents[1] / "LICENSE").read_bytes()


def test_each_dependency_is_imported_and_locked() -> None:
    imports = {"python-dateutil": "dateutil", "python-stdnum": "stdnum", "pillow": "PIL", "z3-solver": "z3"}
    sources = "\n".join(f.read_text() for f in (HERE / "src").rglob("*.py"))
    locked = (HERE / "requirements" / "engines.txt").read_text()
    wanted = {line.lower() for line in (HERE / "requirements" / "engines.in").read_text().split()}
    for requirement in PROJECT["dependencies"]:
        name = re.match(r"[\w-]+", requirement)[0]  # type: ignore[index]
        module = imports.get(name, name.replace("-", "_"))
        assert re.search(rf"(?:import|from) {module}\b|\"{module}\.|f\"{module}\.", sources), f"{name} is not imported"
        assert name in wanted and re.search(rf"^{name}==", locked, re.M), f"{name} is not locked"
    assert len(wanted) == len(PROJECT["dependencies"])


def test_the_command_is_there() -> None:
    module, _, function = PROJECT["scripts"]["qwed"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.row("P-001")
def test_the_programs_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (HERE / "README.md").read_text()
    for program in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out.split("\n")[:3] == ["VERIFIED", "True", "Dangerous pattern: eval"]
