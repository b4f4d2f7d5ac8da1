"""Patterns for programs that do not parse. They see texts and comments too, so they are only a fallback."""

from __future__ import annotations

import re

from qwed_new.engines.code.findings import Finding

_PATTERNS = {
    name: re.compile(pattern)
    for name, pattern in {
        "eval": r"\beval\s*\(", "exec": r"\bexec\b\s*\(?", "compile": r"\bcompile\s*\(", "open": r"\bopen\s*\(",
        "__import__": r"__import__",
        "os.system": r"\bsystem\s*\(", "os.popen": r"\bpopen\s*\(", "subprocess": r"\bsubprocess\b",
        "pickle.loads": r"\bpickle\b.*\bloads?\b",
        "marshal.loads": r"\bmarshal\b.*\bloads?\b", "__builtins__": r"__builtins__",
        "__subclasses__": r"__subclasses__|__globals__|__code__|__mro__|__bases__",
        "importlib": r"\bimportlib\b", "ctypes": r"\bctypes\b", "socket": r"\bsocket\b", "getattr": r"\bgetattr\s*\(",
        "os": r"\b(?:from|import)\s+(?:os|posix|pty|shutil)\b",
    }.items()
}  # fmt: skip


def scan(code: str) -> list[Finding]:
    """The dangerous patterns in a text."""
    found = []
    for name, pattern in _PATTERNS.items():
        if match := pattern.search(code):
            line = code.count("\n", 0, match.start()) + 1
            found.append(Finding("dangerous_pattern", "critical", f"Dangerous pattern: {name}", line))
    return found
