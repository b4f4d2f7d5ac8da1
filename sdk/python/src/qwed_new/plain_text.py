"""Texts as a reader sees them: compatibility characters, invisible characters and look-alikes replaced."""

from __future__ import annotations

import unicodedata

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
