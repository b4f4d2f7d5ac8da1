"""A crew of real CrewAI with a model that follows a script: one tool call for each tool, then an answer. Prints what
happened as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from qwed_sdk import QWEDClient
from qwed_sdk.crewai import QWEDVerifiedAgent

ran: list[str] = []


@tool("fetch_report")
def fetch_report(name: str) -> str:
    """Fetches a report."""
    ran.append("fetch_report")
    return f"report {name}"


@tool("my_custom_tool")
def my_custom_tool(name: str) -> str:
    """Does something unknown."""
    ran.append("my_custom_tool")
    return "done"


class Scripted(BaseLLM):
    """Calls each tool once, in the form that CrewAI reads, then answers."""

    step: int = 0

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        self.step += 1
        if self.step <= 2:
            name = ("fetch_report", "my_custom_tool")[self.step - 1]
            return f'Thought: I use a tool\nAction: {name}\nAction Input: {{"name": "x"}}'
        return "Thought: I now know the final answer\nFinal Answer: 2+2=5"

    def supports_function_calling(self) -> bool:
        return False


def work(agent: Agent, callback: Any = None) -> str:
    task = Task(description="Work.", expected_output="A sum.", agent=agent, callback=callback)
    return str(Crew(agents=[agent], tasks=[task], verbose=False).kickoff())


url, agent_id, token = sys.argv[1:]
tools = [fetch_report, my_custom_tool]
with QWEDVerifiedAgent(
    role="Analyst", goal="Analyse", agent_id=agent_id, client=QWEDClient(token, url), llm=Scripted(model="script"),
    tools=tools) as verified:
    output = work(verified.agent, lambda out: verified.verdicts.append(QWEDClient(base_url="").verify(out.raw)))
    result = {
        "ran": list(ran), "refusals": verified.refusals, "output": output,
        "verdicts": [v.status for v in verified.verdicts]}
    ran.clear()
    work(Agent(role="Other", goal="Other", backstory="x", llm=Scripted(model="script"), tools=tools))
    result["others"] = list(ran)
    ran.clear()
with QWEDVerifiedAgent(
    role="Lost", goal="Lost", agent_id=agent_id, client=QWEDClient(token, "http://127.0.0.1:9"),
    llm=Scripted(model="script"), tools=tools) as lost:
    work(lost.agent)
    result["away"] = {"ran": list(ran), "refusals": len(lost.refusals)}
ran.clear()
work(Agent(role="Analyst", goal="Analyse", backstory="Analyse", llm=Scripted(model="script"), tools=tools))
result["closed"] = list(ran)
print("RESULT " + json.dumps(result))
