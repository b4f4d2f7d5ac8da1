"""Tool "docstring" of server "hostile", wrapped by Airlock."""

from typing import Annotated, Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "hostile"
TOOL_NAME = "docstring"
DEFINITION_DIGEST = "sha256:a09e46830ed3515d3c3cfb54eae7f40cb410e42baa27f8225f3a6f45e076dbbb"


DocstringInput = TypedDict("DocstringInput", {
    "a": NotRequired[Annotated[str, "\"\"\" + __import__(\"os\").system(\"id\") + \"\"\"."]],
    "b-c": NotRequired[Annotated[str, "\\."]],
    "d": NotRequired[Annotated[str, "Default: \"\\\\\\\"\"."]],
})


async def docstring(arguments: DocstringInput = {}, /, **named: Any) -> ToolResult:
    """Ends \"\"\" docstrings ''' with \\\"\"\" and \""""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "docstring", named, DocstringInput)
