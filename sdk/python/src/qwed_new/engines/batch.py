"""Many claims at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qwed_new.engines.claims import verify
from qwed_new.engines.code import verify_code
from qwed_new.engines.consensus import verify_consensus
from qwed_new.engines.facts import verify_fact
from qwed_new.engines.logic import verify_logic
from qwed_new.engines.math import verify_math
from qwed_new.engines.sql import verify_sql
from qwed_new.engines.stats import verify_stats
from qwed_new.verdict import Status, Summary, Verdict

ENGINE = "batch"
MAX_ITEMS = 1_000

_TYPES: dict[str, tuple[Callable[..., Verdict], str]] = {
    "math": (verify_math, "expression"), "logic": (verify_logic, "query"), "code": (verify_code, "code"),
    "sql": (verify_sql, "query"), "fact": (verify_fact, "claim"),
    "stats": (verify_stats, "query"), "consensus": (verify_consensus, "query"), "auto": (verify, "query"),
    "natural_language": (verify, "query"),
}  # fmt: skip
_FIELDS = {
    "sql": ("schema_ddl", "dialect"),
    "fact": ("context",),
    "stats": ("csv_text", "file_path"),
    "code": ("language",),
    "consensus": ("mode", "min_confidence"),
}


def verify_batch(items: Sequence[Mapping[str, Any]]) -> Verdict:
    """Decide items `{"query": …, "type": …}`; the verdict has `results` in their order, and `summary`.

    A math item that is not an equality is SIMPLIFIED: rewritten, but not verified. The batch is VERIFIED only if every
    item is.
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Sequence):
        return Verdict(Status.UNKNOWN, ENGINE, "items is a list of objects", results=[], summary=_summary([]))
    if len(items) > MAX_ITEMS:
        return Verdict(
            Status.BLOCKED, ENGINE, f"there are more than {MAX_ITEMS} items", results=[], summary=_summary([]))
    results = [_item(i, item) for i, item in enumerate(items)]
    summary = _summary(results)
    status = (
        Status.VERIFIED if results and summary["verified"] == len(results) else Status.ERROR if summary["failed"]
        else Status.INCONCLUSIVE
    )
    return Verdict(
        status, ENGINE, f"{summary['verified']} of {len(results)} items are verified", results=results, summary=summary)


def _item(index: int, item: Any) -> Verdict:
    if not isinstance(item, Mapping) or not isinstance(item.get("query"), str):
        return Verdict(Status.UNKNOWN, ENGINE, 'an item is {"query": text, "type": kind}', index=index)
    kind = str(item.get("type", "auto")).lower()
    if kind not in _TYPES:
        return Verdict(
            Status.UNKNOWN, ENGINE, f"the type {kind!r} is not one of {', '.join(_TYPES)}", index=index,
            query=item["query"])
    function, name = _TYPES[kind]
    params = item.get("params") if isinstance(item.get("params"), Mapping) else {}
    arguments = {k: v for k, v in {**item, **(params or {})}.items() if k in _FIELDS.get(kind, ())}
    try:
        verdict = function(**{name: item["query"]}, **arguments)
    except TypeError as error:
        return Verdict(Status.UNKNOWN, ENGINE, f"the item lacks a field: {error}", index=index, query=item["query"])
    if kind == "math" and verdict["status"] == "INCONCLUSIVE" and "simplified" in verdict:
        verdict = Verdict(
            Status.SIMPLIFIED, "math", "no equality: simplified, not verified", verdict["evidence"],
            simplified=verdict["simplified"]
        )
    return verdict.with_fields(index=index, query=item["query"], type=kind)


def _summary(results: Sequence[Verdict]) -> Summary:
    verified = sum(1 for r in results if r["verified"])
    failed = sum(1 for r in results if r["status"] in ("ERROR", "BLOCKED"))
    rate = verified / len(results) if results else 0.0
    return Summary(
        total=len(results), verified=verified, failed=failed, undecided=len(results) - verified - failed,
        success_rate=rate)
