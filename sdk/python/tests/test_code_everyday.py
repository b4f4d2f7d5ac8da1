"""Ordinary code that is not blocked, beside code that does the same to reach something dangerous (issue 26)."""

from __future__ import annotations

import pytest

from qwed_new.engines.code import javascript, shell

HARMLESS_JAVASCRIPT = [
    "const n = obj.constructor.name;", "console.log(e?.constructor?.name)", "if (a.constructor === Foo) x();",
    "const p = require('path');", "const {join}=require('node:path');", "const c=require('./constants.js')",
    "(0, mod_1.go)(1)", "const o={__proto__: null, a:1}", "if (typeof window !== 'undefined') x()",
    "typeof Deno !== 'undefined'", "o[Symbol('x')]=1", "o[Symbol.for('x')]", "if (a === globalThis) b()",
    "if (!obj.constructor) x()", "x instanceof Function", "class A { m(){ return this.constructor.name } }",
]
DANGEROUS_JAVASCRIPT = [
    "obj.constructor('return 1')()", "obj.constructor.constructor('x')()",
    "obj.constructor.name.constructor.constructor('x')()", "a.constructor.name()", "require('child_process')",
    "require('fs')", "require('f'+'s')", "require(x)", "require('node:fs')", "const r=require;r('fs')",
    "(0,eval)('x')", "(0, globalThis.eval)('x')", "(0,o['ev'+'al'])('x')", "o={__proto__: p}", "const w=window",
    "w=globalThis", "new obj.constructor('x')", "(0, o.constructor)('x')", "let c=a.constructor; c.constructor('x')",
    "[].constructor.from", "this.constructor.constructor('x')", "(a = eval) === b && a('x')", "(eval) == 1",
    "!(f=eval)", "obj.constructor['name']", "a.constructor.name = b", "require.cache", "module.require('fs')",
    "require?.('fs')", "require`fs`", "((r)=>r('fs'))(require)", "(0, require)('fs')", "typeof (f = eval)",
    "a.constructor == b.constructor('x')()", "o[Symbol('x').description + 'y']", "o[Symbol['x']('constructor')]",
]
HARMLESS_SHELL = [
    "awk '{print $1}' file.txt", "awk -F: '{print $1, $NF}' data.csv", "awk -F',' '$3 > 100 {print $1}' x.csv",
    "awk 'NR==1' f", "awk '{s+=$1} END {print s}' f", "awk 'BEGIN{FS=\",\"} /a|b/ {print $2}' f",
    "cat f | awk '{print $2}' | sort | uniq -c", "set -euo pipefail", "set -e", "set -eu", "set -o pipefail",
    "command -v gcc", "awk 'length($0) > 80' f", "awk -v n=5 'NR<=n' f", "set -ex",
]
DANGEROUS_SHELL = [
    "awk 'BEGIN{system(\"id\")}'", "awk '{print | \"sh\"}' f", "awk '{print > \"x\"}' f",
    "awk '{\"id\" | getline x; print x}'", "awk -f evil.awk", "awk -fevil.awk", "awk --file evil",
    "awk -v 'x=1' -f y", "awk \"$prog\"", "awk $p", "awk 'BEGIN{f=\"sys\" \"tem\"; @f(\"id\")}'",
    "awk $'BEGIN{sys\\x74em(\"id\")}'", "awk 'BEGIN{ARGV[1]=\"/etc/\" \"shadow\"}1'",
    "awk \"BEGIN{sys''tem(\\\"id\\\")}\"", "awk 'BEGIN{sys''tem(\"id\")}'", "awk 'BEGIN{printf \"x\" >> \"f\"}'",
    "gawk -i inplace '{print}' f", "gawk -l x '{}'", "gawk -e 'BEGIN{system(\"id\")}'", "awk -E x", "set -- a b",
    "set -a", "set PATH", "command ls", "command -p x", "set -e -- x", "set", "awk 'BEGIN{\\\nsystem(\"id\")}'",
    "awk '{print $1}' /etc/shadow", "awk -F: -f x f", "awk '-f' x", "awk \"-f\" x", "awk -vf=x -ff",
    "awk -v x=1 -- '{print}' ; id", "\\awk 'BEGIN{system(\"\")}'", "awk '{print $1}' $(id)", "mawk -W exec x",
    "awk -W exec=x", "command -v ls; rm x", "awk '{ print \"id\" \\\n | \"sh\" }'",
    "awk '{ printf(\"id\") | \"sh\" }'", "awk 'BEGIN { \"id\"|getline }'",
    "awk 'BEGIN { while ((\"id\" | getline l) > 0) x }'", "set -e\nset -- `id`", "awk '{print}' /inet/tcp/0/x/80",
]


@pytest.mark.parametrize("code", HARMLESS_JAVASCRIPT)
def test_ordinary_javascript(code: str) -> None:
    assert javascript.analyse(code) == []


@pytest.mark.parametrize("code", DANGEROUS_JAVASCRIPT)
def test_dangerous_javascript(code: str) -> None:
    assert javascript.analyse(code)


@pytest.mark.parametrize("code", HARMLESS_SHELL)
def test_ordinary_shell(code: str) -> None:
    assert shell.analyse(code) == []


@pytest.mark.parametrize("code", DANGEROUS_SHELL)
def test_dangerous_shell(code: str) -> None:
    assert shell.analyse(code) != []
