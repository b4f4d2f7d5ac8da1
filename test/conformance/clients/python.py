"""A client made with the Python SDK, driven by a test: its argument
describes the connection, each line of stdin is one command, and each line of stdout
its result.
"""

import json
import sys

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters


class Person:
    """Answers what the server asks during the call that is under way."""

    def __init__(self):
        self.answer = None
        self.asked = []

    async def elicit(self, context, params):
        self.asked.append(params.message)
        return types.ElicitResult(**self.answer)


def say(value):
    print(json.dumps(value), flush=True)


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def call(client, person, step):
    person.answer, person.asked = step.get("answer"), []
    heard = []
    scope = anyio.CancelScope()

    async def on_progress(progress, total, message):
        heard.append(message or "")
        if step.get("cancel"):
            scope.cancel()

    wants = step.get("progress") or step.get("cancel")
    outcome = {"error": {"message": "the test has cancelled it"}}
    try:
        with scope:
            result = await client.call_tool(
                step["tool"], step.get("arguments"), progress_callback=on_progress if wants else None
            )
            outcome = {"result": plain(result)}
    except MCPError as error:
        outcome = {"error": {"code": error.error.code, "message": error.error.message}}
    except RuntimeError as error:  # among them a result that is not of its outputSchema
        outcome = {"error": {"message": str(error)}}
    return {**outcome, "progress": heard, "asked": person.asked}


async def main():
    how = json.loads(sys.argv[1])
    person = Person()
    server = how.get("url") or StdioServerParameters(command=how["command"], args=how["args"], env=how["env"])
    mode = "auto" if how["era"] == "modern" else "legacy"
    async with Client(server, mode=mode, elicitation_callback=person.elicit) as client:
        name = client.server_info.name if client.server_info else None
        say({"version": client.protocol_version, "server": name, "instructions": client.instructions})
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            step = json.loads(line)
            if step["op"] == "list":
                say({"tools": plain(await client.list_tools())["tools"]})
            else:
                say(await call(client, person, step))


anyio.run(main)
