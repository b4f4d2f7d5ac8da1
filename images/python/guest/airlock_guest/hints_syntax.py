"""Advice on code that does not parse: most of it is another language, or text around the code."""

import re

_JAVASCRIPT = re.compile(
    r"^\s*(?:(?:const|let|var)\s+[\w${\[]|function\s*\w*\s*\(|async\s+function|import\s+.*\bfrom\s+['\"]"
    r"|export\s|interface\s+\w+|type\s+\w+\s*=|//|/\*)"
    r"|=>\s*[{(\w]|===|\bconsole\.log\(|\bnew\s+\w+\(|\}\s*catch\s*\(|&&|\|\|",
    re.M,
)
_SHELL = re.compile(r"^\s*[!%]\s*(?:pip|conda|apt|npm|curl|ls|cat|matplotlib|python|bash|time)\b", re.M)
_PROSE = re.compile(r"^\s*(?:Here(?:'s| is| you| are)|This |Sure|I |The |Below|Let me|Certainly|Note:|To )", re.M)
_HYPHENED = re.compile(
    r"^\s*(?:from\s+\S*?(\w+(?:-\w+)+)\S*\s+import|(?:from\s+\S+\s+)?import\b[^#]*?\b(\w+(?:-\w+)+))"
)
_INVISIBLE = re.compile("[\\u00a0\\u200b-\\u200d\\u2060\\ufeff]")
_TYPES = re.compile(r"^\s*(?:type\s+\w+\s*(?:\[.*\])?\s*=|def\s+\w+\[|class\s+\w+\[)", re.M)


_ESCAPED = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27);")
_SQL = re.compile(r"\s*(?:SELECT\b.*\bFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b", re.I)
_NUMBERED = re.compile(r"\s*\d+(?:[ \t]*[|:)]|[ \t]+|$)")
_MESSAGES = (
    ("source code string cannot contain null bytes", "remove the NUL characters"),
    ("'unicodeescape' codec", 'a backslash begins an escape: write the text as r"…"'),
    ("'yield' outside function", "collect the values in a list and write `result = rows`"),
    ("'await' outside function", "await it above the class, and use the value"),
    ("no binding for nonlocal", "the variable is a global one: write `global` for `nonlocal`"),
    ("nonlocal declaration not allowed at module level", "leave the `nonlocal` out: it is a global variable"),
)


def _syntax(failure, message, namespace, code):
    if not isinstance(failure, SyntaxError) and "null bytes" not in message:
        return ""
    for part, advice in _MESSAGES:
        if part in message:
            return advice
    line = failure.text or ""
    if "invalid character" in message and any(mark in message for mark in "“”‘’"):
        return "write plain quotes: \" and '"
    wrapped = _wrapped(code)
    if wrapped:
        return wrapped
    if _ESCAPED.search(line):
        return "the code is escaped for HTML: send <, >, & and quotes as they are"
    copied = _copied(code)
    if copied:
        return copied
    hyphened = _HYPHENED.search(line)
    if hyphened:
        return f"a name in code has no hyphen: write {(hyphened[1] or hyphened[2]).replace('-', '_')}"
    if "invalid non-printable character" in message or _INVISIBLE.search(line):
        return "remove the invisible character"
    if "outside async function" in message or "asynchronous comprehension outside" in message:
        return "make the function `async def`, and await its call"
    if _SHELL.search(line):
        return (
            "this is not a notebook, and nothing can be installed: only Python's own library and the wrappers in"
            " `servers` are there"
        )
    if isinstance(failure, TabError):
        return "indent with spaces only"
    if line.lstrip().startswith((">>> ", "In [")):
        return "leave the prompts out: send the statements alone"
    if re.search(r"<\w[\w .-]*>|\{\{\w+\}\}", line) and not re.search(r"['\"].*<.*['\"]", line):
        return "replace what stands in angle brackets or double braces by what it stands for"
    if line.lstrip()[:3] in ("```", "~~~"):
        return "send the code alone, without Markdown around it"
    if (_PROSE.search(line) and not line.rstrip().endswith((":", ")", "]"))) or (
        _PROSE.match(code) and failure.lineno == 1):
        return "send the code alone, without text around it"
    if _TYPES.search(line):
        return "this is Python 3.11: write the type without Python 3.12's syntax"
    if message.startswith("f-string") or re.search(r"""f"[^"]*\{[^"{}]*"|f'[^']*\{[^'{}]*'""", line):
        return "this is Python 3.11: inside the braces of an f-string use the other kind of quotes, and no backslash"
    if _JAVASCRIPT.search(line) or _looks_like_javascript(code):
        return (
            'this looks like JavaScript, and the language of the run is Python: ask for the language "node", or write'
            " Python"
        )
    if "unexpected indent" in message and code[:1] in (" ", "\t", "\n"):
        return "remove the indentation that all lines share"
    return ""


def _wrapped(code):
    """Code that came inside something else, or with its line breaks escaped."""
    if re.match(r"\s*</?[a-zA-Z_][^<>]*>", code):
        return "send the code alone, without tags around it"
    if "\n" not in code.strip() and re.search(r"[^\\]\\n", code):
        return "the lines end in the two characters \\ and n: send line breaks"
    return ""


def _copied(code):
    """Code with marks of its origin: a diff, a listing, a database's prompt."""
    lines = [line for line in code.split("\n") if line.strip()]
    if all(_NUMBERED.match(line) for line in lines):
        return "send the statements alone, without the numbers of the lines"
    if all(line[0] in "+- @\\" for line in lines) and any(line[0] == "+" for line in lines):
        return "send the program itself, without the marks of a diff"
    if _SQL.match(code):
        return "this is SQL, not Python: hand it to a tool as a text"
    return ""


def _looks_like_javascript(code):
    return len(_JAVASCRIPT.findall(code)) >= 3


ADVISERS = (_syntax,)
