"""The verification cache: SQLite, bound to the context in which a verdict was reached."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from qwed_new import strict_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

MAX_ENTRIES = 1000
_READ_SECONDS = 2.0  # how long to wait for another process that writes
_WRITE_SECONDS = 60.0
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_SCHEMA = """CREATE TABLE IF NOT EXISTS cache_v2 (
    key TEXT NOT NULL, context_fingerprint TEXT NOT NULL, context TEXT NOT NULL, result TEXT NOT NULL,
    digest TEXT NOT NULL, created_at REAL NOT NULL, accessed INTEGER NOT NULL,
    PRIMARY KEY (key, context_fingerprint))"""

_PROBE = "SELECT key, context_fingerprint, context, result, digest, created_at, accessed FROM cache_v2 LIMIT 1"


@dataclass(frozen=True)
class CacheContext:
    """The context of a cached verdict. A different value of any field is a miss. Blank required fields raise
    ValueError."""

    provider: str
    model: str
    policy_version: str
    tenant_id: str | None = None
    env_fingerprint: str | None = None

    def __post_init__(self) -> None:
        for name in ("provider", "model", "policy_version"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{name} of a cache context is a text that is not empty")
        for name in ("tenant_id", "env_fingerprint"):
            if not isinstance(getattr(self, name), str | None):
                raise ValueError(f"{name} of a cache context is a text or None")

    def canonical(self) -> str:
        """The context as JSON with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    def fingerprint(self) -> str:
        """SHA-256 of the canonical context."""
        return hashlib.sha256(self.canonical().encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class CacheStats:
    """Hits and misses of this object, entries and bytes of the file."""

    hits: int
    misses: int
    total_entries: int
    cache_size_bytes: int

    @property
    def hit_rate(self) -> float:
        """Hits as a fraction of all lookups, 0 without any."""
        total = self.hits + self.misses
        return self.hits / total if total else 0.0


def exact_fingerprint(text: str, base: str | None = None) -> str:
    """An env_fingerprint for engines whose input is case-sensitive: keys are lower-cased, this is not."""
    return hashlib.sha256(f"{base or ''}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


class VerificationCache:
    """Results by query and context in `cache_dir` (default ~/.qwed/cache) for `ttl` seconds (default 24 hours).

    A cache that cannot be read or written is a miss, with the reason in last_error; a damaged file is set aside and a
    new one is begun. Objects may be used from several threads, and files from several processes: an entry that one of
    them stores is not lost, because each waits up to a minute for the others.
    """

    MAX_ENTRIES = MAX_ENTRIES

    def __init__(self, cache_dir: str | None = None, ttl: int = 86400) -> None:
        self._directory = Path(cache_dir).expanduser() if cache_dir else Path.home() / ".qwed" / "cache"
        self.path = self._directory / "verification_cache.db"
        self.ttl = ttl
        self.last_error: str | None = None
        self._hits = self._misses = 0
        self._mu = threading.Lock()

    def get(self, query: str, context: CacheContext) -> dict[str, Any] | None:
        """Return the cached result of a query in a context, or None."""
        key, fingerprint = _key(query), _checked(context).fingerprint()
        found = self._try(lambda db: self._lookup(db, key, fingerprint, context.canonical()))
        with self._mu:
            if found is None:
                self._misses += 1
            else:
                self._hits += 1
        return found

    def set(self, query: str, result: dict[str, Any], context: CacheContext) -> None:
        """Store a result, a dict in JSON's types; the least recently accessed entries beyond MAX_ENTRIES go."""
        key, checked = _key(query), _checked(context)
        text = json.dumps(dict(result), sort_keys=True)
        row = (key, checked.fingerprint(), checked.canonical(), text, _digest(key, checked.fingerprint(), text),
            time.time())
        self._try(lambda db: self._store(db, row), _WRITE_SECONDS)

    def clear(self) -> None:
        """Remove all entries and reset the statistics."""
        self._try(lambda db: db.execute("DELETE FROM cache_v2").rowcount, _WRITE_SECONDS)
        with self._mu:
            self._hits = self._misses = 0

    def get_stats(self) -> CacheStats:
        """The statistics."""
        entries = self._try(lambda db: int(db.execute("SELECT count(*) FROM cache_v2").fetchone()[0])) or 0
        size = self.path.stat().st_size if self.path.exists() else 0
        return CacheStats(self._hits, self._misses, entries, size)

    def print_stats(self) -> None:
        """Print a summary to stdout, in colour if colorama is installed."""
        try:
            import colorama

            bold, green, reset = colorama.Style.BRIGHT, colorama.Fore.GREEN, colorama.Style.RESET_ALL
        except ImportError:
            bold = green = reset = ""
        stats = self.get_stats()
        print(f"{bold}Verification cache{reset}")
        print(f"  hits      {green}{stats.hits}{reset}")
        print(f"  misses    {stats.misses}")
        print(f"  hit rate  {green}{stats.hit_rate:.1%}{reset}")
        print(f"  entries   {stats.total_entries}")
        print(f"  size      {stats.cache_size_bytes} bytes")

    def _lookup(self, db: sqlite3.Connection, key: str, fingerprint: str, canonical: str) -> dict[str, Any] | None:
        sql = (
            "SELECT context, context_fingerprint, result, digest, created_at FROM cache_v2 "
            "WHERE key = ? AND context_fingerprint = ?")
        row = db.execute(sql, (key, fingerprint)).fetchone()
        if row is None:
            return None
        context, stored, text, digest, created = row
        age = time.time() - created if isinstance(created, int | float) else self.ttl + 1
        sound = stored == fingerprint and context == canonical and isinstance(text, str) and digest == _digest(
            key, fingerprint, text)
        if not sound or not 0 <= age <= self.ttl:
            db.execute("DELETE FROM cache_v2 WHERE key = ? AND context_fingerprint = ?", (key, fingerprint))
            return None
        db.execute(
            "UPDATE cache_v2 SET accessed = (SELECT max(accessed) + 1 FROM cache_v2) WHERE key = ? AND "
            "context_fingerprint = ?",
            (key, fingerprint),
        )
        try:
            result = strict_json.loads(text)
        except ValueError:
            return None
        return result if isinstance(result, dict) else None

    def _store(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        db.execute(
            "INSERT OR REPLACE INTO cache_v2 VALUES (?, ?, ?, ?, ?, ?, (SELECT coalesce(max(accessed), 0) + 1 FROM "
            "cache_v2))", row)
        surplus = db.execute("SELECT count(*) FROM cache_v2").fetchone()[0] - self.MAX_ENTRIES
        if surplus > 0:
            oldest = "SELECT rowid FROM cache_v2 ORDER BY accessed LIMIT ?"
            db.execute(f"DELETE FROM cache_v2 WHERE rowid IN ({oldest})", (surplus,))

    def _try(self, work: Callable[[sqlite3.Connection], T], seconds: float = _READ_SECONDS) -> T | None:
        """Do work in one transaction and return its result. If the file does not allow it within seconds, return None
        and set last_error."""
        self.last_error = None
        deadline = time.monotonic() + seconds
        set_aside = False
        while True:
            try:
                with self._open(max(0.0, deadline - time.monotonic())) as db:
                    result = work(db)
                self.last_error = None
                return result
            except sqlite3.DatabaseError as error:
                self.last_error = str(error)
                if _busy(error) and time.monotonic() < deadline:
                    continue
                if set_aside or not _damaged(error) or not self._set_aside(seconds):
                    return None
                set_aside = True
            except OSError as error:
                self.last_error = f"{type(error).__name__}: {error.strerror}"
                return None

    def _set_aside(self, seconds: float) -> bool:
        """Rename a damaged file, unless another process has done so since. Report whether another attempt may succeed.

        Only one process at a time examines the file; otherwise one could rename the file that another has just begun.
        """
        try:
            with open(self.path.with_suffix(".lock"), "w") as lock:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                try:
                    with self._open(seconds) as db:
                        db.execute(_PROBE)
                except sqlite3.DatabaseError as error:
                    if not _damaged(error):
                        return _busy(error)
                    os.replace(self.path, self.path.with_suffix(".damaged"))
                return True
        except OSError:
            return False

    @contextmanager
    def _open(self, seconds: float) -> Iterator[sqlite3.Connection]:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        db = sqlite3.connect(self.path, timeout=seconds, isolation_level="IMMEDIATE")
        try:
            with db:
                db.execute(_SCHEMA)
                yield db
        finally:
            db.close()


def _busy(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def _damaged(error: sqlite3.DatabaseError) -> bool:
    """Report whether an error is because of the content of the file: it is not a database, or has other columns."""
    if not isinstance(error, sqlite3.OperationalError):
        return True
    return any(text in str(error) for text in ("no column", "no such column", "columns but"))


def _checked(context: object) -> CacheContext:
    if not isinstance(context, CacheContext):
        raise TypeError("context is a CacheContext")
    return context


def _key(query: str) -> str:
    if not isinstance(query, str):
        raise TypeError("query is a text")
    return hashlib.sha256(" ".join(query.lower().split()).encode("utf-8", "surrogatepass")).hexdigest()


def _digest(key: str, fingerprint: str, text: str) -> str:
    return hashlib.sha256(f"{key}\0{fingerprint}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()
