"""Verdicts on programs."""

from __future__ import annotations

import re
from typing import Any

from qwed_new.engines.code import javascript, patterns, python, safety, shell
from qwed_new.engines.code.findings import Finding
from qwed_new.limits import TimeLimit, limited
from qwed_new.verdict import Status, Verdict

ENGINE = "code"
SECONDS = 10.0
LANGUAGES = {
    **{"python": "python", "py": "python", "javascript": "javascript", "js": "javascript", "typescript": "typescript",
        "ts": "typescript"},
    **{"sql": "sql", "shell": "shell", "bash": "shell", "sh": "shell"},
}


def findings(code: str, language: str) -> list[Finding]:
    """Return the findings of a program. Raise LookupError if the language is unknown."""
    language = LANGUAGES[language.strip().lower()]
    if language == "sql":
        from qwed_new.engines.sql import verify_sql

        verdict = verify_sql(code, dialect=None)
        return [] if verdict["verified"] else safety.of_sql(verdict.get("issues", [verdict["message"]]))
    if language == "python":
        try:
            return python.analyse(code)
        except (SyntaxError, ValueError):
            return patterns.scan(code)
    found = shell.analyse(code) if language == "shell" else javascript.analyse(code, language == "typescript")
    if found is None:
        return [*patterns.scan(code),
            Finding("unparsed", "high", f"Does not parse: the text is no {language} that could be analysed", 1)]
    return found


def verify_code(
    code: str, language: str = "python", seconds: float = SECONDS, accept_unparsed: bool = False) -> Verdict:
    """Decide whether a program is free of the patterns that the analysers of LANGUAGES know to be dangerous.

    BLOCKED has `vulnerabilities`, each with severity, message and line. VERIFIED means that nothing was found, not
    that the program does what it should. A text that is not valid Python is searched for patterns and is INCONCLUSIVE
    if none is found. With accept_unparsed it is VERIFIED, for callers that run it and get the SyntaxError.
    """
    if not isinstance(code, str) or not isinstance(language, str):
        return Verdict(Status.UNKNOWN, ENGINE, "code and language are texts", vulnerabilities=[])
    if language.strip().lower() not in LANGUAGES:
        known = ", ".join(sorted(set(LANGUAGES.values())))
        return Verdict(
            Status.UNKNOWN, ENGINE, f"the language {language!r} is not supported; these are: {known}",
            vulnerabilities=[])
    if "\0" in code and not accept_unparsed:
        message = "code contains a NUL character: write it without U+0000"
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, vulnerabilities=[])
    try:
        found, parses = limited(seconds, _analysed, code, language)
    except TimeLimit:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"not analysed within {seconds:g} seconds", vulnerabilities=[])
    except (RecursionError, MemoryError):
        return Verdict(Status.BLOCKED, ENGINE, "the program is nested too deep", vulnerabilities=[])
    evidence: dict[str, Any] = {
        "language": LANGUAGES[language.strip().lower()],
        "method": "parsed" if parses else "patterns",
        "characters": len(code),
        "rules_checked": len(safety.RULES),
    }
    problems = [Vulnerability(f.to_dict()) for f in found]
    if problems:
        message = "; ".join(f.message for f in found[:10])
        return Verdict(
            Status.BLOCKED, ENGINE, message, {**evidence, "findings": [f.to_dict() for f in found]},
            vulnerabilities=problems)
    if not parses and not accept_unparsed:
        message = (
            "the text does not parse as Python, so that it was only searched for dangerous patterns; none was found")
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, evidence, vulnerabilities=[])
    return Verdict(Status.VERIFIED, ENGINE, "nothing dangerous was found", evidence, vulnerabilities=[])


def _analysed(code: str, language: str) -> tuple[list[Finding], bool]:
    """Return the findings of a program, and whether the text is a program."""
    return findings(code, language), LANGUAGES[language.strip().lower()] != "python" or python.parses(code)


def is_program(text: str, language: str) -> bool:
    """Report whether a text that parses is probably a program: it has several lines, or it imports, defines or calls
    something."""
    if "\n" in text.strip() or ";" in text:
        return True
    return python.does_something(text) if language == "python" else bool(
        re.search(r"[\w\])]\s*\(|\bfunction\b|\brequire\b|=>\s*\{", text))


class Vulnerability(dict[str, Any]):
    """One finding, whose fields read as attributes too: rule, severity, message, line, alternative."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def verify_code_safety(code: str, language: str, context: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a dict with safe, violations, warnings, language, code_length (characters) and rules_checked.

    Each violation has rule, severity, message and alternative. If the program is not safe, blocked_reason and
    alternative are set in the dict too. A language that is not supported is not safe. context is ignored.
    """
    if not isinstance(code, str) or not isinstance(language, str) or language.strip().lower() not in LANGUAGES:
        known = ", ".join(sorted(set(LANGUAGES.values())))
        unsupported = Finding(
            "unsupported_language", "high", f"The language {language!r} is not supported", 0, f"Use one of {known}")
        return safety.report(code if isinstance(code, str) else "", str(language), [unsupported])
    name = LANGUAGES[language.strip().lower()]
    try:
        return safety.report(code, name, limited(SECONDS, findings, code, language))
    except TimeLimit:
        return safety.report(
            code, name, [Finding("too_large", "high", f"The program was not analysed within {SECONDS:g} seconds")])
