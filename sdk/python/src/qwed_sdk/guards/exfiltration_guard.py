"""ExfiltrationGuard: may this be sent there?"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from qwed_sdk.guards import personal_data
from qwed_sdk.guards.answers import allowed, refused

_DEFAULT = (
    "https://api.openai.com",
    "https://api.anthropic.com",
    "https://generativelanguage.googleapis.com",
    "http://localhost",
    "http://127.0.0.1",
)
_PORTS = {"https": 443, "http": 80}


class ExfiltrationGuard:
    """Allows calls to the endpoints that are listed, with payloads free of personal data and credentials.

    An endpoint is a URL (scheme, host, port and path prefix must match) or a host name (https only). [] allows none;
    None allows the default endpoints of three model providers and of this machine.
    """

    def __init__(
        self,
        allowed_endpoints: Sequence[str] | None = None,
        pii_checks: Sequence[str] | None = None,
        custom_pii_patterns: dict[str, str] | None = None,
    ) -> None:
        self.allowed_endpoints = list(_DEFAULT if allowed_endpoints is None else allowed_endpoints)
        self._checks = None if pii_checks is None else {"PHONE" if c == "PHONE_US" else c for c in pii_checks}
        self._extra = {name: re.compile(pattern) for name, pattern in (custom_pii_patterns or {}).items()}

    def verify_outbound_call(self, destination_url: str, payload: Any = "", method: str = "POST") -> dict[str, Any]:
        """Judge one call; a refusal's risk is EMPTY_DESTINATION, DATA_EXFILTRATION or PII_LEAK."""
        if not isinstance(destination_url, str) or not destination_url.strip():
            return refused("EMPTY_DESTINATION", "The call has no destination.")
        if not any(_matches(destination_url, endpoint) for endpoint in self.allowed_endpoints):
            return refused(
                "DATA_EXFILTRATION", f"The destination {destination_url!r} is not an allowed endpoint.",
                destination=destination_url
            )
        address = urlsplit(destination_url)
        found = self._scan(" ".join([_text(payload), unquote(address.query), unquote(address.path)]))
        if found:
            kinds = ", ".join(f["type"] for f in found)
            return refused(
                "PII_LEAK", f"The payload contains {kinds}.", destination=destination_url, pii_detected=found)
        return allowed(
            "The destination is allowed and the payload is clean.", destination=destination_url, method=method)

    def scan_payload(self, payload: Any) -> dict[str, Any]:
        """Judge a text alone."""
        found = self._scan(_text(payload))
        if found:
            return refused(
                "PII_DETECTED", f"The payload contains {', '.join(f['type'] for f in found)}.", pii_detected=found)
        return allowed("The payload is clean.")

    def _scan(self, text: str) -> list[dict[str, Any]]:
        return [{k: v for k, v in f.items() if k != "spans"}
            for f in personal_data.find(text, self._checks, self._extra)]


def _text(payload: Any) -> str:
    if isinstance(payload, bytes):
        return payload.decode("utf-8", "replace")
    return payload if isinstance(payload, str) else json.dumps(payload, default=str, ensure_ascii=False)


def _matches(url: str, endpoint: str) -> bool:
    """Whether scheme, host, port and path of a URL are those of an endpoint."""
    if re.search(r"[\\\s\x00-\x1f]", url) or "://" not in url:
        return False
    try:
        target = urlsplit(url)
        wanted = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        ports = target.port or _PORTS.get(target.scheme.lower()), wanted.port or _PORTS.get(wanted.scheme.lower())
    except ValueError:
        return False
    if target.username is not None or target.password is not None or "@" in target.netloc:
        return False
    if (
        target.scheme.lower() != wanted.scheme.lower()
        or (target.hostname or "").rstrip(".") != (wanted.hostname or "").rstrip(".")
        or not target.hostname
    ):
        return False
    if ports[0] != ports[1] and not (wanted.hostname in ("localhost", "127.0.0.1") and wanted.port is None):
        return False
    path, prefix = unquote(target.path) or "/", wanted.path.rstrip("/")
    if prefix and (".." in path.split("/") or "%2e" in target.path.lower()):
        return False
    return not prefix or path == prefix or path.startswith(prefix + "/")
