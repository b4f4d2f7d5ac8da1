"""One connection to the broker's socket, driven by one asyncio event loop at a time.

Frames are newline-delimited JSON-RPC 2.0; docs/socket.md has the rules. All
work happens in the loop's own thread: a request is sent when it is made and
its answer is parsed when the loop receives it.
"""

from _socket import AF_UNIX, SOCK_STREAM, socket
from collections import deque
from itertools import islice

from client.codec import decode
from client.result import ToolError

SOCKET = "/run/airlock/broker.sock"
MAX_FRAME = 16 << 20  # bytes, the newline included

# Bytes that one read may take. The buffer is kept: one of this size made for each
# read is mapped and unmapped by the C library if it is larger than 128 KiB, which
# costs more in gVisor than the read.
_CHUNK = 1 << 16
_SENT_AT_ONCE = 64  # frames
_MOST_REJOINS = 100  # without an answer: more suspensions than a call lasts
_ID_PREFIX = b'{"jsonrpc":"2.0","id":'
_RECLAIM = _ID_PREFIX + b'%d,"method":"run/reclaim","params":{}}\n'


def lost(message):
    """Return the ToolError for a connection that broke."""
    return ToolError("SandboxError", message, source="sandbox")


def _id_of(frame):
    """Return the integer ID of a frame, or None for one that does not begin with it."""
    start = bytes(frame[:64])
    digits = start.removeprefix(_ID_PREFIX).partition(b",")[0]
    return int(digits) if start.startswith(_ID_PREFIX) and digits.isdigit() and len(digits) <= 18 else None


