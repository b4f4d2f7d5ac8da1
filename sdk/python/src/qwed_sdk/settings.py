"""The settings of clients: the API key and the address of the service."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

VERSION = "0.1.0"  # of the distribution airlock-verify


def settings(api_key: str | None, base_url: str | None) -> tuple[str | None, str]:
    """API key and base URL: the arguments, else QWED_API_KEY and QWED_BASE_URL. An empty URL means the engines of this
    package.

    ValueError for a URL that is not http or https, and for http to another machine: it would show the key.
    """
    key = api_key if api_key is not None else os.environ.get("QWED_API_KEY") or None
    url = (base_url if base_url is not None else os.environ.get("QWED_BASE_URL", "")).strip().rstrip("/")
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url {url!r} is not an http or https URL")
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError(f"base_url {url!r} would send the key in plain text: use https")
    return key, url


def headers(api_key: str | None) -> dict[str, str]:
    """The headers of every request."""
    common = {"Accept": "application/json", "User-Agent": f"airlock-verify/{VERSION}"}
    return {**common, "Authorization": f"Bearer {api_key}", "X-API-Key": api_key} if api_key else common
