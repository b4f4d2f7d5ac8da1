"""The part of LaTeX that formulas of claims use, written with the characters that `notation` reads."""

from __future__ import annotations

import re

_SYMBOLS = {
    "cdot": "*", "times": "*", "div": "/", "le": "<=", "leq": "<=", "leqslant": "<=", "ge": ">=", "geq": ">=",
    "geqslant": ">=", "ne": "!=", "neq": "!=", "approx": "≈", "lt": "<", "gt": ">", "pi": " pi ", "infty": "∞",
    "to": "→", "rightarrow": "→", "int": "∫", "sum": "∑", "prod": "∏", "lim": "lim", "left": "", "right": "",
    "displaystyle": "", "limits": "", "quad": " ", "qquad": " ", ",": " ", ";": " ", ":": " ", "!": "", " ": " ",
    "%": "%", "{": "(", "}": ")", "lvert": "|", "rvert": "|", "vert": "|", "(": "", ")": "", "[": "", "]": "",
}  # fmt: skip
_FUNCTIONS = frozenset(
    "sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan exp log ln lg min max gcd mod".split())
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*(?:\[([^][{}]*)\])?\s*\{([^{}]*)\}")
_BINOMIAL = re.compile(r"\\[dt]?binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_POWER = re.compile(r"(?<![∫∑∏}\w])\^\s*\{([^{}]*)\}|(?<=\w)(?<!_\w)\^\s*\{([^{}]*)\}")
_NAMED = re.compile(r"\\(?:text|mathrm|operatorname|mathit)\s*\{\s*(\w+)\s*\}")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)")


def written_plainly(text: str) -> str:
    r"""Return a text without the commands of LaTeX that are known; `\foo` stays, so that it is reported."""
    if (formula := re.fullmatch(r"\s*\$([^$]+)\$\s*", text)) is not None:
        text = formula[1]
    if "\\" not in text:
        return text
    text = _NAMED.sub(r"\1", text)
    before = ""
    while before != text:  # from the inside out
        before = text
        text = _FRACTION.sub(r"((\1)/(\2))", text)
        text = _ROOT.sub(lambda m: f"root({m[2]}, {m[1]})" if m[1] else f"sqrt({m[2]})", text)
        text = _BINOMIAL.sub(r"binomial(\1, \2)", text)
        text = _POWER.sub(lambda m: f"^({m[1] if m[1] is not None else m[2]})", text)
    return _COMMAND.sub(_command, text)


def _command(match: re.Match[str]) -> str:
    name = match[1]
    return f" {name} " if name in _FUNCTIONS else _SYMBOLS.get(name, match[0])
