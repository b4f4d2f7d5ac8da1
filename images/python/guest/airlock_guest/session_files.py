"""Copies /workspace/session in before the code runs, and what changed there out after it.

The host keeps paths and bytes. Only regular files are kept, and nothing
if there is more than the session may hold.
"""

from binascii import a2b_base64, b2a_base64
from posix import (
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_RDONLY,
    O_WRONLY,
    close,
    lstat,
    mkdir,
    open,
    read,
    scandir,
    unlink,
    write,
)
from stat import S_ISDIR, S_ISREG

from client.codec import encode

DIRECTORY = "/workspace/session"

_RESULT = "large-result.json"
_PIECE = 1 << 20  # bytes of one piece
_BATCH = 4 << 20  # bytes of one request
_BATCH_FILES = 400
_MAX_DEPTH = 32


class _TooMuch(Exception):
    """There is more than the session may hold; the message has the size."""


def prepare():
    """Make the directory. Part of getting ready, while no run waits."""
    try:
        mkdir(DIRECTORY, 0o755)
    except FileExistsError:
        pass


class SessionFiles:
    """The files of one run's session; `granted` is what the host allows."""

    def __init__(self, link, granted):
        self._link = link
        self._most_files = granted["max_files"]
        self._most_bytes = granted["max_bytes"]
        self._known = {}  # path → state of the file when the code began
        if granted["files"]:
            self._load()
        self._untouched = self._stamp()

    def save(self):
        """Send the host the changed files; list on stderr those that are not kept."""
        try:
            if not self._known and self._stamp() == self._untouched:
                return
            self._save()
        except _TooMuch as problem:
            _tell(f"what this run left in /workspace/session was not kept: {problem}")
        except BaseException as problem:  # the code may have broken the builtins
            _tell(f"what this run left in /workspace/session was not kept: {type(problem).__name__}")

    def keep_result(self, data):
        """Write a result, as JSON, to a file of the session; return its path, or None if it does not fit."""
        try:
            content = memoryview(data.encode())
            _remove(_RESULT)  # of an earlier run
            found, _ = self._found()
            size = sum(status.st_size for status in found.values())
            if len(found) >= self._most_files or size + len(content) > self._most_bytes:
                return None
            descriptor = open(f"{DIRECTORY}/{_RESULT}", O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_EXCL, 0o644)
            try:
                while content:
                    content = content[write(descriptor, content) :]
            finally:
                close(descriptor)
        except (OSError, MemoryError, _TooMuch):  # the disk is full, or the code has left something else there
            _remove(_RESULT)
            return None
        return f"{DIRECTORY}/{_RESULT}"

    def _stamp(self):
        try:
            status = lstat(DIRECTORY)
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, S_ISDIR(status.st_mode)

    def _load(self):
        more = True
        while more:
            answer = self._link.request("session/load", "{}")
            more = answer["more"]
            for piece in answer["files"]:
                try:
                    self._write(piece)
                except OSError as problem:
                    # Files that were not loaded are unknown, so they do not count as removed.
                    self._known.pop(piece["path"], None)
                    _remove(piece["path"])
                    _tell(f"not all files of /workspace/session could be loaded: {problem.strerror}")
                    more = False
                    break
        for path in self._known:
            self._known[path] = _state(lstat(f"{DIRECTORY}/{path}"))

    def _write(self, piece):
        path = piece["path"]
        flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW
        if piece.get("append"):
            from posix import O_APPEND

            flags |= O_APPEND
        else:
            flags |= O_CREAT | O_EXCL
            _make_parents(path)
        descriptor = open(f"{DIRECTORY}/{path}", flags, 0o644)
        try:
            data = memoryview(a2b_base64(piece["data"]))
            while data:
                data = data[write(descriptor, data) :]
        finally:
            close(descriptor)
        self._known[path] = None

    def _save(self):
        found, skipped = self._found()
        changed = [path for path, status in found.items() if self._known.get(path) != _state(status)]
        removed = [path for path in self._known if path not in found]
        if changed or removed:
            self._send(changed, found, removed)
        if skipped:
            _tell(f"not kept in /workspace/session, because only regular files are: {', '.join(skipped[:5])}")

    def _found(self):
        """Return the regular files as path → status, and the names of all other files."""
        found, skipped, size = {}, [], 0
        try:
            if not S_ISDIR(lstat(DIRECTORY).st_mode):
                return {}, ["/workspace/session itself"]
        except FileNotFoundError:
            return {}, []
        waiting = [("", 0)]
        while waiting:
            directory, depth = waiting.pop()
            with scandir(f"{DIRECTORY}/{directory}") as entries:
                for entry in entries:
                    path = directory + entry.name
                    status = entry.stat(follow_symlinks=False)
                    if S_ISDIR(status.st_mode) and depth < _MAX_DEPTH - 1:
                        waiting.append((path + "/", depth + 1))
                    elif S_ISREG(status.st_mode) and _is_text(path):
                        found[path] = status
                        size += status.st_size
                    else:
                        skipped.append(repr(path)[:80])
                    if len(found) > self._most_files or len(skipped) + len(waiting) > 4 * self._most_files + 64:
                        raise _TooMuch(f"more than the {self._most_files} files that it may hold")
            if size > self._most_bytes:
                raise _TooMuch(f"{size} bytes are more than the {self._most_bytes} that it may hold")
        return found, skipped

    def _send(self, changed, found, removed):
        batch, size = [], 0
        for path in changed:
            descriptor = open(f"{DIRECTORY}/{path}", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            try:
                left, append = found[path].st_size, ""
                while left > 0 or not append:
                    data = read(descriptor, min(left, _PIECE)) if left > 0 else b""
                    encoded = b2a_base64(data, newline=False).decode()
                    batch.append(f'{{"path":{encode(path, "path")},"data":"{encoded}"{append}}}')
                    append = ',"append":true'
                    left = left - len(data) if data else 0  # it may be shorter by now
                    size += len(data)
                    if size >= _BATCH or len(batch) >= _BATCH_FILES:
                        self._request(batch, (), False)
                        batch, size = [], 0
            finally:
                close(descriptor)
        self._request(batch, removed, True)

    def _request(self, batch, removed, last):
        gone, last = encode(list(removed), "removed"), "true" if last else "false"
        answer = self._link.request("session/save", f'{{"files":[{",".join(batch)}],"removed":{gone},"last":{last}}}')
        if "problem" in answer:
            raise _TooMuch(answer["problem"])


def _remove(path):
    try:
        unlink(f"{DIRECTORY}/{path}")
    except OSError:
        pass


def _make_parents(path):
    at = path.find("/")
    while at >= 0:
        try:
            mkdir(f"{DIRECTORY}/{path[:at]}", 0o755)
        except FileExistsError:
            pass
        at = path.find("/", at + 1)


def _state(status):
    """Return what changes with each change of a file; code cannot set the last of it."""
    return status.st_ino, status.st_size, status.st_ctime_ns


def _is_text(path):
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _tell(text):
    try:
        write(2, f"airlock: {text}\n".encode(errors="backslashreplace"))
    except OSError:  # the code has closed its stderr
        return
