"""A plain MCP client: looks for tools, runs a program in Airlock, and prints its result.

python mcp_client.py [FILE]

FILE is a Python program; without it, a small one runs. Environment: AIRLOCK is the command of Airlock.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

CODE = "result = sum(n * n for n in range(1, 101))"


async def main(code):
    airlock = StdioServerParameters(command=os.environ.get("AIRLOCK", "airlock"), args=["mcp"], env=dict(os.environ))
    async with stdio_client(airlock) as (read, write), ClientSession(read, write) as session:
        # The instructions explain how to write programs for Airlock. Add them to the model's system prompt.
        instructions = (await session.initialize()).instructions
        tools = [tool.name for tool in (await session.list_tools()).tools]
        print(f"{len(instructions)} characters of instructions, tools: {', '.join(tools)}", file=sys.stderr)
        answer = await session.call_tool("run_code", {"language": "python", "code": code})
        print(json.dumps(answer.structuredContent))


if __name__ == "__main__":
    program = CODE
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            program = file.read()
    asyncio.run(main(program))
