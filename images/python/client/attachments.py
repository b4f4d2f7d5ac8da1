"""Hands files to the caller: images and sounds that a model is shown, and any other file.

    client.attach(png_bytes, "image/png", "chart.png")
    client.attach("/tmp/report.csv")

It takes bytes, a path, an open file, a content block of a tool, a figure of matplotlib, a
data frame, or text and JSON to write into a file. It works at once: `await` before it is
optional.
"""

from _socket import AF_UNIX, SOCK_STREAM, socket
from binascii import Error, a2b_base64, b2a_base64
from errno import EINVAL, ENAMETOOLONG, ENOENT, ENOTDIR
from posix import fspath, stat
from stat import S_ISREG

from client.codec import decode, encode
from client.connection import MAX_FRAME, SOCKET
from client.result import ToolError, ToolResult, error_of

__all__ = ["Attachment", "attach"]

_CHUNK = 1 << 16  # bytes
_MOST = (MAX_FRAME - (64 << 10)) // 4 * 3  # bytes that fit one frame, encoded
_LONGEST_PATH = 4096

_USAGE = (
    'write client.attach(data, mime, name), as in client.attach(png_bytes, "image/png", "chart.png"); data is bytes, '
    "a path, an open file or text; mime and name may be left out, or given as mime=... and name=..."
)


sent = []  # attachments of this process


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


def attach(
    data: object = None, mime: "str | None" = None, name: "str | None" = None, *more: object, **other: object
) -> "Attachment":
    """Hand a file to the caller and return an Attachment.

    Of content blocks, or a tool's result that has several, each is attached, and a list
    is returned. Raises TypeError for other arguments than data, mime and name, and
    ToolError (type "OutputLimit") for files over the limits of size and number.
    """
    _check(data, mime, name, more, other)
    name = None if name is None else fspath(name)
    blocks = _blocks(data)
    if blocks is not None and len(blocks) != 1:
        return [_attach_block(block, mime, name) for block in blocks]
    if blocks:
        return _attach_block(blocks[0], mime, name)
    content, found_mime, found_name = _read(data, mime)
    return _send(content, mime or found_mime, name or found_name)


def _check(data, mime, name, more, other):
    if data is None or more or other:
        wrong = f"it got {', '.join(other)}" if other else "it got too many arguments" if more else "it got no data"
        raise TypeError(f"attach takes data, mime and name; {wrong}: {_USAGE}")
    if mime is not None and not (isinstance(mime, str) and "/" in mime):
        raise TypeError(f'attach needs a type such as "image/png" as its second argument: {_USAGE}')
    if name is not None and not isinstance(name, str) and not hasattr(name, "__fspath__"):
        raise TypeError(f"attach needs a text as the name: {_USAGE}")


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


def _read(data, mime):
    """Return the bytes of `data`, and its type and name if it has them."""
    if isinstance(data, ToolResult):
        data = data.data
    if isinstance(data, str):
        return _read_text(data, mime)
    if hasattr(data, "__fspath__"):
        return _read_file(fspath(data))
    if isinstance(data, (dict, list, tuple, int, float, bool)):
        return encode(data, "data").encode(), "application/json", "data.json"
    try:
        return memoryview(data).tobytes(), None, None
    except TypeError:
        return _read_object(data) or _read_stream(data)


def _read_object(data):
    """Return a figure, axes, a plot or a picture of PIL as PNG, a data frame as CSV, anything else as None."""
    figure = data if callable(getattr(data, "savefig", None)) else getattr(data, "figure", None)
    if callable(getattr(figure, "savefig", None)):
        from io import BytesIO

        file = BytesIO()
        figure.savefig(file, format="png", bbox_inches="tight")
        return file.getvalue(), "image/png", "figure.png"
    if hasattr(data, "getbands") and callable(getattr(data, "save", None)):
        from io import BytesIO

        file = BytesIO()
        data.save(file, format="PNG")
        return file.getvalue(), "image/png", "image.png"
    if callable(getattr(data, "to_csv", None)):
        return data.to_csv().encode(), "text/csv", "data.csv"
    return None


def _read_stream(data):
    """Read an open file, or one in memory."""
    for method in ("getvalue", "read"):
        read = getattr(data, method, None)
        if callable(read):
            break
    else:
        raise TypeError(f"attach cannot read a {type(data).__name__}: {_USAGE}")
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


def _read_text(text, mime):
    """Read the file that a text names, or return the text as the content."""
    path = text.removeprefix("file://")
    if 0 < len(path) < _LONGEST_PATH and "\n" not in path and "\0" not in path:
        try:
            return _read_file(path)
        except OSError as problem:
            if problem.errno != ENAMETOOLONG and (problem.errno not in (ENOENT, ENOTDIR) or _looks_like_path(path)):
                raise
    if text.startswith("data:") or (mime and mime.startswith(("image/", "audio/")) and "svg" not in mime):
        raise TypeError(f"attach got a text where bytes are needed; decode it with base64.b64decode: {_USAGE}")
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
    sent.append(answer)
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
