"""Countries and states by name or code; the names are those of the package `holidays`."""

from __future__ import annotations

import functools
import re

import holidays
from holidays.registry import COUNTRIES

_ALIASES = {
    "uk": "GB", "england": "GB-ENG", "wales": "GB-ENG", "england wales": "GB-ENG", "england and wales": "GB-ENG",
    "scotland": "GB-SCT", "northern ireland": "GB-NIR", "great britain": "GB", "usa": "US", "america": "US",
    "london": "GB-ENG", "paris": "FR",
            "new york city": "US-NY", "nyc": "US-NY", "singapore": "SG", "hong kong": "HK", "tokyo": "JP",
            "delhi": "IN", "mumbai": "IN", "munich": "DE", "berlin": "DE",
            "geneva": "CH", "zurich": "CH", "stockholm": "SE", "frankfurt": "DE", "dubai": "AE"}  # fmt: skip


@functools.cache
def _countries() -> dict[str, str]:
    names: dict[str, str] = {}
    for name, (_, *codes) in COUNTRIES.items():
        two = next((c for c in codes if len(c) == 2), "")
        if two:
            names[name.replace("_", " ")] = two
            names.update({c.lower(): two for c in codes})
    return names


@functools.cache
def _states() -> dict[str, str]:
    aliases = holidays.country_holidays("US").get_subdivision_aliases()
    names = {alias.lower(): code for code, found in aliases.items() for alias in found}
    return {**names, **{code.lower(): code for code in aliases}}


def place(text: object) -> tuple[str, str | None] | None:
    """Country, and state of the US or legal system of the United Kingdom, that a text names, None for what is not
    known. `Delaware` is a state, `DE` alone the country Germany."""
    if not isinstance(text, str) or len(text) > 120:
        return None
    name = re.sub(
        r"\b(?:laws?|courts?|of|the|state|commonwealth|republic|federal|district|in|and)\b", " ", text.lower())
    name = " ".join(re.sub(r"[.,]", " ", name).split())
    for candidate in (text.lower().strip(), name, name.removesuffix(" united states").removesuffix(" usa").strip()):
        if candidate in _ALIASES:
            country, _, state = _ALIASES[candidate].partition("-")
            return country, state or None
        if candidate == "georgia":
            return None  # a state and a country
        if len(candidate) != 2 and candidate in _states():
            return "US", _states()[candidate]
        if candidate in _countries():
            return _countries()[candidate], None
        if candidate in _states():
            return "US", _states()[candidate]
    return None
