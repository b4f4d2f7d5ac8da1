"""Hands files to the caller: images and sounds that a model is shown, and any other file.

    client.attach(png_bytes, "image/png", "chart.png")
    client.attach("/tmp/report.csv")

It takes bytes, a path, an open file, a data URI, a content block of a tool, or text
and JSON to write into a file. It works at once: `await` before it is optional.
"""

from _socket import AF_UNIX, SOCK_STREAM, socket
from binascii import Error, a2b_base64, b2a_base64
from errno import EINVAL, ENAMETOOLONG, ENOENT, ENOTDIR
from posix import fspath, stat
from stat import S_ISREG

from client.arguments import plain
from client.codec import decode, encode
from client.connection import MAX_FRAME, SOCKET
from client.result import ToolError, ToolResult, error_of

__all__ = ["Attachment", "attach"]

_CHUNK = 1 << 16  # bytes
_MOST = (MAX_FRAME - (64 << 10)) // 4 * 3  # bytes that fit one frame, encoded
_LONGEST_PATH = 4096

# What each argument may be called, without capitals and separators.
_DATA = (
    "data", "bytes", "content", "contents", "body", "buffer", "blob", "file", "path", "filepath", "source", "image",
    "audio", "text")
_MIME = ("mime", "mimetype", "contenttype", "mediatype", "type", "format")
_NAME = ("name", "filename", "title", "label")

_MAJOR = ("application", "audio", "font", "image", "message", "model", "multipart", "text", "video")
_FORMATS = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "svg": "image/svg+xml",
    "wav": "audio/wav", "mp3": "audio/mpeg", "csv": "text/csv", "json": "application/json", "pdf": "application/pdf",
    "txt": "text/plain", "text": "text/plain", "html": "text/html", "md": "text/markdown", "markdown": "text/markdown",
}  # fmt: skip
_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"PK\x03\x04", b"ID3", b"OggS", b"fLaC")


class Attachment(dict):
    """A file that was attached: `name`, `uri`, `mime_type`, `kind` ("image", "audio" or
    "file"), `bytes`, and `note` if its content has another type than stated.

    The members are attributes too. It may be awaited, and is JSON.
    """

    __hash__ = object.__hash__  # asyncio.gather looks its awaitables up

    def __getattr__(self, name: str):
        try:
            return self["mime_type" if name in ("mime", "mimeType") else name]
        except KeyError:
            raise AttributeError(name) from None

    def __await__(self):
        return self
        yield  # this makes the function a generator


def attach(data: object = None, mime: "str | None" = None, name: "str | None" = None, **named: object) -> "Attachment":
    """Hand a file to the caller and return an Attachment.

    The arguments are identified by their types, so their order, and what keywords
    they have, do not matter. Of content blocks, or a tool's result that has several,
    each is attached, and a list is returned. Raises ToolError (type "OutputLimit")
    for files over the limits of size and number.
    """
    data, mime, name = _arranged(data, mime, name, named)
    blocks = _blocks(data)
    if blocks is not None and len(blocks) != 1:
        return [_attach_block(block, mime, name) for block in blocks]
    if blocks:
        return _attach_block(blocks[0], mime, name)
    content, found_mime, found_name = _read(data, mime, name)
    return _send(content, mime or found_mime, name or found_name)


def _arranged(data, mime, name, named):
    """Return data, mime and name of a call that gives them in any order, under any usual name."""
    given = {"data": data, "mime": mime, "name": name}
    for key, value in named.items():
        spelled = plain(key)
        for meant, spellings in (("data", _DATA), ("mime", _MIME), ("name", _NAME)):
            if spelled in spellings and (given[meant] is None or value is None):
                given[meant] = value if given[meant] is None else given[meant]
                break
        else:
            raise TypeError(
                f"attach has no argument {key!r}, or has it twice: it takes data (bytes or a path), mime, name")
    data, mime, name = given.values()
    if _is_content(mime) or (data is None and mime is not None and not _mime_of(mime)):
        data, mime = mime, data
    if _is_content(name) or (data is None and name is not None):
        data, name = name, data
    if mime is not None and not _mime_of(mime):
        mime, name = name, mime
    elif name is not None and _mime_of(name) and mime is None:
        mime, name = name, None
    if data is None:
        raise TypeError('attach needs bytes or a path, as in client.attach(png_bytes, "image/png", "chart.png")')
    for value, what in ((mime, "mime"), (name, "name")):
        if value is not None and not isinstance(value, str) and not hasattr(value, "__fspath__"):
            raise TypeError(f"attach takes {what} as text; it got a {type(value).__name__}")
    return data, _mime_of(mime) or mime, None if name is None else fspath(name)


def _is_content(value):
    return value is not None and not isinstance(value, str) and not hasattr(value, "__fspath__")


def _mime_of(value):
    """Return the media type that a text is, be it short ("png"); else None."""
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    major, slash, rest = text.partition("/")
    is_type = major in _MAJOR and slash and " " not in rest.partition(";")[0]
    return _FORMATS.get(text.removeprefix(".")) or (text if is_type else None)


def _blocks(data):
    """Return the content blocks that hold files in a tool's result or in a list; None for anything else."""
    if isinstance(data, ToolResult):
        found = [block for block in data.content or () if _is_block(block)]
        return found or None
    if isinstance(data, dict) and _is_block(data):
        return [data]
    if isinstance(data, (list, tuple)) and data and all(_is_block(each) for each in data):
        return list(data)
    return None


