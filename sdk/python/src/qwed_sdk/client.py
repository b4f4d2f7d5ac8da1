"""The synchronous client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import httpx

from qwed_new.verdict import Verdict
from qwed_sdk import calls
from qwed_sdk.errors import QWEDConnectionError, QWEDServiceRequired
from qwed_sdk.settings import headers, settings
from qwed_sdk.worker import Worker


class QWEDClient:
    """Ask the engines of a service if base_url or QWED_BASE_URL is set, or else the engines of this package in a
    separate process.

    Without arguments QWED_API_KEY and QWED_BASE_URL are used. Methods raise QWEDError if a service cannot be reached or
    refuses the request; the answer of an engine is always a verdict. timeout is in seconds. A request that the service
    refuses with 429 is repeated after increasing pauses, within the timeout. translator states in symbols what a text
    claims that no engine understands, by asking a language model for example; verify never returns VERIFIED for such a
    text.
    """

    def __init__(
        self, api_key: str | None = None, base_url: str | None = None, timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None, translator: Callable[[str], str] | None = None
    ) -> None:
        self.api_key, self.base_url = settings(api_key, base_url)
        self._timeout, self._translator = timeout, translator
        self._worker = Worker(timeout)
        self._http = (
            httpx.Client(base_url=self.base_url, timeout=timeout, headers=headers(self.api_key), transport=transport)
            if self.base_url
            else None
        )

    def __enter__(self) -> QWEDClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and end the process of the engines."""
        self._worker.close()
        if self._http:
            self._http.close()

    def verify(self, query: str) -> Verdict:
        """Detect the kind of a claim and decide it."""
        made = self._ask(calls.verify(query))
        if self._translator is None or not calls.is_not_understood(made):
            return made
        text = self._translator(query)
        inner = self._ask(calls.verify(text)) if isinstance(text, str) else None
        return calls.translated(query, text, self._translator, inner)

    def verify_math(self, expression: str) -> Verdict:
        """Decide a mathematical claim."""
        return self._ask(calls.math(expression))

    def verify_logic(self, query: str) -> Verdict:
        """Decide constraints in QWED-Logic; `model` meets them."""
        return self._ask(calls.logic(query))

    def verify_code(self, code: str, language: str = "python") -> Verdict:
        """Look for what is dangerous in a program; `vulnerabilities` have severity and message."""
        return self._ask(calls.code(code, language))

    def verify_sql(self, query: str, schema_ddl: str | None = None, dialect: str = "postgresql") -> Verdict:
        """Hold a query against a schema."""
        return self._ask(calls.sql(query, schema_ddl, dialect))

    def verify_fact(self, claim: str, context: str) -> Verdict:
        """Decide whether a context supports a claim; texts with personal data are refused before anything is sent."""
        refusal = calls.personal(claim, context)
        return refusal if refusal is not None else self._ask(calls.fact(claim, context))

    def verify_stats(self, query: str, file_path: str) -> Verdict:
        """Decide a claim about a CSV table."""
        return self._ask(calls.stats(query, file_path, bool(self.base_url)))

    def verify_consensus(self, query: str, mode: str = "single", min_confidence: float = 0.8) -> Verdict:
        """Decide a claim by several independent engines; `confidence` is from 0 to 1."""
        return self._ask(calls.consensus(query, mode, min_confidence))

    def verify_image(self, image_path: str, claim: str) -> Verdict:
        """Decide a claim about an image file."""
        return self._ask(calls.image(image_path, claim, bool(self.base_url)))

    def verify_batch(self, items: Sequence[Mapping[str, Any]]) -> Verdict:
        """Decide many; `summary.success_rate` is a fraction, `results` are in the order of the items."""
        return self._ask(calls.batch(items))

    def register_agent(
        self,
        name: str,
        type: str = "supervised",
        principal_id: str | None = None,
        permissions: Mapping[str, Any] | None = None,
        budget: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Register an agent with the service; the answer has agent_id and agent_token."""
        body = calls.registration(name, type, principal_id, permissions, budget)
        return self._service("POST", "/v1/agents", body)

    def verify_action(self, agent_id: str, action: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the service whether an agent may act; the answer has decision and, when denied, error."""
        return self._service(
            "POST", calls.agent_path(agent_id, "actions"), {"action": dict(action), "context": dict(context)})

    def verify_tool_call(self, agent_id: str, tool_name: str, parameters: Mapping[str, Any] | None = None) -> dict[
        str, Any]:
        """Ask the service whether an agent may call a tool; the answer has approved."""
        return self._service(
            "POST", calls.agent_path(agent_id, "tools", tool_name), {"parameters": dict(parameters or {})})

    def get_agent_budget(self, agent_id: str) -> dict[str, Any]:
        """Return the remaining budget of an agent."""
        return self._service("GET", calls.agent_path(agent_id, "budget"))

    def get_agent_activity(self, agent_id: str, limit: int = 10) -> list[dict[str, Any]]:
        """Return the most recent requests of an agent."""
        answer = self._service("GET", calls.agent_path(agent_id, "activity") + f"?limit={int(limit)}")
        return list(answer.get("activity", ())) if isinstance(answer, Mapping) else list(answer)

    def _ask(self, call: calls.Call | Verdict) -> Verdict:
        if isinstance(call, Verdict):
            return call
        if self._http:
            return calls.verdict(self._service("POST", call.path, call.body()))
        return calls.wrap(self._worker.ask(call.engine, call.arguments))

    def _service(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        if self._http is None:
            raise QWEDServiceRequired("this method needs a service: give base_url, or set QWED_BASE_URL")
        deadline = time.monotonic() + self._timeout
        attempt = 0
        while True:
            try:
                answer = self._http.request(method, path, json=body)
            except httpx.HTTPError as error:
                raise QWEDConnectionError(
                    f"the service at {self.base_url} could not be asked: {type(error).__name__}") from error
            pause = calls.delay(answer, attempt, deadline - time.monotonic())
            if pause is None:
                return calls.check_answer(answer)
            time.sleep(pause)
            attempt += 1
