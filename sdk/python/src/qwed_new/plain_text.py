"""Texts as a reader sees them: compatibility characters, invisible characters and look-alikes replaced."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Letters of other scripts that look like Latin letters.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁһӏгᴠԛԝѵοαεικνρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕКМНОРСТУХІЈЅԍɑɡıⅼ",
    "aeopcyxijsdhlrvqwvoaeikvptuxABEZHIKMNOPTYXABEKMHOPCTYXIJSGagil",
)
# The dots that separate the labels of a host name beside the full stop (UTS 46).
_DOTS = str.maketrans("。．｡․", "....")


def plain(text: str) -> str:
    """Return a text in the characters that a reader takes it for; the case of letters stays."""
    text = unicodedata.normalize("NFKC", text.translate(_DOTS))
    text = "".join(
        c for c in text if unicodedata.category(c) != "Cf" and c not in "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
    return "".join(c for c in text if not 0xFE00 <= ord(c) <= 0xFE0F).translate(_LOOK_ALIKES)


def confusable(texts: Iterable[str]) -> str:
    """Return why two words of texts that look the same are different, or an empty string. A Greek letter alone is a
    symbol of mathematics."""
    whole = " ".join(text[:100_000] for text in texts)
    seen: dict[str, str] = {}
    if not whole.isascii():
        for word in re.findall(r"[^\W\d_]\w*", whole):
            if len(word) == 1 and "α" <= word.lower() <= "ω" and word not in "οΟ":
                continue
            word = unicodedata.normalize("NFKC", word)
            if seen.setdefault(plain(word), word) != word:
                return f"{word!r} and {seen[plain(word)]!r} look the same and have different letters"
    return ""
