"""An agent of the OpenAI Agents SDK that works by writing programs for Airlock.

python openai_agents.py [TASK]

Environment: OPENAI_API_KEY, OPENAI_DEFAULT_MODEL (the SDK's own default without it), and AIRLOCK, the command of
Airlock.
"""

import asyncio
import os
import sys

from agents import Agent, Runner
from agents.mcp import MCPServerStdio

TASK = "What is the sum of the squares of the numbers from 1 to 100? Compute it with a program."


async def main(task):
    command = {"command": os.environ.get("AIRLOCK", "airlock"), "args": ["mcp"], "env": dict(os.environ)}
    # A run may take minutes, and a person may have to be asked: the default of 5 s is too short.
    async with MCPServerStdio(params=command, name="airlock", client_session_timeout_seconds=600) as airlock:
        agent = Agent(name="analyst", instructions="Answer with one short sentence.", mcp_servers=[airlock])
        print((await Runner.run(agent, task)).final_output)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or TASK))
