"""The results of tool calls: ToolResult on success, ToolError on failure."""

from types import GenericAlias

from client.codec import decode

_RAW_MEMBERS = ("content", "structuredContent", "isError")


class ToolResult:
    """The result of a tool call that worked.

    - `data`: the value: the structured content if there is one; else the one
      text block, parsed if it is a JSON object or array; else that text; else
      the list of content blocks.
    - `raw`: the whole CallToolResult (MCP 2025-11-25, tools/call) as it came.
    - `structuredContent`, `content`, `isError`: the members of `raw`, or None.

    It also behaves like its `data`: it can be indexed, iterated, measured with
    `len`, compared, and asked for `data`'s own methods (`get`, `items`,
    `splitlines`). As a result of the code, it is replaced by its `data`.
    """

    __slots__ = ("data", "raw")
    __class_getitem__ = classmethod(GenericAlias)  # wrappers use ToolResult[type of data]

    ok = True

    def __init__(self, data, raw):
        self.data = data
        self.raw = raw

    @property
    def structuredContent(self):
        """The tool's structured content, or None."""
        return self.raw.get("structuredContent")

    @property
    def content(self):
        """The list of content blocks, or None."""
        return self.raw.get("content")

    @property
    def isError(self):
        """Always False: a failed call raises ToolError."""
        return self.raw.get("isError", False)

    @property
    def structured_content(self):
        """structuredContent in Python's spelling."""
        return self.structuredContent

    @property
    def is_error(self):
        """isError in Python's spelling."""
        return self.isError

    def __getitem__(self, key):
        try:
            return self.data[key]
        except KeyError as missing:
            if key in _RAW_MEMBERS and key in self.raw:
                return self.raw[key]  # result["content"][0]["text"]
            missing.add_note(_describe(self.data))
            raise
        except TypeError as wrong:
            if isinstance(key, str) and key in _RAW_MEMBERS and key in self.raw:
                return self.raw[key]  # the data is a text or a list
            wrong.add_note(_describe(self.data))
            raise

    def __getattr__(self, name):
        # Only reached for what ToolResult itself lacks. Underscored names stay
        # ours: pickle and copy ask for them before `data` exists.
        if name.startswith("_") or name in ToolResult.__slots__:
            raise AttributeError(name)
        try:
            return getattr(self.data, name)
        except AttributeError:
            hint = f"write [{name!r}]" if isinstance(self.data, dict) and name in self.data else _describe(self.data)
            raise AttributeError(f"a ToolResult has no attribute {name!r}: {hint}", name=name, obj=self) from None

    def __iter__(self):
        return iter(self.data)

    def __reversed__(self):
        return reversed(self.data)

    def __len__(self):
        return len(self.data)

    def __contains__(self, item):
        return item in self.data

    def __bool__(self):
        return bool(self.data)

    def __eq__(self, other):
        return self.data == (other.data if isinstance(other, ToolResult) else other)

    __hash__ = None

    def __str__(self):
        return str(self.data)

    def __repr__(self):
        return f"ToolResult(data={self.data!r})"

    def __json__(self):
        return self.data

    def __reduce__(self):
        return (ToolResult, (self.data, self.raw))


class ToolError(Exception):
    """A tool call that failed.

    - `type`: one of Airlock's error types, such as "ToolError" (the tool itself
      reported it), "ValidationError", "UnknownTool", "PolicyDenied", "Timeout";
    - `message`: what to do about it, in a sentence;
    - `retryable`: whether the same call may work later;
    - `result`: the raw CallToolResult when the tool itself failed, else None;
    - `call_id`, `source`: the call in the audit log, and who refused it
      ("tool", "broker", "sandbox" or "code");
    - `file`: the file with the whole result, if it was too large for an answer.
    """

    def __init__(self, type, message, retryable=False, result=None, call_id=None, source="broker", file=None):
        super().__init__(message)
        self.type = type
        self.message = message
        self.retryable = retryable
        self.result = result
        self.call_id = call_id
        self.source = source
        self.file = file

    def __reduce__(self):
        return (ToolError, (self.type, self.message, self.retryable, self.result, self.call_id, self.source, self.file))


def result_of(answer):
    """Turn the broker's answer to tools/call into a ToolResult, or raise its ToolError."""
    if answer.get("ok"):
        raw = answer["raw"]
        return ToolResult(data_of(raw), raw)
    raise error_of(answer["error"], answer.get("raw"))


def error_of(error, raw=None):
    """Return the ToolError for an error object of the broker."""
    return ToolError(
        error["type"],
        error["message"],
        bool(error.get("retryable")),
        raw,
        error.get("call_id"),
        error.get("source", "broker"),
        error.get("file"),
    )


def data_of(raw):
    """Return the value of a CallToolResult, as ToolResult.data describes it."""
    structured = raw.get("structuredContent")
    if structured is not None:
        return structured
    content = raw.get("content")
    if not isinstance(content, list) or len(content) != 1:
        return content
    block = content[0]
    if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
        return content
    text = block["text"]
    trimmed = text.strip(" \t\r\n")
    if trimmed[:1] in ("{", "["):
        try:
            return decode(trimmed)
        except (ValueError, RecursionError):
            return text
    return text


def _describe(data):
    if isinstance(data, dict):
        keys = ", ".join(repr(key) for key in list(data)[:20])
        return f"the tool returned an object with the keys {keys}" if keys else "the tool returned an empty object"
    if isinstance(data, list):
        return f"the tool returned a list of {len(data)}"
    return f"the tool returned a {type(data).__name__}"
