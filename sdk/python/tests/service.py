"""The real program `airlock serve`, with tokens that it made, for tests."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "bin" / "airlock"
IMAGES = Path(os.environ.get("AIRLOCK_HOME") or ROOT / ".airlock") / "images"


class Service:
    """A running service: its URL, and verbs of its command line on the same state."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url = home, url

    def airlock(self, *arguments: str) -> str:
        """What a verb prints at a terminal, which verbs need that widen what agents can do."""
        command = [str(PROGRAM), *arguments]
        terminal, keyboard = pty.openpty()
        try:
            return subprocess.run(
                command, env=environment(self.home), cwd=self.home, stdin=keyboard, capture_output=True, text=True,
                timeout=60, check=True, start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)).stdout
        finally:
            os.close(terminal)
            os.close(keyboard)

    def token(self, name: str, *scopes: str) -> str:
        """A new token of the local user."""
        return str(json.loads(self.airlock("tokens", "create", name, "--scope", ",".join(scopes), "--json"))["token"])


def environment(home: Path) -> dict[str, str]:
    """Nothing of the machine's own Airlock."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AIRLOCK_HOME": str(home / "airlock"),
        "AIRLOCK_CONFIG": str(home / "airlock.yaml"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }


@contextmanager
def serving(home: Path, configuration: str = "servers: {}\n") -> Iterator[Service]:
    """Serve on a free port of the loopback interface until the block ends."""
    # The tests are a person and a host at once. The connections of a proxy are not those of a host.
    (home / "airlock.yaml").write_text(configuration + "serve: {trustedProxies: [127.0.0.1]}\n")
    (home / "airlock").mkdir(mode=0o700, exist_ok=True)
    (home / "airlock" / "images").symlink_to(IMAGES)
    command = [str(PROGRAM), "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        command, env=environment(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            url = process.stdout.readline().strip()
            if not url.startswith("http://127.0.0.1:"):
                process.kill()
                raise AssertionError(f"airlock serve printed {url!r}: {process.stderr.read()}")
            yield Service(home, url)
        finally:
            process.terminate()
            process.wait(30)
