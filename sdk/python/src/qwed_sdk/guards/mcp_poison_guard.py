"""MCPPoisonGuard: does a tool's definition carry instructions for the model?"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from qwed_new.plain_text import plain
from qwed_new.values import texts
from qwed_sdk.guards.answers import allowed, refused

MAX_VALUES = 20_000
_DOMAINS = (
    "api.github.com", "api.stripe.com", "api.anthropic.com", "api.openai.com", "json-schema.org", "localhost",
    "127.0.0.1")
_PATTERNS = (
    r"<\s*+(?:/\s*+)?(?:important|system|instructions?|secret|hidden|admin|assistant|user)\b[^>]{0,80}>",
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:previous|prior|above|earlier|all|other|safety|system"
    r"|your)\b.{0,30}\b(?:instructions?|rules?|prompts?|guidelines?|directions?|guardrails?)\b",
    r"\byou\s+are\s+now\s+(?:an?\s+)?\w+|\bact\s+as\s+(?:an?\s+)?(?:unrestricted|different|evil|admin|root)\b"
    r"|\bpretend\s+(?:to\s+be|you\s+are)\b",
    r"\b(?:do\s+not|don'?t|never)\s+(?:tell|mention|inform|reveal|show|notify|disclose|say|let)\b.{0,60}",
    r"\bwithout\s+(?:telling|informing|notifying|asking|mentioning)\b",
    r"\b(?:before|after|when|whenever|instead\s+of)\b.{0,60}\b(?:using|calling|this|any"
    r"|other)\b.{0,40}\btools?\b.{0,80}\b(?:read|send|call|first|must|always|include|pass)\b",
    r"\b(?:send|post|upload|forward|exfiltrate|transmit|leak|copy|append|include|attach|pass)\b.{0,60}\b"
    r"(?:tokens?|passwords?|secrets?|credentials?|api[\s_-]?keys?|private\s+keys?|conversation|chat\s+history"
    r"|system\s+prompt|cookies?|ssh|\.env)\b",
    r"\b(?:read|open|cat|access|fetch|get)\b.{0,40}(?:~/|/etc/|\.ssh|id_rsa|\.aws|\.env\b|credentials|mcp\.json|/root"
    r"|private\s+key)",
    r"\bsystem\s+prompt\b|\bjailbreak\b|\bDAN\s+mode\b|\bdeveloper\s+mode\b|\bprompt\s+injection\b",
    r"\[\s*(?:system|inst|/inst|important)\s*\]|<\|[a-z_]{2,20}\|>|###\s*(?:system|instruction)",
    r"\b(?:execute|run|eval)\b.{0,30}\b(?:shell|command|curl|wget|bash|rm\s+-rf)\b.{0,40}\b"
    r"(?:first|before|silently|always)\b",
)
_COMPILED = tuple(re.compile(p, re.I | re.S) for p in _PATTERNS)
_URL = re.compile(r"(?:https?|wss?|ftp)://[^\s<>\"'`)\]}]+", re.I)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")

# Emoji joined by zero-width joiners, as in a family or a profession, are one visible picture.
_PICTURE = "[\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]\ufe0f?[\U0001f3fb-\U0001f3ff]?\ufe0f?"
_EMOJI = re.compile(f"{_PICTURE}(?:\u200d{_PICTURE})*")
# Joiners between two letters of Arabic, Persian and the scripts of India shape these letters.
_SHAPING = re.compile("(?<=[\u0600-\u07ff\u0900-\u0dff])[\u200c\u200d](?=[\u0600-\u07ff\u0900-\u0dff])")


class MCPPoisonGuard:
    """Scans every text of a definition: names, titles, descriptions, schemas at any depth, output schemas, annotations.

    allowed_domains are the only hosts that URLs may have. Characters that no reader sees are themselves a finding.
    """

    def __init__(
        self,
        allowed_domains: Sequence[str] | None = None,
        custom_injection_patterns: Sequence[str] | None = None,
        scan_parameters: bool = True,
    ) -> None:
        self.allowed_domains = [d.lower() for d in (_DOMAINS if allowed_domains is None else allowed_domains)]
        self._patterns = (*_COMPILED, *(re.compile(p, re.I | re.S) for p in custom_injection_patterns or ()))
        self._scan_parameters = scan_parameters

    def verify_tool_definition(self, tool_schema: Mapping[str, Any]) -> dict[str, Any]:
        """Judge one tool; the flags of a refusal name each finding and its place."""
        if not isinstance(tool_schema, Mapping):
            return refused(
                "MCP_TOOL_POISONING", "The definition is not an object.", tool_name="<unnamed>",
                flags=["NOT_AN_OBJECT"])
        name = str(tool_schema.get("name", "<unnamed>"))
        flags: list[str] = []
        for count, (path, text) in enumerate(_texts(tool_schema, self._scan_parameters)):
            if count >= MAX_VALUES:
                flags.append("TOO_LARGE: the definition has too many values")
                break
            flags += [f"[{path}] {flag}" for flag in self._scan(text)]
        if flags:
            message = f"The definition of {name!r} carries {len(flags)} suspicious text(s)."
            return refused("MCP_TOOL_POISONING", message, tool_name=name, flags=flags)
        return allowed(f"The definition of {name!r} carries nothing suspicious.", tool_name=name, flags=[])

    def verify_server_config(self, server_config: Mapping[str, Any]) -> dict[str, Any]:
        """Judge all tools of a configuration: `tools`, and those of each of `mcpServers`."""
        tools = [*_list(server_config.get("tools"))]
        servers = server_config.get("mcpServers")
        for server in servers.values() if isinstance(servers, Mapping) else ():
            tools += _list(server.get("tools")) if isinstance(server, Mapping) else []
        poisoned = [r for r in map(self.verify_tool_definition, tools) if not r["verified"]]
        if poisoned:
            message = f"{len(poisoned)} of {len(tools)} tools are poisoned."
            return refused("MCP_SERVER_POISONING", message, tools_scanned=len(tools), poisoned_tools=poisoned)
        return allowed(f"{len(tools)} tools carry nothing suspicious.", tools_scanned=len(tools))

    def _scan(self, text: str) -> list[str]:
        flags = []
        hidden = sorted({f"U+{ord(c):04X}" for c in _SHAPING.sub("", _EMOJI.sub("", text)) if _is_hidden(c)})
        if hidden:
            flags.append(f"HIDDEN_CHARACTERS: {', '.join(hidden[:8])}")
        visible = "".join(c for c in unicodedata.normalize("NFKC", text[:200_000]) if not _is_hidden(c))
        tagged = "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) <= 0xE007E)
        readings = {visible, plain(visible).lower(), re.sub(r"\s+", " ", visible), tagged, *_decoded(visible)}
        for reading in readings:
            for pattern in self._patterns:
                if match := pattern.search(reading):
                    flags.append(f"PROMPT_INJECTION: {' '.join(match[0].split())[:120]!r}")
            flags += [f"UNAUTHORIZED_URL: {url[:200]}" for url in _URL.findall(reading) if not self._allowed(url)]
        return list(dict.fromkeys(flags))

    def _allowed(self, url: str) -> bool:
        try:
            parts = urlsplit(url.rstrip(".,;:!?"))
            host = (parts.hostname or "").rstrip(".")
        except ValueError:
            return False
        return "@" not in parts.netloc and any(
            host == d or ("." in d and host.endswith("." + d)) for d in self.allowed_domains)


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError("tools is a list")
    return value


def _is_hidden(c: str) -> bool:
    return (
        (unicodedata.category(c) in ("Cf", "Cc", "Co", "Cn") and c not in "\t\n\r")
        or c in "\u115f\u1160\u3164\uffa0\u034f\u2800"
        or "\ufe00" <= c <= "\ufe0e"
    )


def _decoded(text: str) -> Iterator[str]:
    for match in list(_BASE64.finditer(text))[:20]:
        try:
            decoded = base64.b64decode(match[0] + "=" * (-len(match[0]) % 4)).decode("ascii")
        except (binascii.Error, ValueError):
            continue
        if decoded.isprintable():
            yield decoded


_SCHEMAS = frozenset({"inputSchema", "outputSchema", "parameters"})


def _texts(definition: Mapping[str, Any], parameters: bool) -> Iterator[tuple[str, str]]:
    yield "keys", " ".join(str(k) for k in definition)
    yield from texts(definition, frozenset() if parameters else _SCHEMAS)
