"""The request of each client method: the engine, the path of the service, the arguments."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from qwed_new import strict_json
from qwed_new.verdict import Finding, Item, Status, Summary, Verdict
from qwed_sdk.errors import QWEDAuthenticationError, QWEDRateLimitError, QWEDResponseError
from qwed_sdk.guards import personal_data

MAX_FILE = 64 * 1024 * 1024
MAX_DIGITS = 9  # of the seconds in Retry-After
RETRIES = 4
FIRST_PAUSE = 0.25  # seconds


@dataclass(slots=True)
class Call:
    """One question: local arguments for an engine, or a body for the service."""

    engine: str
    path: str
    arguments: dict[str, Any]
    remote: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return the request body for the service."""
        return self.remote or {k: v for k, v in self.arguments.items() if v is not None}


def verify(query: str) -> Call:
    """A claim of any kind."""
    return Call("auto", "/v1/verify/natural_language", {"query": query})


def math(expression: str) -> Call:
    """A mathematical claim."""
    return Call("math", "/v1/verify/math", {"expression": expression})


def logic(query: str) -> Call:
    """A query of QWED-Logic."""
    return Call("logic", "/v1/verify/logic", {"query": query})


def code(text: str, language: str) -> Call:
    """A program."""
    return Call("code", "/v1/verify/code", {"code": text, "language": language})


def sql(query: str, schema_ddl: str | None, dialect: str) -> Call:
    """A query."""
    return Call("sql", "/v1/verify/sql", {"query": query, "schema_ddl": schema_ddl, "dialect": dialect})


def fact(claim: str, context: str) -> Call:
    """A claim about a context."""
    return Call("fact", "/v1/verify/fact", {"claim": claim, "context": context})


def stats(query: str, file_path: str, remote: bool) -> Call | Verdict:
    """A claim about a table; for the service the file is read here."""
    call = Call("stats", "/v1/verify/stats", {"query": query, "file_path": file_path})
    if remote:
        data = _read(file_path)
        if isinstance(data, Verdict):
            return data
        try:
            call.remote = {"query": query, "csv_text": data.decode("utf-8-sig")}
        except UnicodeDecodeError:
            return Verdict(Status.INCONCLUSIVE, "stats", "the file is not UTF-8")
    return call


def image(image_path: str, claim: str, remote: bool) -> Call | Verdict:
    """A claim about an image; for the service the file is read here."""
    call = Call("image", "/v1/verify/image", {"image_path": image_path, "claim": claim})
    if remote:
        data = _read(image_path)
        if isinstance(data, Verdict):
            return data
        call.remote = {"claim": claim, "image_base64": base64.b64encode(data).decode()}
    return call


def consensus(query: str, mode: str, min_confidence: float) -> Call:
    """A claim for several engines."""
    return Call("consensus", "/v1/verify/consensus", {"query": query, "mode": mode, "min_confidence": min_confidence})


def batch(items: Sequence[Mapping[str, Any]]) -> Call:
    """Many claims."""
    return Call("batch", "/v1/verify/batch", {"items": list(items)})


