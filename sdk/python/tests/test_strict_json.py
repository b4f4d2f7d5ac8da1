"""JSON from outside has one meaning, or it is refused (issue 24)."""

from __future__ import annotations

import io
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from qwed_new import strict_json
from qwed_sdk.cli import main
from qwed_sdk.engine import answer_json
from qwed_sdk.guards import ConfigGuard
from qwed_ucp import UCPVerifier

SOURCES = Path(__file__).resolve().parents[1] / "src"

AMBIGUOUS = {
    "a member twice": ('{"a": 1, "a": 2}', "the member 'a' is given twice"),
    "a member twice far inside": ('[{"b": [{"a": 1, "c": 2, "a": 1}]}]', "the member 'a' is given twice"),
    "a member twice, once escaped": ('{"a": 1, "\\u0061": 2}', "the member 'a' is given twice"),
    "not a number": ("[NaN]", "NaN is not a JSON number"),
    "infinity": ("-Infinity", "-Infinity is not a JSON number"),
    "a number that no float holds": ("[1e999]", "the number 1e999 is too large"),
    "half of a surrogate pair": ('["\\ud800"]', "a string has half of a surrogate pair"),
    "half of a pair in a name": ('{"\\uDFFF": 1}', "a string has half of a surrogate pair"),
    "half of a pair that is not escaped": ('["\ud800"]', "a string has half of a surrogate pair"),
    "bytes that are not UTF-8": (b'"\xff"', "byte 2 is not UTF-8"),
    "UTF-16": ('"a"'.encode("utf-16"), "byte 1 is not UTF-8"),
    "501 levels of lists": ("[" * 501 + "]" * 501, "nested more than 500 levels deep"),
    "100,000 levels of objects": ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested more than 500 levels deep"),
    "a second value": ("{} {}", "Extra data"),
    "half a value": ('{"a"', "Expecting"),
    "nothing": ("", "Expecting value"),
}


@pytest.mark.parametrize(("text", "why"), AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_what_two_readers_could_read_differently_is_an_error(text: str | bytes, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        strict_json.loads(text)


def test_what_has_one_meaning_is_read() -> None:
    text = '{"a": [1, 2.5, 1e3, "\\ud83d\\ude00", {"A": null, "a": true}], "": "' + "[{" * 1000 + '"}'
    assert strict_json.loads(text) == strict_json.loads(text.encode()) == json.loads(text)
    assert strict_json.loads("[" * 500 + "]" * 500)
    assert strict_json.loads("1.10", parse_float=Decimal) == Decimal("1.10")


@pytest.mark.parametrize(
    "text", [text for text, _ in AMBIGUOUS.values() if isinstance(text, str)], ids=lambda t: t[:20])
def test_every_reader_of_the_distribution_refuses_it(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(answer_json(text))["status"] == "UNKNOWN"
    assert UCPVerifier().verify_cart(text)["status"] == "ERROR"
    if text[:1] in ("{", "[") and "Expecting" not in text and text != '{"a"' and "} {" not in text:
        assert ConfigGuard().verify_config_safety(text)["verified"] is False
    file = tmp_path / "items.json"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert main(["batch", "-f", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


def test_json_is_read_in_one_place_only() -> None:
    raw = re.compile(r"\bjson\.loads?\(|JSONDecoder|\banswer\.json\(\)|\bresponse\.json\(\)")
    found = [
        f"{path.relative_to(SOURCES)}: {line.strip()}"
        for path in SOURCES.rglob("*.py")
        if path.name != "strict_json.py"
        for line in io.StringIO(path.read_text())
        if raw.search(line.replace("strict_json.loads(", "")) and '": "' not in line
    ]
    assert found == [], "use qwed_new.strict_json.loads"
