"""Claims of any kind: select the engine that decides them, and return its verdict."""

from __future__ import annotations

import re

from qwed_new.engines import english_math
from qwed_new.engines.code import is_program, javascript, verify_code
from qwed_new.engines.logic import verify_logic, verify_logic_statement
from qwed_new.engines.math import verify_math
from qwed_new.engines.math.build import Builder
from qwed_new.engines.math.decide import number_text
from qwed_new.engines.math.grammar import parse_expression
from qwed_new.engines.math.tree import variables
from qwed_new.engines.prose import is_prose
from qwed_new.engines.sql import verify_sql
from qwed_new.verdict import Status, Verdict

ENGINE = "auto"
MAX_TEXT = 1_000_000
_SQL = re.compile(
    r"\s*(?:select|insert|update|delete|drop|alter|create|truncate|with|merge|grant)\b.*\b"
    r"(?:from|into|table|set|as|view|on)\b", re.I | re.S
)
_CODE = re.compile(
    r"^\s*(?:import\s+\w+|from\s+\w[\w.]*\s+import\b|def\s+\w+\s*\(|class\s+\w+\s*[:(]|print\s*\(|eval\s*\(|exec\s*\("
    r"|@\w+\s*$|for\s+\w+\s+in\b.*:|while\b.*:|try\s*:)",
    re.M,
)
_CONCLUSION = re.compile(r"(?:therefore|thus|hence|so|consequently|it follows that),? (.+)", re.I | re.S)
_JAVASCRIPT = re.compile(r"^\s*(?:const|let|var|function)\s+\w+|=>|\bconsole\.log\(|\brequire\(", re.M)


def verify(query: str) -> Verdict:
    """Decide a claim of an unknown kind: QWED-Logic, SQL, a program, an argument (`…. Therefore …`), or mathematics
    in symbols or in plain words.

    A text that is understood completely without a model is decided; any other text is INCONCLUSIVE. `query_type` is
    the kind.
    """
    if not isinstance(query, str) or not query.strip():
        return Verdict(Status.UNKNOWN, ENGINE, "the claim is empty or no text", query_type="none")
    if len(query) > MAX_TEXT:
        return Verdict(Status.BLOCKED, ENGINE, f"the claim has more than {MAX_TEXT} characters", query_type="none")
    if re.match(r"\s*\(\s*(?:[A-Za-z]{2,9}|[<>=!&|]{1,3})\s", query):
        verdict = verify_logic(query)
        if verdict["status"] != "INCONCLUSIVE" or "not understood" not in verdict["message"]:
            return verdict.with_fields(query_type="logic")
    if _SQL.match(query) and (verdict := verify_sql(query, dialect=None))["status"] != "ERROR":
        return verdict.with_fields(query_type="sql")
    if len(query) <= 10_000 and (argument := _argument(query)):
        return verify_logic_statement(*argument).with_fields(query_type="logic")
    if not is_prose(query):
        if _CODE.search(query):
            return _program(query, "python")
        if _JAVASCRIPT.search(query) and javascript.analyse(query) is not None:
            return _program(query, "javascript")
    return _mathematics(query)


def _argument(query: str) -> tuple[list[str], str] | None:
    """Return the premises and the conclusion of sentences whose last one begins with a word such as `therefore`."""
    *premises, last = re.split(r"(?<=[^\W\d])[.;]\s+", query.strip())
    match = _CONCLUSION.match(last)
    return (premises, match[1]) if premises and match else None


def _program(query: str, language: str) -> Verdict:
    """The verdict on a text that is a program; INCONCLUSIVE for a sentence that begins like one, and for a formula
    that parses as one."""
    verdict = verify_code(query, language)
    if verdict["status"] == "VERIFIED" and not is_program(query, language):
        message = f"the text may be a sentence, a formula or {language}: name the engine that is meant"
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, {"query": query[:200]}, query_type="unknown")
    return verdict.with_fields(query_type="code")


def _mathematics(query: str) -> Verdict:
    direct = verify_math(query) if len(query) <= 10_000 else None
    if direct is not None and direct["status"] != "INCONCLUSIVE":
        return direct.with_fields(query_type="math")
    translated = english_math.translate(query) if len(query) <= 2_000 else None
    if translated is None:
        message = (
            "no engine understands the text whole; a model would have to translate it, and its translation proves "
            "nothing")
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, {"query": query[:200]}, query_type="unknown")
    text, question = translated
    if not question:
        return verify_math(text).with_fields(query_type="math", translated=text)
    return _answer(text)


def _answer(text: str) -> Verdict:
    """The exact value that a question asks for, proven as an equality."""
    try:
        node = parse_expression(text)
        if variables(node):
            raise ValueError("the question has variables")
        value = number_text(Builder().build(node))
    except Exception as error:
        reason = verify_math(text)
        message = (
            reason["message"] if reason["status"] in ("BLOCKED", "ERROR")
            else f"the question is not understood: {type(error).__name__}"
        )
        status = reason["status"] if reason["status"] in ("BLOCKED", "ERROR") else Status.INCONCLUSIVE
        return Verdict(status, "math", message, {"translated": text}, query_type="math")
    verdict = verify_math(f"{text} = {value}")
    if not verdict["verified"]:
        return verdict.with_fields(query_type="math", translated=text)
    return Verdict(
        Status.VERIFIED,
        "math",
        f"{text} = {value}",
        {**verdict["evidence"], "translated": text},
        query_type="math",
        value=value,
        result=value,
        answer=value,
    )
