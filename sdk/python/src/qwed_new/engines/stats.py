"""Statistics: claims about the columns of a CSV table, in exact decimals."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal, localcontext
from pathlib import Path

from qwed_new.limits import TooLarge
from qwed_new.money import amount
from qwed_new.verdict import Status, Verdict

ENGINE = "stats"
MAX_BYTES, MAX_ROWS, MAX_COLUMNS = 64 * 1024 * 1024, 1_000_000, 2_000

_MEASURES = {
    "average": "mean", "mean": "mean", "avg": "mean", "median": "median", "sum": "sum", "total": "sum", "maximum": "max", "max": "max", "highest": "max", "largest": "max",
    "minimum": "min", "min": "min", "lowest": "min", "smallest": "min", "standard deviation": "stdev", "std": "stdev", "variance": "variance", "count": "count", "number": "count",
    "range": "range",
}  # fmt: skip
_RELATIONS = (
    (r"(?:is|are|was) (?:above|over|greater than|more than|higher than|larger than)|exceeds?|>(?!=)", ">"), (r"(?:is|are) (?:at least|no less than|greater than or equal to)|>=|≥", ">="),
    (r"(?:is|are|was) (?:below|under|less than|fewer than|lower than|smaller than)|<(?!=)", "<"), (r"(?:is|are) (?:at most|no more than|less than or equal to)|<=|≤", "<="),
    (r"(?:is|are) not(?: equal to)?|does not equal|!=", "!="), (r"(?:is|are|was) between", "between"),
    (r"(?:is|are|was|equals?|is equal to|is exactly)(?: exactly| equal to)?|==?", "="),
)  # fmt: skip
_CLAIM = re.compile(
    rf"^(?:verify that |is |does )?(?:the |their )?(?P<measure>{'|'.join(sorted(map(re.escape, _MEASURES), key=len, reverse=True))})(?: value)?(?: of| for)?(?: the)? ?(?P<rest>.*)$",
    re.I,
)
_VALUE = r"[$€£]?-?\d[\d,]*(?:\.\d+)?(?:\s*(?:k|thousand|million|billion))?"
_SCALE = {"k": 3, "thousand": 3, "million": 6, "billion": 9}


class _NotUnderstood(ValueError):
    """The claim is not of the grammar, or the table does not have what it names."""


def verify_stats(query: str, file_path: str | None = None, csv_text: str | None = None) -> Verdict:
    """Decide a claim such as `The average salary is above 50000` about a table with a header, from a file or a text.

    Every row must have a number where the column is used: empty cells, NaN, formulas and ragged rows make it INCONCLUSIVE, and
    are named. Equality is exact; a standard deviation is that of a sample, rounded to the digits of the claim.
    """
    try:
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
        if row == [""] or any(c.strip() for c in row):  # an empty cell in quotes is a value that is missing, an empty line is none
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


def _parse(query: str, header: list[str]) -> tuple[str, str, str, list[Decimal]]:
    if not isinstance(query, str) or len(query) > 2_000:
        raise _NotUnderstood("the claim is no short text")
    text = " ".join(query.strip().rstrip(".!?").split())
    match = _CLAIM.match(text)
    if not match:
        raise _NotUnderstood("the claim names no measure that is known: " + ", ".join(sorted(_MEASURES)))
    for pattern, relation in _RELATIONS:
        values = rf"(?P<a>{_VALUE})\s+and\s+(?P<b>{_VALUE})" if relation == "between" else rf"(?P<a>{_VALUE})"
        if found := re.match(rf"^(?P<column>.*?)\s*(?:{pattern})\s*{values}$", match["rest"], re.I):
            given = [_number(found["a"])] + ([_number(found["b"])] if relation == "between" else [])
            return _MEASURES[match["measure"].lower()], _column(found["column"], header, match["measure"].lower()), relation, given
    raise _NotUnderstood("the claim has no relation to a number")


def _number(text: str) -> Decimal:
    match = re.fullmatch(r"(.*?)\s*(k|thousand|million|billion)?", text.strip(), re.I)
    assert match
    return amount(match[1]).scaleb(_SCALE.get((match[2] or "").lower(), 0))


def _column(name: str, header: list[str], measure: str) -> str:
    def plain(text: str) -> str:
        return re.sub(r"[\s_\-]+", "", text.lower())

    wanted = plain(re.sub(r"^(?:the|all|column)\s+|\s+column$", "", name.strip(), flags=re.I))
    if measure in ("count", "number") and wanted in ("rows", "row", "records", "entries", ""):
        return ""
    found = [h for h in header if plain(h) == wanted] or [h for h in header if plain(h) in (wanted.removesuffix("s"), wanted + "s")]
    if len(found) != 1 or not wanted:
        raise _NotUnderstood(
            f"the table has {'no column' if not found else 'several columns'} {name.strip()!r}; it has {', '.join(header[:20])}"
        )
    return found[0]


def _decide(
    measure: str, column: str, relation: str, values: list[Decimal], header: list[str], rows: list[list[str]], currencies: set[str]
) -> Verdict:
    ragged = [i + 2 for i, r in enumerate(rows) if len(r) != len(header)]
    if ragged:
        raise _NotUnderstood(f"{len(ragged)} row(s) have another number of cells than the header, the first in line {ragged[0]}")
    if measure == "count":
        at = header.index(column) if column else None
        numbers = [Decimal(1) for r in rows if at is None or r[at].strip()]
    else:
        numbers = _numbers(rows, header.index(column), column, currencies)
    places = max(0, *(-e for v in values if isinstance(e := v.as_tuple().exponent, int))) if values else 0
    with localcontext() as context:
        context.prec = 60
        computed = _measure(measure, numbers)
        compared = computed
        if measure == "stdev" and relation == "=":
            compared = computed.quantize(Decimal(1).scaleb(-places))
        holds = _holds(relation, compared, values)
        if measure in ("stdev", "variance") and not holds and len(numbers) > 1:
            whole = _measure("variance", numbers) * (len(numbers) - 1) / len(numbers)
            whole = (whole if measure == "variance" else whole.sqrt()).quantize(Decimal(1).scaleb(-places))
            if _holds(relation, whole, values):
                raise _NotUnderstood(
                    f"the claim holds of the {measure} of a whole population, {whole:f}, not of that of a sample, {computed:f}"
                )
    evidence = {
        "measure": measure,
        "column": column or "rows",
        "rows": len(rows),
        "computed": computed,
        "relation": relation,
        "claimed": values,
        "method": "exact decimals",
    }
    if holds:
        return Verdict(Status.VERIFIED, ENGINE, f"{measure} of {column or 'rows'} is {computed:f}", evidence, value=computed)
    return Verdict(Status.ERROR, ENGINE, f"{measure} of {column or 'rows'} is {computed:f}", evidence, value=computed)


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
            raise _NotUnderstood(f"{cell[:40]!r} in line {i + 2} of column {column!r} is no number") from None
    return numbers


def _measure(measure: str, n: list[Decimal]) -> Decimal:
    total = sum(n, Decimal(0))
    if measure in ("sum", "count"):
        return total
    if measure in ("max", "min"):
        return max(n) if measure == "max" else min(n)
    if measure == "range":
        return max(n) - min(n)
    if measure == "mean":
        return total / len(n)
    if measure == "median":
        ordered, half = sorted(n), len(n) // 2
        return ordered[half] if len(n) % 2 else (ordered[half - 1] + ordered[half]) / 2
    if len(n) < 2:
        raise _NotUnderstood("one value has no deviation")
    mean = total / len(n)
    variance = sum(((x - mean) ** 2 for x in n), Decimal(0)) / (len(n) - 1)
    return variance if measure == "variance" else variance.sqrt()


def _holds(relation: str, value: Decimal, given: list[Decimal]) -> bool:
    a = given[0]
    if relation == "between":
        return a <= value <= given[1]
    return {">": value > a, ">=": value >= a, "<": value < a, "<=": value <= a, "=": value == a, "!=": value != a}[relation]