def registration(
    name: str, kind: str, principal_id: str | None, permissions: Mapping[str, Any] | None,
    budget: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the request that registers an agent. Missing values are not sent, so the service's defaults apply."""
    given = {"name": name, "type": kind, "principal_id": principal_id, "permissions": permissions, "budget": budget}
    return {k: dict(v) if isinstance(v, Mapping) else v for k, v in given.items() if v is not None}


def agent_path(agent_id: str, *parts: str) -> str:
    """The path of something of an agent."""
    return "/".join(["/v1/agents", quote(agent_id, safe=""), *(quote(p, safe="") for p in parts)])


def personal(*texts: str) -> Verdict | None:
    """Return the refusal of texts with personal data, or None. It is called before anything is sent."""
    found = [f for t in texts if isinstance(t, str) for f in personal_data.find(t)]
    if not found:
        return None
    kinds = sorted({f["type"] for f in found})
    message = f"the texts contain {', '.join(kinds)}; nothing was sent"
    return Verdict(Status.BLOCKED, "fact", message, {"pii_types": kinds}, pii_detected=kinds)


def _read(path: str) -> bytes | Verdict:
    try:
        file = Path(path)
        if not file.is_file():
            return Verdict(Status.INCONCLUSIVE, "file", "there is no such file")
        if file.stat().st_size > MAX_FILE:
            return Verdict(Status.BLOCKED, "file", f"the file has more than {MAX_FILE} bytes")
        return file.read_bytes()
    except OSError as error:
        return Verdict(Status.INCONCLUSIVE, "file", f"the file cannot be read: {error.strerror}")


def check_answer(answer: httpx.Response) -> Any:
    """Return the body of an answer, or raise an error if the answer is an error or invalid."""
    code, detail = answer.status_code, ""
    try:
        data = strict_json.loads(answer.content) if answer.content else None
    except ValueError as error:
        if code < 300:
            raise QWEDResponseError(f"the service's answer is not JSON: {error}") from None
        data = None
    if isinstance(data, Mapping):
        error = data.get("error", data.get("detail", data.get("message", "")))
        detail = str(error.get("message", "") if isinstance(error, Mapping) else error)[:300]
    if code in (401, 403):
        what = "refuses the API key" if code == 401 else "does not allow this with the API key"
        raise QWEDAuthenticationError(f"the service {what} ({code}) {detail}".strip(), code)
    if code == 429:
        message = f"the service refuses more requests for now {detail}".strip()
        raise QWEDRateLimitError(message, code, retry_after(answer))
    if code >= 300 or data is None:
        raise QWEDResponseError(f"the service answered {code} {detail}".strip(), code)
    return data


def retry_after(answer: httpx.Response) -> float | None:
    """Return the seconds of the Retry-After header, which is a number or a date (RFC 9110, section 10.2.3)."""
    text = answer.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= MAX_DIGITS else None
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, date.timestamp() - time.time())


def delay(answer: httpx.Response, attempt: int, left: float) -> float | None:
    """Return how many seconds to wait before a refused request is sent again, or None if it is not.

    attempt counts from 0. Only a request that was answered with 429 is repeated, because the service has not acted on
    it. The delay doubles with each attempt, has a random part, and is at least Retry-After. If it is longer than the
    seconds that are left, the request is not repeated.
    """
    if answer.status_code != 429 or attempt >= RETRIES:
        return None
    pause = max(retry_after(answer) or 0.0, FIRST_PAUSE * 2**attempt) * random.uniform(1.0, 1.25)
    return pause if pause < left else None


def verdict(data: Any) -> Verdict:
    """The verdict in an answer; nothing but the status VERIFIED makes it verified."""
    if not isinstance(data, Mapping) or not isinstance(data.get("status"), str):
        raise QWEDResponseError("the service's answer is no verdict")
    try:
        made = Verdict.from_dict(data)
    except (ValueError, TypeError) as error:
        raise QWEDResponseError(f"the service's answer is no verdict: {error}") from None
    return wrap(made)


def is_not_understood(verdict: Verdict) -> bool:
    """Report whether no engine understood the query of a verdict, so that a translator may be asked."""
    return verdict["status"] == Status.INCONCLUSIVE and verdict.get("query_type") == "unknown"


def translated(query: str, translation: object, translator: object, inner: Verdict | None) -> Verdict:
    """Return the verdict on a query of which translator made the translation that inner is about; inner is None if the
    translation is not a text. It is never VERIFIED, because nothing proves the translation."""
    name = getattr(translator, "__name__", type(translator).__name__)
    evidence: dict[str, Any] = {"query": query[:1_000], "translated_by": name}
    if inner is None:
        return Verdict(Status.INCONCLUSIVE, "auto", f"{name} returned no text", evidence, query_type="unknown")
    evidence |= {"translation": str(translation)[:1_000], "verdict_on_translation": inner.to_dict()}
    status, message = inner["status"], inner["message"]
    if status not in (Status.BLOCKED, Status.UNKNOWN):
        message = f"the engine finds {status} for the translation by {name}, which nothing proves"
        status = Status.INCONCLUSIVE
    return Verdict(status, "auto", message, evidence, query_type=inner.get("query_type", "unknown"))


def wrap(made: Verdict) -> Verdict:
    """A verdict whose lists and objects read as attributes: vulnerabilities, summary, results."""
    fields: dict[str, Any] = {}
    for name, kind in (("vulnerabilities", Finding), ("results", Item)):
        if isinstance(value := made.get(name), list):
            fields[name] = [kind(v) if isinstance(v, dict) else v for v in value]
    if isinstance(summary := made.get("summary"), dict):
        fields["summary"] = Summary(summary)
    return made.with_fields(**fields) if fields else made
