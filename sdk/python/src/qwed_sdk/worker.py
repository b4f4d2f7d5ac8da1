"""A separate process for the engines, which is killed when its time is over."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from qwed_new import strict_json
from qwed_new.verdict import Status, Verdict

SECONDS = 60.0


class Worker:
    """Answers requests one after another in a process that starts at the first and again after it was killed."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._mu = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def ask(self, engine: str, arguments: Mapping[str, Any]) -> Verdict:
        """The verdict of an engine; INCONCLUSIVE when the process did not answer in time or ended."""
        try:
            line = json.dumps({"engine": engine, "arguments": dict(arguments)}).encode() + b"\n"
        except (TypeError, ValueError) as error:
            return Verdict(Status.UNKNOWN, engine, f"the arguments are not JSON: {error}")
        with self._mu:
            try:
                answer = self._exchange(line)
            except (OSError, ValueError):
                answer = None
            if answer is None:
                self._kill()
                return Verdict(
                    Status.INCONCLUSIVE,
                    engine,
                    f"the engine ended or did not answer within {self._seconds:g} seconds",
                    {"limit_seconds": self._seconds},
                )
        return Verdict.from_dict(answer)

    def close(self) -> None:
        """End the process."""
        with self._mu:
            self._kill()

    def _exchange(self, line: bytes) -> dict[str, Any] | None:
        if self._process is None or self._process.poll() is not None:
            self._start()
        process = self._process
        assert process and process.stdin and process.stdout
        deadline = time.monotonic() + self._seconds
        process.stdin.write(line)
        process.stdin.flush()
        data = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return None
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    return None
                data += part
        answer = strict_json.loads(data)
        return answer if isinstance(answer, dict) else None

    def _start(self) -> None:
        environment = {
            k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")}
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        command = [sys.executable, "-m", "qwed_sdk.engine", "--serve", "--lazy"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            start_new_session=True
        )

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    try:
                        pipe.close()
                    except OSError:
                        pass  # unsent data is lost with the process
            self._process = None