def _is_block(block):
    if not isinstance(block, dict):
        return False
    resource = block.get("resource")
    if block.get("type") == "resource" and isinstance(resource, dict):
        return isinstance(resource.get("blob"), str) or isinstance(resource.get("text"), str)
    return block.get("type") in ("image", "audio") and isinstance(block.get("data"), str)


def _attach_block(block, mime, name):
    holder = block.get("resource", block)
    encoded = holder.get("blob", holder.get("data"))
    content = holder["text"].encode() if encoded is None else _from_base64(encoded)
    uri = holder.get("uri")
    return _send(
        content, mime or holder.get("mimeType"), name or (uri.rpartition("/")[2] if isinstance(uri, str) else None))


def _from_base64(text):
    try:
        return a2b_base64(text.encode() + b"==", strict_mode=False)
    except (Error, ValueError):
        raise ToolError("ValidationError", "the data of the content block is not base64", source="code") from None


def _read(data, mime, name):
    """Return the bytes of `data`, and its type and name if it has them."""
    if isinstance(data, ToolResult):
        data = data.data
    if isinstance(data, str):
        return _read_text(data, mime, name)
    if hasattr(data, "__fspath__"):
        return _read_file(fspath(data))
    if isinstance(data, (dict, list, tuple, int, float, bool)):
        return encode(data, "data").encode(), "application/json", "data.json"
    try:
        return memoryview(data).tobytes(), None, None
    except TypeError:
        return _read_stream(data)


def _read_stream(data):
    """Read an open file, or one in memory."""
    for method in ("getvalue", "read"):
        read = getattr(data, method, None)
        if callable(read):
            break
    else:
        raise TypeError(f"attach takes bytes, a path or an open file; it got a {type(data).__name__}")
    label = getattr(data, "name", None)
    label = label if isinstance(label, str) else None
    try:
        content = read()
    except ValueError:  # io.UnsupportedOperation: it is open for writing
        if label is None:
            raise
        data.flush()
        return _read_file(label)
    if isinstance(content, str):
        content = content.encode()
    return content, None, label


def _read_file(path):
    status = stat(path)
    if not S_ISREG(status.st_mode):
        raise OSError(EINVAL, "not a regular file, so it cannot be attached", path)
    if status.st_size > _MOST:
        raise _too_large(status.st_size)
    with open(path, "rb") as file:
        return file.read(_MOST + 1), None, path if isinstance(path, str) else path.decode(errors="replace")


def _read_text(text, mime, name):
    """Read a text as what it is: a data URI, a path, base64 of a known format, or the content itself."""
    if text.startswith("data:") and "," in text:
        head, _, rest = text[5:].partition(",")
        found = head.partition(";")[0] or "text/plain"
        if head.endswith(";base64"):
            return _from_base64(rest), found, None
        from urllib.parse import unquote_to_bytes

        return unquote_to_bytes(rest), found, None
    path = text.removeprefix("file://")
    if 0 < len(path) < _LONGEST_PATH and "\n" not in path and "\0" not in path:
        try:
            return _read_file(path)
        except OSError as problem:
            if problem.errno != ENAMETOOLONG and (problem.errno not in (ENOENT, ENOTDIR) or _looks_like_path(path)):
                raise
    binary = mime and not mime.startswith("text/") and "json" not in mime and "xml" not in mime
    if len(text) > 32 and (binary or not mime):
        try:
            content = a2b_base64(text[:64].encode() + b"==")
        except (Error, ValueError):
            content = b""
        if content.startswith(_MAGIC):
            return _from_base64(text), None, None
    return text.encode("utf-8", "replace"), None, None


def _looks_like_path(text):
    """Report whether a text that names no file was probably meant to name one."""
    end = text.rpartition("/")[2]
    stem, dot, extension = end.rpartition(".")
    has_extension = bool(stem and dot and extension.isalnum() and len(extension) < 6)
    return (has_extension or text.startswith(("/", "./", "../", "~/"))) and not text.startswith(("<", "{", "["))


def _too_large(size):
    message = f"the file has {size} bytes, and one may have {_MOST}: make it smaller, or attach a part of it"
    return ToolError("OutputLimit", message, source="code")


def _send(content, mime, name):
    if len(content) > _MOST:
        raise _too_large(len(content))
    params = f'{{"name":{encode(name or "", "name")},"mime":{encode(mime or "", "mime")},"data":"'.encode()
    frame = b'{"jsonrpc":"2.0","id":1,"method":"run/attach","params":' + params + b2a_base64(
        content, newline=False) + b'"}}\n'
    answer = _request(frame)
    if "error" in answer:
        raise error_of(answer["error"])
    return Attachment(answer)


def _request(frame):
    """Send one request on a separate connection, which works in any thread, loop or process."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    parts = []
    try:
        connection.connect(SOCKET)
        connection.sendall(frame)
        while not parts or not parts[-1].endswith(b"\n"):
            chunk = connection.recv(_CHUNK)
            if not chunk:
                raise OSError("it hung up")
            parts.append(chunk)
        return decode(b"".join(parts)[:-1].decode())["result"]
    except (OSError, ValueError, LookupError) as cause:
        raise ToolError("SandboxError", f"the connection to the broker broke: {cause}", source="sandbox") from None
    finally:
        connection.close()