class Connection:
    """A connected socket with the requests that are under way on it.

    At most `limit` requests are in flight; more wait their turn here. A request
    whose caller was cancelled stays in flight until its answer has come, because
    the broker is still working on it; the answer is then dropped. `on_idle` is
    called with the connection whenever its last answer has come.
    """

    def __init__(self, limit, on_idle=None):
        self.loop = None
        self.broken = None  # the reason, once the connection is of no use
        self._limit = limit
        self._on_idle = on_idle
        self._pending = {}  # id → future, for what was sent and not answered
        self._waiting = deque()  # (id, frame, future), not sent yet
        self._unsent = deque()  # views of frames on their way
        self._due = False  # the loop will call to send them
        self._rejoins = 0  # since the last answer
        self._parts = []  # the beginning of a frame whose end has not come
        self._size = 0  # bytes in _parts
        self._buffer = memoryview(bytearray(_CHUNK))
        try:
            self._connect()
        except OSError as cause:
            raise lost(f"the broker's socket does not answer: {cause}") from None

    def _connect(self):
        self._socket = socket(AF_UNIX, SOCK_STREAM)
        try:
            self._socket.connect(SOCKET)
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def is_free(self):
        """Report whether another loop may take the connection over."""
        return self.loop.is_closed() or (not self.loop.is_running() and self._is_idle())

    def _is_idle(self):
        return not self._pending and not self._waiting

    def bind(self, loop):
        """Let `loop` drive the connection from now on.

        Requests of an earlier loop are dropped: that loop is closed.
        """
        self._stop_watching()
        self._waiting.clear()
        self._pending = dict.fromkeys(self._pending)
        self.loop = loop
        loop.add_reader(self._socket.fileno(), self._on_readable)
        self._due = bool(self._unsent)
        if self._due:
            loop.add_writer(self._socket.fileno(), self._on_writable)

    def close(self):
        """Close the socket. Calling it twice is fine."""
        self._stop_watching()
        self._socket.close()

    async def request(self, id, frame):
        """Send `frame`, a request with the integer `id`, and return the answer's result.

        Raises ToolError when the connection breaks.
        """
        if self.broken:
            raise lost(self.broken)
        future = self.loop.create_future()
        if len(self._pending) < self._limit:
            self._pending[id] = future
            self._send(frame)
        else:
            self._waiting.append((id, frame, future))
        return await future

    def _send(self, frame):
        """Send `frame`: at once if it is alone, else with those that are made in this turn of the loop."""
        self._unsent.append(memoryview(frame))
        if self._due:
            return
        if len(self._pending) > 1:
            self._due = True
            self.loop.call_soon(self._on_turn, self.loop)
        else:
            self._write()

    def _on_turn(self, loop):
        if self.loop is loop and not self.broken:
            self._write()

    def _write(self):
        self._due = not self._flush()
        if self._due:
            self.loop.add_writer(self._socket.fileno(), self._on_writable)

    def _on_writable(self):
        if self._flush() and not self.broken:
            self._due = False
            self.loop.remove_writer(self._socket.fileno())

    def _flush(self):
        """Send as much as the socket accepts; report whether that was all."""
        unsent = self._unsent
        try:
            while unsent:
                if len(unsent) == 1:
                    sent = self._socket.send(unsent[0])
                else:
                    sent = self._socket.sendmsg(list(islice(unsent, _SENT_AT_ONCE)))
                while sent and sent >= len(unsent[0]):
                    sent -= len(unsent.popleft())
                if sent:
                    unsent[0] = unsent[0][sent:]
                    return False
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as cause:
            self._rejoin(f"the connection to the broker broke: {cause}")
            return bool(self.broken)
        return True

    def _on_readable(self):
        size = _CHUNK
        while size == _CHUNK and not self.broken:  # a full buffer: there is probably more
            try:
                size = self._socket.recv_into(self._buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as cause:
                self._rejoin(f"the connection to the broker broke: {cause}")
                return
            if not size:
                self._rejoin("the broker closed the connection")
                return
            self._take(bytes(self._buffer[:size]))

    def _take(self, chunk):
        """Handle the frames that end in `chunk` and keep the beginning of the next."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._parts.append(end)
            frame = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            self._on_frame(frame)
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size >= MAX_FRAME:
                self._break(f"the broker sent a frame of more than {MAX_FRAME} bytes")

    def _on_frame(self, frame):
        self._rejoins = 0
        try:
            answer = decode(frame.decode())
            future = self._pending.pop(answer["id"])
        except (ValueError, RecursionError, TypeError, LookupError) as cause:
            self._on_unreadable(frame, cause)
            return
        if future is not None and not future.done():
            if "result" in answer:
                future.set_result(answer["result"])
            else:
                future.set_exception(lost("the broker refused the request"))
        if self._waiting:
            self._send_waiting()
        elif not self._pending and self._on_idle:
            self._on_idle(self)

    def _on_unreadable(self, frame, cause):
        """Fail the one request that `frame` answers, if it has an ID, otherwise all."""
        reason = f"the broker's answer of {len(frame)} bytes cannot be read: {type(cause).__name__}"
        id = _id_of(frame)
        if id not in self._pending:
            self._break(reason)
            return
        future = self._pending.pop(id)
        if future is not None and not future.done():
            future.set_exception(lost(reason))
        self._send_waiting()

    def _send_waiting(self):
        while self._waiting and len(self._pending) < self._limit and not self.broken:
            id, frame, future = self._waiting.popleft()
            if not future.done():  # else its caller was cancelled before it was sent
                self._pending[id] = future
                self._send(frame)

    def _rejoin(self, reason):
        """Go on with another socket: the sandbox was suspended, which closes all of them.

        Requests that were sent are not sent again: the broker is asked for their answers.
        """
        self._rejoins += 1
        if not self._pending or self._rejoins > _MOST_REJOINS:
            self._break(reason)
            return
        self.close()
        self._parts.clear()
        self._size = 0
        try:
            self._connect()
        except OSError:
            self._break(reason)
            return
        unsent = {id: frame for frame in self._unsent if (id := _id_of(frame)) is not None}
        self._unsent.clear()
        for id in self._pending:
            self._unsent.append(unsent.get(id) or memoryview(_RECLAIM % id))
        self._due = True
        self.loop.add_reader(self._socket.fileno(), self._on_readable)
        self.loop.add_writer(self._socket.fileno(), self._on_writable)

    def _break(self, reason):
        self.broken = reason
        self.close()
        futures = [*self._pending.values(), *(future for _, _, future in self._waiting)]
        self._pending.clear()
        self._waiting.clear()
        self._unsent.clear()
        for future in futures:
            if future is not None and not future.done():
                future.set_exception(lost(reason))

    def _stop_watching(self):
        descriptor = self._socket.fileno()
        if self.loop is not None and not self.loop.is_closed() and descriptor >= 0:
            self.loop.remove_reader(descriptor)
            self.loop.remove_writer(descriptor)
