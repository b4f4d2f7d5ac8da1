"""Statistics: claims about the columns of a CSV table, decided in exact arithmetic."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from qwed_new.engines import measures
from qwed_new.engines.measures import Claimed
from qwed_new.limits import TooLarge, bounded_text
from qwed_new.money import amount
from qwed_new.verdict import Status, Verdict

ENGINE = "stats"
MAX_QUERY = 5_000
MAX_BYTES, MAX_ROWS, MAX_COLUMNS = 64 * 1024 * 1024, 1_000_000, 2_000

_MEASURES = {
    "average": "mean", "mean": "mean", "avg": "mean", "median": "median", "sum": "sum", "total": "sum",
    "maximum": "max", "max": "max", "highest": "max", "largest": "max",
    "minimum": "min", "min": "min", "lowest": "min", "smallest": "min", "standard deviation": "stdev", "std": "stdev",
    "variance": "variance", "count": "count", "number": "count",
    "range": "range", "sample standard deviation": "stdev", "sample variance": "variance",
    "population standard deviation": "population stdev", "population variance": "population variance",
}  # fmt: skip
_RELATIONS = (
    (r"(?:is|are|was) not (?:above|over|greater than|more than|higher than|larger than)", "<="),
    (r"(?:is|are|was) not (?:below|under|less than|lower than|smaller than)", ">="),
    (r"(?:is|are|was) (?:above|over|greater than|more than|higher than|larger than)|exceeds?|>(?!=)", ">"),
    (r"(?:is|are) (?:at least|no less than|greater than or equal to)|>=|≥", ">="),
    (r"(?:is|are|was) (?:below|under|less than|fewer than|lower than|smaller than)|<(?!=)", "<"),
    (r"(?:is|are) (?:at most|no more than|less than or equal to)|<=|≤", "<="),
    (r"(?:is|are|was) (?:about|approximately|roughly|around)|equals? approximately|(?:is\s+)?(?:≈|~=?)", "≈"),
    (r"(?:is|are) not(?: equal to)?|does not equal|!=", "!="), (r"(?:is|are|was) between", "between"),
    (r"(?:is|are|was|equals?|is equal to|is exactly)(?: exactly| equal to)?|==?", "="),
)  # fmt: skip
_CLAIM = re.compile(
    r"^(?:verify that |is |does )?(?:the |their )?"
    rf"(?P<measure>{'|'.join(sorted(map(re.escape, _MEASURES), key=len, reverse=True))})"
    r"(?: value)?(?: of| for)?(?: the)? ?(?P<rest>.*)$",
    re.I,
)
# The measure behind the column: `the salary average is …`.
_COLUMN_FIRST = re.compile(
    r"^(?:the )?(?P<column>\S+(?: \S+)?) (?P<measure>average|mean|median|sum|total|maximum|minimum|range|variance) "
    r"(?P<rest>(?:is|was|exceeds?|equals?|[<>=≥≤]).*)$", re.I
)
_SIGNS = {"positive": "> 0", "negative": "< 0", "zero": "= 0"}
_VALUE = r"[$€£]?-?\d[\d,]*(?:\.\d+)?(?:\s*(?:k|thousand|million|billion))?"
_PRECISION = re.compile(
    r",?\s*(?:\(?(?:rounded )?to (?P<places>\d{1,2}) (?:decimals?|decimal places?|d\.?p\.?)\)?"
    rf"|(?:±|\+/-)\s*(?P<by>{_VALUE}))$", re.I
)
_SCALE = {"k": 3, "thousand": 3, "million": 6, "billion": 9}


class _NotUnderstood(ValueError):
    """The claim is not of the grammar, or the table does not have what it names."""


def verify_stats(query: str, file_path: str | None = None, csv_text: str | None = None) -> Verdict:
    """Decide a claim such as `The average salary is above 50000` about a table with a header, from a file or a text.

    Every cell of the column must be a number. Empty cells, NaN, formulas and ragged rows make the verdict
    INCONCLUSIVE, and its message names them. Equality is exact unless the claim states a precision: `≈ 2.14`, `2.14 to
    2 decimal places` or `2.1 ± 0.1`. Standard deviation and variance are those of a sample.
    """
    try:
        query = bounded_text(query, "query", MAX_QUERY)
        header, rows = _read(file_path, csv_text)
        measure, column, relation, values = _parse(query, header)
        return _decide(measure, column, relation, values, header, rows, {c for c in query if c in "$€£¥₹"})
    except TooLarge as error:
        return Verdict(Status.BLOCKED, ENGINE, str(error))
    except OSError as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"the file cannot be read: {error.strerror}")
    except (_NotUnderstood, ValueError, csv.Error) as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"not decided: {error}")


def _read(path: str | None, text: str | None) -> tuple[list[str], list[list[str]]]:
    if text is None:
        if not isinstance(path, str):
            raise _NotUnderstood("neither a file nor a text is given")
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(2, "there is no such file")
        if file.stat().st_size > MAX_BYTES:
            raise TooLarge(f"the file has more than {MAX_BYTES} bytes")
        text = _decode(file.read_bytes())
    if len(text) > MAX_BYTES:
        raise TooLarge(f"the table has more than {MAX_BYTES} characters")
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise _NotUnderstood("the table contains NUL characters")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count) if any(d in first for d in ",;\t|") else ","
    csv.field_size_limit(1_000_000)
    rows: list[list[str]] = []
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
        # an empty cell in quotes is a missing value; an empty line is skipped
        if row == [""] or any(c.strip() for c in row):
            rows.append(row)
        if len(rows) > MAX_ROWS:
            raise TooLarge(f"the table has more than {MAX_ROWS} rows")
    if len(rows) < 2:
        raise _NotUnderstood("the table has no rows")
    if len(rows[0]) > MAX_COLUMNS:
        raise TooLarge(f"the table has more than {MAX_COLUMNS} columns")
    return [c.strip() for c in rows[0]], rows[1:]


def _decode(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    return data.decode("utf-8-sig")


def _parse(query: str, header: list[str]) -> tuple[str, str, str, list[Claimed]]:
    if not isinstance(query, str) or len(query) > 2_000:
        raise _NotUnderstood("the claim is not a short text")
    text = " ".join(query.strip().rstrip(".!?").split())
    text = re.sub(r"\bis (positive|negative|zero)$", lambda m: _SIGNS[m[1].lower()], text, flags=re.I)
    text = _COLUMN_FIRST.sub(r"the \g<measure> of \g<column> \g<rest>", text)
    precision = _PRECISION.search(text)
    match = _CLAIM.match(text[: precision.start()] if precision else text)
    if not match:
        raise _NotUnderstood("the claim names no measure that is known: " + ", ".join(sorted(_MEASURES)))
    for pattern, relation in _RELATIONS:
        values = rf"(?P<a>{_VALUE})\s+and\s+(?P<b>{_VALUE})" if relation == "between" else rf"(?P<a>{_VALUE})"
        if found := re.match(rf"^(?P<column>.*?)\s*(?:{pattern})\s*{values}$", match["rest"], re.I):
            given = [_claimed(found["a"], relation, precision)]
            given += [Claimed(_number(found["b"]))] if relation == "between" else []
            word = match["measure"].lower()
            return _MEASURES[word], _column(found["column"], header, word), "=" if relation == "≈" else relation, given
    raise _NotUnderstood("the claim has no relation to a number")


def _claimed(text: str, relation: str, precision: re.Match[str] | None) -> Claimed:
    """Return a claimed value with the precision that the claim states: exact unless it states one."""
    value = _number(text)
    if precision is None and relation != "≈":
        return Claimed(value)
    if relation not in ("=", "≈"):
        raise _NotUnderstood("a precision is stated for a relation that is not an equality")
    if precision is not None and precision["by"]:
        return Claimed(value, abs(_number(precision["by"])))
    match = re.search(r"\.(\d+)", text)
    written = len(match[1]) if match else 0
    places = int(precision["places"]) if precision else written
    if written > places or re.search(r"[a-z]", text, re.I):
        raise _NotUnderstood("the claimed value has more digits than its precision, or a word for its scale")
    return Claimed(value, Fraction(1, 2 * 10**places), half_open=True)


def _number(text: str) -> Fraction:
    match = re.fullmatch(r"(.*?)\s*(k|thousand|million|billion)?", text.strip(), re.I)
    assert match
    return Fraction(amount(match[1])) * 10 ** _SCALE.get((match[2] or "").lower(), 0)


def _column(name: str, header: list[str], measure: str) -> str:
    def plain(text: str) -> str:
        return re.sub(r"[\s_\-]+", "", text.lower())

    wanted = plain(re.sub(r"^(?:the|all|column)\s+|\s+column$", "", name.strip(), flags=re.I))
    if measure in ("count", "number") and wanted in ("rows", "row", "records", "entries", ""):
        return ""
    found = [h for h in header if plain(h) == wanted] or [
        h for h in header if plain(h) in (wanted.removesuffix("s"), wanted + "s")]
    if len(found) != 1 or not wanted:
        count = "several columns" if found else "no column"
        raise _NotUnderstood(f"the table has {count} {name.strip()!r}; it has {', '.join(header[:20])}")
    return found[0]


def _decide(
    measure: str, column: str, relation: str, values: list[Claimed], header: list[str], rows: list[list[str]],
    currencies: set[str]
) -> Verdict:
    ragged = [i + 2 for i, r in enumerate(rows) if len(r) != len(header)]
    if ragged:
        raise _NotUnderstood(
            f"{len(ragged)} row(s) have another number of cells than the header, the first in line {ragged[0]}")
    if measure == "count":
        at = header.index(column) if column else None
        numbers = [Decimal(1) for r in rows if at is None or r[at].strip()]
    else:
        numbers = _numbers(rows, header.index(column), column, currencies)
    if measure in ("stdev", "variance") and len(numbers) < 2:
        raise _NotUnderstood("one value has no deviation")
    exact = measures.Column.of(numbers)
    value = measures.measure(measure, exact)
    is_so = measures.holds(relation, value, values)
    computed, terminates = measures.decimal(value)
    if measure in ("stdev", "variance") and not is_so:
        spread = exact.variance(len(numbers))
        whole = spread if measure == "variance" else measures.Root(spread)
        if measures.holds(relation, whole, values):
            raise _NotUnderstood(
                f"the claim holds for the {measure} of a whole population, {measures.decimal(whole)[0]:f}, "
                f"but not for that of a sample, {computed:f}"
            )
    evidence = {
        "measure": measure,
        "column": column or "rows",
        "rows": len(rows),
        "computed": computed,
        "exact": terminates,
        "relation": relation,
        "claimed": [measures.decimal(v.value)[0] for v in values],
        "tolerance": measures.decimal(values[0].tolerance)[0],
        "method": "fractions; a standard deviation is compared by its square",
    }
    message = f"{measure} of {column or 'rows'} is {computed:f}{'' if terminates else '…'}"
    if is_so:
        return Verdict(Status.VERIFIED, ENGINE, message, evidence, value=computed)
    if relation == "=" and not terminates:
        message += "; equality is exact: write ≈, or `to 2 decimal places`, for a rounded value"
    return Verdict(Status.ERROR, ENGINE, message, evidence, value=computed)


def _numbers(rows: list[list[str]], at: int, column: str, currencies: set[str]) -> list[Decimal]:
    """The numbers of a column; their currency signs, and those of the claim, are one."""
    numbers = []
    found = currencies | {c for row in rows for c in row[at] if c in "$€£¥₹"}
    if len(found) > 1:
        raise _NotUnderstood(f"there are several currencies: {', '.join(sorted(found))}")
    for i, row in enumerate(rows):
        cell = row[at].strip()
        try:
            if cell[:1] in ("=", "@", "+") or not cell:
                raise ValueError(cell)
            numbers.append(amount(cell))
        except ValueError:
            raise _NotUnderstood(f"{cell[:40]!r} in line {i + 2} of column {column!r} is not a number") from None
    return numbers
