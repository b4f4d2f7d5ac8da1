"""An agent of Pydantic AI that works by writing programs for Airlock.

python pydantic_ai_agent.py [TASK]

Environment: MODEL (default openai:gpt-5), the key of its provider, and AIRLOCK, the command of Airlock.
"""

import asyncio
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

TASK = "What is the sum of the squares of the numbers from 1 to 100? Compute it with a program."


async def main(task):
    command = StdioTransport(os.environ.get("AIRLOCK", "airlock"), ["mcp"], env=dict(os.environ))
    # A run may take minutes, and a person may have to be asked.
    airlock = MCPToolset(command, read_timeout=600, include_instructions=True)
    agent = Agent(os.environ.get("MODEL", "openai:gpt-5"), toolsets=[airlock])
    async with agent:
        print((await agent.run(task)).output)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or TASK))
