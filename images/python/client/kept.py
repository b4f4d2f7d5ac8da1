"""Makes calls, and fetches results that the host has kept as files because they are too large for an answer."""

from binascii import a2b_base64
from posix import O_CLOEXEC, O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY, close, mkdir, open, unlink, write

from client.codec import encode
from client.transport import request


async def call(params):
    """Send tools/call and return the broker's answer; the file that it names has been written then."""
    answer = await request("tools/call", params)
    if not answer.get("ok") and "file" in answer["error"]:
        error = answer["error"]
        problem = await _fetch(error["file"])
        if problem:
            path = error.pop("file")
            error["message"] = f"the result is too large for an answer, and could not be written to {path}: {problem}"
    return answer


async def _fetch(path):
    """Write a file; return None, or why that failed."""
    try:
        descriptor = _create(path)
    except OSError as cause:
        return _advice(cause)
    more = True
    try:
        while more:
            part = await request("session/result", f'{{"file":{encode(path, "file")}}}')
            if "problem" in part:
                return part["problem"]
            data = memoryview(a2b_base64(part["data"]))
            while data:
                data = data[write(descriptor, data) :]
            more = part["more"]
    except OSError as cause:
        return _advice(cause)
    finally:
        close(descriptor)
        if more:
            _remove(path)


def _create(path):
    try:
        mkdir(path.rpartition("/")[0], 0o755)
    except FileExistsError:
        pass
    return open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_TRUNC, 0o644)


def _remove(path):
    try:
        unlink(path)
    except OSError:  # the code has removed it
        pass


def _advice(cause):
    return f"{cause.strerror}; ask the tool for less"
