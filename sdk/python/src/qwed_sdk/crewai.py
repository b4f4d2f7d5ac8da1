"""CrewAI: an agent whose tool calls and outputs are judged."""

from __future__ import annotations

from typing import Any

from qwed_new.verdict import Verdict
from qwed_sdk.client import QWEDClient
from qwed_sdk.errors import QWEDBlockedError


class QWEDVerifiedAgent:
    """Holds what a CrewAI agent is made of; `agent` is the agent itself, made at the first use, which needs crewai.

    Other keyword arguments go to `crewai.Agent`.
    """

    def __init__(self, role: str, goal: str, agent_id: str, backstory: str = "", client: QWEDClient | None = None, **options: Any) -> None:
        self.role, self.goal, self.agent_id, self.backstory = role, goal, agent_id, backstory
        self.client = client or QWEDClient()
        self.verdicts: list[Verdict] = []
        self._options = options
        self._agent: Any = None

    @property
    def agent(self) -> Any:
        """The CrewAI agent; ImportError without crewai."""
        if self._agent is None:
            from crewai import Agent

            self._agent = Agent(
                role=self.role, goal=self.goal, backstory=self.backstory or self.goal, step_callback=self._step, **self._options
            )
        return self._agent

    def verify_output(self, output: Any) -> Verdict:
        """Verify what the agent made; `verdicts` keeps it. Usable as a callback of a task."""
        verdict = self.client.verify(str(getattr(output, "raw", output)))
        self.verdicts.append(verdict)
        return verdict

    def _step(self, step: Any) -> None:
        tool = getattr(step, "tool", None)
        if tool and self.client.base_url:
            given = getattr(step, "tool_input", None)
            answer = self.client.verify_tool_call(self.agent_id, str(tool), given if isinstance(given, dict) else {"input": str(given)})
            if answer.get("approved") is not True:
                raise QWEDBlockedError(str(answer.get("blocked_reason") or f"the tool {tool!r} was not approved"))
