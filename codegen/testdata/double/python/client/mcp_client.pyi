from typing import Any, Generic, TypeVar

T = TypeVar("T", default=Any)

class ToolResult(Generic[T]):
    data: T
    structuredContent: Any
    content: Any
    raw: Any
    def __getitem__(self, key: Any) -> Any: ...

class ToolError(Exception): ...

async def invoke(
    server_id: str, name: str, arguments: Any, wrapper: str | None = None, named: dict[str, Any] | None = None, inputs: Any = None
) -> ToolResult: ...
