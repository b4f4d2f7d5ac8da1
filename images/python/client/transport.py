"""Chooses the connection that a request to the broker takes.

Code may run any number of event loops, in any threads and in child processes,
while a run may have 16 connections and 64 requests in flight. So:

- the guest's own process keeps one connection for good, the *home*, for the
  loop that asked first; when that loop ends, the next one takes it over;
- another loop or process opens a separate connection, which
  closes as soon as nothing is in flight on it;
- where as many are open as may be, a loop waits for one to close.
"""

from asyncio import get_running_loop, sleep
from itertools import count
from os import getpid, register_at_fork, urandom
from threading import Lock

import client
from client.connection import MAX_FRAME, Connection
from client.result import ToolError

_HOME_LIMIT = 48  # requests in flight on the home
_EXTRA_LIMIT = 2  # requests in flight on every other connection
_MOST_EXTRAS = 6
_RETRY = 0.002  # seconds between two attempts to get a connection


class _Pool:
    """The connections of one process."""

    def __init__(self, keeps_home):
        self.keeps_home = keeps_home
        self._mu = Lock()  # guards the fields below
        self._home = None
        self._extras = []

    def take(self, loop):
        """Return a connection driven by `loop`, which is running, or None when none is free."""
        with self._mu:
            home = self._home
            if home is not None and home.loop is loop and not home.broken:
                return home
            return self._take_home(loop) or self._take_extra(loop)

    def _take_home(self, loop):
        home = self._home
        if not self.keeps_home:
            return None
        if home is None or home.broken:
            home = self._home = Connection(_HOME_LIMIT)
        elif not home.is_free():
            return None
        home.bind(loop)
        return home

    def _take_extra(self, loop):
        for connection in self._extras[:]:
            if connection.loop is loop and not connection.broken:
                return connection
            if connection.broken or connection.is_free():
                self._extras.remove(connection)
                connection.close()
        if len(self._extras) >= _MOST_EXTRAS:
            return None
        connection = Connection(_EXTRA_LIMIT, self._discard)
        connection.bind(loop)
        self._extras.append(connection)
        return connection

    def _discard(self, connection):
        with self._mu:
            if connection in self._extras:
                self._extras.remove(connection)
        connection.close()


def _new_ids():
    """Return the IDs of a process's requests, which no other process of the run uses."""
    return count(1 if client.home_process == getpid() else int.from_bytes(urandom(6), "big"))


_pool = _Pool(keeps_home=client.home_process == getpid())
_ids = _new_ids()


def _after_fork():
    """Leave the parent's connections to the parent: their answers are not ours."""
    global _pool, _ids
    _pool = _Pool(keeps_home=False)
    _ids = _new_ids()


register_at_fork(after_in_child=_after_fork)


async def request(method, params):
    """Send one request and return the result of its answer.

    `params` is JSON text. Raises ToolError when it does not fit a frame or when
    the connection breaks. May be called from any event loop, concurrently.
    """
    id = next(_ids)
    frame = f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}\n'.encode()
    if len(frame) > MAX_FRAME:
        raise ToolError(
            "ValidationError",
            f"the arguments take {len(frame)} bytes as JSON and a call holds at most {MAX_FRAME}: send less at a time",
            source="code",
        )
    loop = get_running_loop()
    while (connection := _pool.take(loop)) is None:
        await sleep(_RETRY)
    return await connection.request(id, frame)
