"""An agent of LangChain, which runs on LangGraph, that works by writing programs for Airlock.

python langgraph_agent.py [TASK]

Environment: MODEL (default openai:gpt-5), the key of its provider, and AIRLOCK, the command of Airlock.
"""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

TASK = "What is the sum of the squares of the numbers from 1 to 100? Compute it with a program."


async def main(task):
    command = {"command": os.environ.get("AIRLOCK", "airlock"), "args": ["mcp"], "env": dict(os.environ)}
    client = MultiServerMCPClient({"airlock": {"transport": "stdio", **command}})
    # One session for the whole conversation: without it, each call starts Airlock again, without the session's files.
    async with client.session("airlock") as session:
        agent = create_agent(os.environ.get("MODEL", "openai:gpt-5"), await load_mcp_tools(session))
        answer = await agent.ainvoke({"messages": [{"role": "user", "content": task}]})
        print(answer["messages"][-1].text)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or TASK))
