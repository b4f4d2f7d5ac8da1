"""The guest's own connection to the host: plain, blocking, one request at a time.

Tool calls never travel on it. If the code breaks it, by closing every
descriptor for example, delivery opens a new one.
"""

from _socket import AF_UNIX, SOCK_STREAM, socket

from client.codec import decode, encode

SOCKET = "/run/airlock/broker.sock"
_CHUNK = 1 << 16  # bytes


class Link:
    """A connection to the broker's socket."""

    def __init__(self):
        self._connect()

    def start(self):
        """Fetch the code, as `code`, with what comes with it; waits for as long as the host takes."""
        return self._request("run/start", "{}")

    def request(self, method, params):
        """Send one request, its params as JSON text, and return the result of its answer."""
        try:
            return self._request(method, params)
        except (OSError, ValueError):
            # The code has closed the socket, or the sandbox was suspended. The number may belong to another file
            # by now, even the new connection's: it must not be closed again.
            self._socket.detach()
            self._connect()
            return self._request(method, params)

    def finish(self, params):
        """Deliver the outcome, given as JSON text, and wait until the host has it."""
        self.request("run/finish", params)

    def _connect(self):
        self._socket = socket(AF_UNIX, SOCK_STREAM)
        self._socket.connect(SOCKET)

    def _request(self, method, params):
        id = encode(method, "method")
        self._socket.sendall(f'{{"jsonrpc":"2.0","id":{id},"method":{id},"params":{params}}}\n'.encode())
        parts = []
        while not parts or not parts[-1].endswith(b"\n"):
            chunk = self._socket.recv(_CHUNK)
            if not chunk:
                raise OSError("the host closed the socket")
            parts.append(chunk)
        return decode(b"".join(parts)[:-1].decode())["result"]
