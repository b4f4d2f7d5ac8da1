"""The verification cache."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed_sdk.cache import CacheContext, VerificationCache, exact_fingerprint

CONTEXT = CacheContext(
    provider="openai", model="gpt-4o", policy_version="v1", tenant_id="tenant-alpha", env_fingerprint="e")


@pytest.fixture
def cache(tmp_path: Path) -> VerificationCache:
    return VerificationCache(cache_dir=str(tmp_path))


def change(cache: VerificationCache, sql: str, *values: Any) -> None:
    with sqlite3.connect(cache.path) as db:
        db.execute(sql, values)
    db.close()


@pytest.mark.row("P-019", "P-021", "P-022", "P-026")
def test_a_result_is_found_again_by_another_process(cache: VerificationCache) -> None:
    assert cache.get("Is 2+2=4?", CONTEXT) is None
    cache.set("Is 2+2=4?", {"verified": True, "value": 4}, CONTEXT)
    assert cache.get("  IS\n2+2=4? ", CONTEXT) == {"verified": True, "value": 4}
    program = (
        "import sys; from qwed_sdk.cache import *; c = CacheContext('openai', 'gpt-4o', 'v1', 'tenant-alpha', 'e'); "
        "print(VerificationCache(sys.argv[1]).get('is 2+2=4?', c))"
    )
    run = subprocess.run([sys.executable, "-c", program, str(cache.path.parent)],
        env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "{'value': 4, 'verified': True}"


@pytest.mark.row("P-019")
def test_the_default_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    default = VerificationCache()
    assert default.path.parent == tmp_path / ".qwed" / "cache" and default.ttl == 86400
    default.set("a", {}, CONTEXT)
    assert default.path.exists()


@pytest.mark.row("P-020", "P-025", "P-030")
@pytest.mark.parametrize("field", ["provider", "model", "policy_version", "tenant_id", "env_fingerprint"])
def test_every_field_of_the_context_counts(cache: VerificationCache, field: str) -> None:
    other = replace(CONTEXT, **{field: "another"})
    cache.set("q", {"a": 1}, CONTEXT)
    assert cache.get("q", other) is None
    cache.set("q", {"a": 2}, other)
    assert cache.get("q", CONTEXT) == {"a": 1} and cache.get("q", other) == {"a": 2}
    if field in ("tenant_id", "env_fingerprint"):
        assert cache.get("q", replace(CONTEXT, **{field: None})) is None
    else:
        with pytest.raises(ValueError):
            replace(CONTEXT, **{field: " "})


@pytest.mark.row("P-023")
def test_the_context_is_required(cache: VerificationCache) -> None:
    with pytest.raises(TypeError):
        cache.get("q")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cache.set("q", {})  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cache.get("q", {"provider": "x"})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        CacheContext(provider="x", model="y")  # type: ignore[call-arg]


@pytest.mark.row("P-024", "P-027")
def test_what_makes_a_miss(cache: VerificationCache) -> None:
    cache.set("q", {"verified": True}, CONTEXT)
    other = replace(CONTEXT, provider="evil")
    change(cache, "UPDATE cache_v2 SET context_fingerprint = ?", other.fingerprint())
    assert cache.get("q", CONTEXT) is None and cache.get("q", other) is None
    cache.set("q", {"verified": False}, CONTEXT)
    change(cache, "UPDATE cache_v2 SET result = ?", '{"verified": true}')
    assert cache.get("q", CONTEXT) is None
    cache.set("q", {"verified": True}, CONTEXT)
    change(cache, "UPDATE cache_v2 SET created_at = ?", time.time() - 86401)
    assert cache.get("q", CONTEXT) is None and cache.get_stats().total_entries == 0
    cache.set("q", {"verified": True}, CONTEXT)
    change(cache, "UPDATE cache_v2 SET created_at = ?", time.time() - 86000)
    cache.set("q", {"verified": True}, CONTEXT)  # the age begins anew
    change(cache, "UPDATE cache_v2 SET created_at = created_at - 1000")
    assert cache.get("q", CONTEXT) == {"verified": True}
    change(cache, "CREATE TABLE cache (key TEXT PRIMARY KEY, result TEXT)")
    change(cache, "INSERT INTO cache VALUES (?, ?)", "legacy", '{"verified": true}')
    assert cache.get("legacy", CONTEXT) is None


@pytest.mark.row("P-028")
def test_the_least_recently_accessed_go(cache: VerificationCache) -> None:
    cache.MAX_ENTRIES = 5  # type: ignore[misc]
    assert VerificationCache.MAX_ENTRIES == 1000
    for i in range(5):
        cache.set(f"q{i}", {"i": i}, CONTEXT)
    assert cache.get("q0", CONTEXT) == {"i": 0}
    cache.set("q5", {"i": 5}, CONTEXT)
    assert cache.get("q1", CONTEXT) is None and cache.get("q0", CONTEXT) == {
        "i": 0} and cache.get_stats().total_entries == 5


@pytest.mark.row("P-029")
def test_the_table(cache: VerificationCache) -> None:
    cache.set("q", {}, CONTEXT)
    with sqlite3.connect(cache.path) as db:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'cache_v2'").fetchone()
    assert "PRIMARY KEY (key, context_fingerprint)" in sql


@pytest.mark.row("P-031", "P-032")
def test_statistics_and_clearing(cache: VerificationCache) -> None:
    assert cache.get_stats().hit_rate == 0
    cache.get("q", CONTEXT)
    cache.set("q", {}, CONTEXT)
    cache.get("q", CONTEXT)
    stats = cache.get_stats()
    assert (stats.hits, stats.misses, stats.total_entries, stats.hit_rate) == (
        1, 1, 1, 0.5) and stats.cache_size_bytes > 0
    cache.clear()
    stats = cache.get_stats()
    assert (stats.hits, stats.misses, stats.total_entries) == (0, 0, 0)


@pytest.mark.row("P-033")
def test_the_summary_has_colours_where_colorama_is(
    cache: VerificationCache, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cache.print_stats()
    coloured = capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "colorama", None)
    cache.print_stats()
    plain = capsys.readouterr().out
    assert "\x1b[" in coloured and "\x1b[" not in plain and "hit rate" in plain


def test_damaged_locked_and_unwritable_files_are_misses(tmp_path: Path, cache: VerificationCache) -> None:
    cache.set("q", {"a": 1}, CONTEXT)
    cache.path.write_bytes(b"this is no database" * 100)
    assert cache.get("q", CONTEXT) is None
    cache.set("q", {"a": 2}, CONTEXT)
    assert cache.get("q", CONTEXT) == {"a": 2}
    blocker = sqlite3.connect(cache.path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    assert cache.get("q", CONTEXT) is None and "locked" in (cache.last_error or "")
    waiting = threading.Thread(target=cache.set, args=("q", {"a": 3}, CONTEXT))
    waiting.start()
    blocker.execute("ROLLBACK")
    blocker.close()
    waiting.join()
    assert cache.get("q", CONTEXT) == {"a": 3} and cache.last_error is None
    (tmp_path / "file").write_text("")
    nowhere = VerificationCache(str(tmp_path / "file" / "below"))
    nowhere.set("q", {}, CONTEXT)
    assert nowhere.get("q", CONTEXT) is None and nowhere.last_error
    full = VerificationCache("/dev/full")
    full.set("q", {}, CONTEXT)
    assert full.get("q", CONTEXT) is None and full.get_stats().total_entries == 0


def test_threads_share_a_cache(cache: VerificationCache) -> None:
    def work(n: int) -> None:
        for i in range(10):
            cache.set(f"{n}-{i}", {"n": n}, CONTEXT)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get_stats().total_entries == 40


def test_case_sensitive_inputs_have_a_fingerprint(cache: VerificationCache) -> None:
    a, b = (replace(CONTEXT, env_fingerprint=exact_fingerprint(q)) for q in ("SELECT 'A'", "SELECT 'a'"))
    cache.set("SELECT 'A'", {"x": 1}, a)
    assert cache.get("SELECT 'a'", b) is None and cache.get("SELECT 'A'", a) == {"x": 1}


_WRITER = """
import sys
from qwed_sdk import CacheContext, VerificationCache
cache = VerificationCache(cache_dir=sys.argv[1])
context = CacheContext(provider="p", model="m", policy_version="1")
print("ready", flush=True)
sys.stdin.readline()
for i in range(25):
    cache.set(f"{sys.argv[2]}-{i}", {"writer": sys.argv[2]}, context)
    assert cache.last_error is None, cache.last_error
"""


@pytest.mark.parametrize("content", [b"", b"this is not a database" * 100], ids=["no file", "a damaged file"])
def test_processes_do_not_lose_what_another_stores(cache: VerificationCache, content: bytes) -> None:
    """Issue 26: processes that begin at the same time, with a file to create or to set aside, keep all entries."""
    if content:
        cache.path.parent.mkdir(parents=True, exist_ok=True)
        cache.path.write_bytes(content)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(cache.path.parent), str(n)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": ":".join(sys.path)}) for n in range(6)]
    for writer in writers:
        assert writer.stdout and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait() for writer in writers] == [0] * len(writers)
    context = CacheContext(provider="p", model="m", policy_version="1")
    missing = [(n, i) for n in range(6) for i in range(25) if cache.get(f"{n}-{i}", context) is None]
    assert missing == []
