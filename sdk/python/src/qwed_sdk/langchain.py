"""LangChain: tool calls are judged before they run, outputs after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qwed_new import strict_json
from qwed_new.verdict import Verdict
from qwed_sdk.client import QWEDClient
from qwed_sdk.errors import QWEDBlockedError

if TYPE_CHECKING:
    _Base: Any = object
else:
    try:
        from langchain_core.callbacks import BaseCallbackHandler as _Base
    except ImportError:
        _Base = object


class QWEDVerificationCallback(_Base):
    """A callback handler for one agent.

    With a service, each tool call is put to `verify_tool_call` and a refusal raises QWEDBlockedError, which ends the
    run. Outputs of the model are verified; `verdicts` keeps what was found, and block_outputs raises for refuted ones.
    """

    raise_error = True
    run_inline = True

    def __init__(self, agent_id: str, client: QWEDClient | None = None, block_outputs: bool = False) -> None:
        super().__init__()
        self.agent_id = agent_id
        self.client = client or QWEDClient()
        self.block_outputs = block_outputs
        self.verdicts: list[Verdict] = []

    def on_tool_start(
        self, serialized: dict[str, Any] | None, input_str: str, *, inputs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Ask whether the agent may call the tool."""
        name = str((serialized or {}).get("name", "")) or "unknown"
        if not self.client.base_url:
            return
        answer = self.client.verify_tool_call(
            self.agent_id, name, inputs if isinstance(inputs, dict) else _parameters(input_str))
        if answer.get("approved") is not True:
            raise QWEDBlockedError(str(answer.get("blocked_reason") or f"the tool {name!r} was not approved"))

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        """Verify each text that the model made."""
        for group in getattr(response, "generations", ()):
            for generation in group:
                self.check(str(getattr(generation, "text", "")))

    def on_agent_finish(self, finish: Any, **kwargs: Any) -> None:
        """Verify what the agent ends with."""
        values = getattr(finish, "return_values", {})
        self.check(str(values.get("output", "")) if isinstance(values, dict) else "")

    def check(self, text: str) -> Verdict | None:
        """Verify one text and keep the verdict."""
        if not text.strip():
            return None
        verdict = self.client.verify(text)
        self.verdicts.append(verdict)
        if self.block_outputs and verdict["status"] in ("ERROR", "BLOCKED"):
            raise QWEDBlockedError(f"the output was refuted: {verdict['message']}")
        return verdict


def _parameters(text: str) -> dict[str, Any]:
    try:
        value = strict_json.loads(text)
    except (ValueError, TypeError):
        value = None
    return value if isinstance(value, dict) else {"input": text}
