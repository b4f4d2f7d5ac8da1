"""SystemGuard: may this command run, may this file be touched?"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from qwed_new.engines.code import shell
from qwed_new.engines.code.shell_policy import BLOCKED
from qwed_sdk.guards.answers import allowed, refused

_RISKS = {
    "blocked_command": "BLOCKED_COMMAND", "computed_command": "BLOCKED_COMMAND",
    "function_definition": "BLOCKED_COMMAND", "variable_assignment": "BLOCKED_COMMAND",
    "command_substitution": "COMMAND_SUBSTITUTION", "path_violation": "PATH_VIOLATION", "file_write": "FILE_WRITE",
}  # fmt: skip
_SHELLS = re.compile(r"\|\s*(?:\S*/)?(?:ba|z|k|da|c|fi)?sh\b|\|\s*(?:\S*/)?(?:python|perl|ruby|node)", re.I)
_FORBIDDEN = re.compile(
    r"(?:^|/)\.\.(?:/|$)|(?:^|/)\.ssh(?:/|$)|^/etc/|^/root(?:/|$)|^/var/log(?:/|$)|^/(?:proc|sys|dev|boot)(?:/|$)"
    r"|(?:^|/)\.env(?:\.|$)|(?:^|/)\.git/config$|(?:^|/)id_(?:rsa|dsa|ecdsa|ed25519)|\.pem$|^~",
    re.I,
)


class SystemGuard:
    """Judge shell commands by their syntax tree, and paths by their resolved targets.

    allowed_paths are the directories in which files are allowed; blocked_commands adds to the commands that are always
    refused.
    """

    def __init__(
        self,
        allowed_paths: Sequence[str] | None = None,
        blocked_commands: Sequence[str] | None = None,
        forbidden_path_patterns: Sequence[str] | None = None,
    ) -> None:
        self.allowed_paths = list(allowed_paths) if allowed_paths is not None else ["/tmp", "./workspace", "."]
        self.blocked_commands = sorted(BLOCKED | {c.lower() for c in blocked_commands or ()})
        self._extra = {c.lower() for c in blocked_commands or ()}
        self._forbidden = [_FORBIDDEN, *(re.compile(p, re.I) for p in forbidden_path_patterns or ())]

    def verify_shell_command(self, command: str) -> dict[str, Any]:
        """Judge a command; a refusal's risk is BLOCKED_COMMAND, PIPE_TO_SHELL, COMMAND_SUBSTITUTION, PATH_VIOLATION,
        FILE_WRITE or UNPARSED."""
        if not isinstance(command, str):
            return refused("UNPARSED", "The command is not a text.")
        if not command.strip():
            return allowed("The command is empty.")
        if "\0" in command:
            return refused("UNPARSED", "The command contains a NUL character.")
        findings = shell.analyse(command)
        if findings is None:
            return refused("UNPARSED", "The command does not parse as a shell command.")
        words = {shell.unquote(w).rsplit("/", 1)[-1].lower() for w in command.split()}
        if blocked := sorted(words & self._extra):
            return refused("BLOCKED_COMMAND", f"The command {blocked[0]!r} is not allowed.")
        if findings:
            risk = "PIPE_TO_SHELL" if _SHELLS.search(command) else _RISKS.get(findings[0].rule, "BLOCKED_COMMAND")
            return refused(risk, "; ".join(f.message for f in findings[:5]), findings=[f.to_dict() for f in findings])
        return allowed("The command has nothing that is refused.")

    def verify_file_access(
        self, filepath: str, operation: str = "read", allowed_paths: Sequence[str] | None = None) -> dict[str, Any]:
        """Judge a path; links are followed. A refusal's risk is EMPTY_PATH, INVALID_PATH, FORBIDDEN_PATH or
        SANDBOX_ESCAPE."""
        if not isinstance(filepath, str) or not filepath.strip():
            return refused("EMPTY_PATH", "The path is empty.")
        if "\0" in filepath or re.match(r"[A-Za-z][\w+.-]*:", filepath) or "\\" in filepath:
            return refused("INVALID_PATH", f"{filepath!r} is not a plain path.")
        for reading in {filepath, unquote(filepath), unquote(unquote(filepath))}:
            if any(p.search(posixpath.normpath(reading)) or p.search(reading) for p in self._forbidden):
                return refused("FORBIDDEN_PATH", f"The path {filepath!r} is not allowed.")
        real = os.path.realpath(filepath)
        bases = [os.path.realpath(a) for a in (self.allowed_paths if allowed_paths is None else allowed_paths)]
        if not any(real == base or real.startswith(base.rstrip("/") + "/") for base in bases):
            return refused("SANDBOX_ESCAPE", f"The path {filepath!r} is outside the allowed directories.")
        if any(p.search(real) for p in self._forbidden[:1] if not any(p.search(b) for b in bases)):
            return refused("FORBIDDEN_PATH", f"The path {filepath!r} leads to one that is not allowed.")
        return allowed(f"The path may be used to {operation}.", resolved=real)

    def verify_file_path(
        self, filepath: str, allowed_paths: Sequence[str] | None = None, operation: str = "read") -> dict[str, Any]:
        """Judge a path as verify_file_access does, with the arguments of the tool of this name."""
        return self.verify_file_access(filepath, operation, allowed_paths)
