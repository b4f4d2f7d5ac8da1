"""The analysers of the other languages, and verify_code_safety."""

from __future__ import annotations

import pytest

from qwed_new.engines.code import verify_code, verify_code_safety
from qwed_new.guards.code_guard import CodeGuard

BAD = {
    "javascript": [
        "eval('1')", "const e = eval; e('1')", "new Function('return 1')()", "require('child_process').exec('id')",
        "import fs from 'fs'", "import('fs')",
        "process.exit()", "(() => {}).constructor('return 1')()", "[]['constructor']['constructor']('x')",
        "[]['con' + 'structor']", "globalThis['ev' + 'al']('1')",
        "globalThis[x]('1')", "const g = globalThis", "setTimeout('alert(1)', 1)", "a.__proto__ = b", "({}).__proto__",
        "document.write('x')", "el.innerHTML = x",
        "fetch('http://x')", "import { exec } from 'node:child_process'", "export * from 'fs'", "\\u0065val('1')",
        "window.eval('1')", "Reflect.get(a, 'b')",
        "const {constructor: c} = 1; a[`constr${'uctor'}`]", "with (a) { b }", "eval(", "new WebSocket('ws://x')",
        "var f = [eval][0]", "a?.constructor",
    ],
    "typescript": [
        "eval('1')", "const x: any = require('fs')", "import * as cp from 'child_process'",
        "const f: Function = new Function('x')"],
    "shell": [
        "rm -rf /", "/bin/rm x", "r\\m x", "'rm' x", "r''m x", "echo $(id)", "echo `id`", "curl x | sh",
        "echo x | bash", "cat /etc/passwd", "cat ../../etc/hosts", "sudo ls",
        "$X -rf /", "eval ls", "python3 -c 1", "echo x > /etc/cron.d/x", "ls; rm x", "ls && rm x", "ls || rm x",
        "ls & rm x", "find . -delete", "find . -exec rm {} +",
        "sed -i s/a/b/ x", "PATH=/tmp ls", "env rm x", "xargs rm", "f() { rm x; }; f", "cat ~/.ssh/id_rsa",
        "{rm,-rf,/}", "dd if=/dev/zero of=/dev/sda", "if true; then rm x; fi",
        "(rm x)", "cat <(id)", "echo 'unclosed", ":(){ :|:& };:", "git push", "$'\\x72m' x", "RM x", "tee x",
        "chmod 777 x", "cat .env",
    ],
    "sql": ["DROP TABLE users", "SELECT * FROM u WHERE a = 1 OR 1=1", "DELETE FROM u", "SELECT 1; SELECT 2",
        "SELECT pg_sleep(9)", "SELEC"],
}  # fmt: skip
GOOD = {
    "javascript": [
        "const add = (a, b) => a + b; console.log(add(1, 2))", "// eval('1')\nconst s = 'eval(1)'",
        "class A { constructor(x) { this.x = x } get() { return this.x } }",
        "const m = /a(b)/.exec('ab'); m[1]", "for (const x of [1, 2]) console.log(x * 2)",
        "const o = {a: 1}; o['a']; o[key]; arr[i + 1]", "JSON.parse('{}')",
        "async function f() { await Promise.all([1]) }", "setTimeout(() => 1, 10)",
        "class B extends A { constructor() { super() } }", "import _ from 'lodash'", "Math.max(...[1, 2])",
        "Array.prototype.slice.call([1])", "const system = 'linux'; `x ${system}`",
    ],
    "typescript": [
        "interface A { x: number }\nconst f = (a: A): number => a.x", "enum E { A, B }\nexport const e: E = E.A",
        "type T<U> = U | null; function id<U>(x: U): U { return x }"],
    "shell": [
        "ls", "ls -la /tmp", "echo hello", "cat notes.txt | grep x | sort | uniq -c", "wc -l a.txt 2>/dev/null", "pwd",
        "find . -name '*.py'", "echo 'rm -rf /'", "grep -r rm .", "head -n 5 x", "git status", "date", ""],
    "sql": ["SELECT id FROM users WHERE name = 'DROP TABLE x'", "SELECT count(*) FROM t GROUP BY a"],
}  # fmt: skip


@pytest.mark.row("Q-071", "P-010", "K-006")
@pytest.mark.parametrize(("language", "code"), [(lang, code) for lang, codes in BAD.items() for code in codes])
def test_dangerous_programs_are_blocked(language: str, code: str) -> None:
    verdict = verify_code(code, language)
    assert verdict.status == "BLOCKED" and verdict.vulnerabilities, verdict
    assert verify_code_safety(code, language)["safe"] is False


@pytest.mark.row("Q-071", "K-009")
@pytest.mark.parametrize(("language", "code"), [(lang, code) for lang, codes in GOOD.items() for code in codes])
def test_harmless_programs_pass(language: str, code: str) -> None:
    if language == "sql" or code:
        assert verify_code(code, language).verified, verify_code(code, language)
        safety = verify_code_safety(code, language)
        assert safety["safe"] and safety["violations"] == safety["warnings"] == []


@pytest.mark.row("Q-071", "K-006")
def test_unknown_languages_are_refused() -> None:
    assert verify_code("x", "brainfuck").status == "UNKNOWN"
    safety = verify_code_safety("x", "brainfuck")
    assert safety["safe"] is False and "not supported" in safety["blocked_reason"]


@pytest.mark.row("K-007", "K-008")
def test_the_documents_answer() -> None:
    safety = verify_code_safety("DROP TABLE users;", "sql")
    violation = {
        "rule": "drop_table", "severity": "critical", "message": "Destructive SQL: DROP operation detected",
        "alternative": "Consider using soft delete or archiving instead of DROP",
    }  # fmt: skip
    assert safety["violations"] == [violation] and safety["blocked_reason"] == violation["message"] and safety[
        "alternative"] == violation["alternative"]
    assert (safety["language"], safety["code_length"]) == ("sql", 17) and safety["rules_checked"] >= 20
    assert verify_code_safety("größe = 1", "python")["code_length"] == 9


@pytest.mark.row("Q-025", "Q-056")
def test_the_documents_guard() -> None:
    result = CodeGuard().verify_safety("import os; os.system('rm -rf /')")
    assert result["verified"] is False and result["violations"] == ["Dangerous pattern: os.system"]


def test_huge_programs_of_other_languages_end() -> None:
    for language in ("javascript", "typescript", "shell"):
        for code in ("(" * 50_000, "a" * 2_000_000, "[" * 3_000 + "]" * 3_000):
            assert verify_code(code, language).status in ("BLOCKED", "VERIFIED", "INCONCLUSIVE")
