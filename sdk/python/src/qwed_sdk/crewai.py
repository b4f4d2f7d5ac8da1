"""CrewAI: an agent whose tool calls are judged before they run, and whose outputs are judged after."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from qwed_new.verdict import Verdict
from qwed_sdk.client import QWEDClient
from qwed_sdk.errors import QWEDError


class QWEDVerifiedAgent:
    """Holds what a CrewAI agent is made of; `agent` is the agent itself, made at the first use, which needs crewai.

    With a service, each tool call of the agent, and of copies of it, is put to `verify_tool_call` before it runs; one
    that is not approved, or could not be asked about, is blocked, and `refusals` keeps why. Without a service tool
    calls are not judged. Other keyword arguments go to `crewai.Agent`. close takes the agent out of CrewAI's hooks;
    `with` does.
    """

    def __init__(
        self, role: str, goal: str, agent_id: str, backstory: str = "", client: QWEDClient | None = None,
        **options: Any) -> None:
        self.role, self.goal, self.agent_id, self.backstory = role, goal, agent_id, backstory
        self.client = client or QWEDClient()
        self.verdicts: list[Verdict] = []
        self.refusals: list[str] = []
        self._options = options
        self._agent: Any = None

    def __enter__(self) -> QWEDVerifiedAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def agent(self) -> Any:
        """The CrewAI agent; ImportError without crewai."""
        if self._agent is None:
            from crewai import Agent
            from crewai.hooks import register_before_tool_call_hook

            self._agent = Agent(role=self.role, goal=self.goal, backstory=self.backstory or self.goal, **self._options)
            register_before_tool_call_hook(self._before_tool_call)
        return self._agent

    def close(self) -> None:
        """Judge no further tool calls, and close the client."""
        if self._agent is not None:
            from crewai.hooks import unregister_before_tool_call_hook

            unregister_before_tool_call_hook(self._before_tool_call)
            self._agent = None
        self.client.close()

    def verify_output(self, output: Any) -> Verdict:
        """Verify what the agent made; `verdicts` keeps it. Usable as a callback of a task."""
        verdict = self.client.verify(str(getattr(output, "raw", output)))
        self.verdicts.append(verdict)
        return verdict

    def _before_tool_call(self, call: Any) -> bool | None:
        """False blocks the call. Nothing is raised: CrewAI prints what its hooks raise, and goes on with the call."""
        try:
            if not self._is_ours(getattr(call, "agent", None)) or not self.client.base_url:
                return None
            refusal = self._refusal(str(call.tool_name), call.tool_input)
        except QWEDError as error:
            refusal = str(error)
        except Exception as error:
            refusal = f"the tool call could not be judged: {type(error).__name__}"
        if not refusal:
            return None
        self.refusals.append(refusal)
        return False

    def _refusal(self, tool: str, given: Any) -> str:
        answer = self.client.verify_tool_call(
            self.agent_id, tool, given if isinstance(given, Mapping) else {"input": str(given)})
        if answer.get("approved") is True:
            return ""
        return str(answer.get("blocked_reason") or f"the tool {tool!r} was not approved")

    def _is_ours(self, agent: Any) -> bool:
        """Report whether a tool is called by this agent or by a crew's copy of it. A call without a named caller
        counts as its call."""
        if agent is None or agent is self._agent:
            return True
        return all(getattr(agent, name, None) == getattr(self._agent, name) for name in ("role", "goal", "backstory"))
