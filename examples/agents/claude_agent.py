"""An agent of the Claude Agent SDK that writes programs for Airlock and has no other tools.

python claude_agent.py [TASK]

Environment: ANTHROPIC_API_KEY, and AIRLOCK, the command of Airlock.
"""

import asyncio
import os
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

TASK = "What is the sum of the squares of the numbers from 1 to 100? Compute it with a program."


async def main(task):
    airlock = {"command": os.environ.get("AIRLOCK", "airlock"), "args": ["mcp"], "env": dict(os.environ)}
    options = ClaudeAgentOptions(
        mcp_servers={"airlock": airlock},
        strict_mcp_config=True,  # no other servers, from files of the user
        tools=[],  # the agent's own shell would pass Airlock by
        allowed_tools=["mcp__airlock"],  # Airlock's policies decide about calls, and ask
        setting_sources=[],
    )
    async for message in query(prompt=task, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or TASK))
