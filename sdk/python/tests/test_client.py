"""The clients, the command and the integrations."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

import qwed_sdk
from qwed_sdk import QWEDAsyncClient, QWEDClient, cli
from qwed_sdk.crewai import QWEDVerifiedAgent
from qwed_sdk.langchain import QWEDVerificationCallback
from qwed_sdk.worker import Worker

URL = "http://127.0.0.1:9"
VERIFIED = {"status": "VERIFIED", "engine": "math", "message": "yes", "evidence": {}}


@pytest.fixture(autouse=True)
def no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QWED_BASE_URL", "QWED_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def local() -> Iterator[QWEDClient]:
    with QWEDClient(api_key="qwed_your_key") as client:
        yield client


def served(answer: Any, code: int = 200, seen: list[httpx.Request] | None = None) -> QWEDClient:
    def handle(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        return answer(request) if callable(answer) else httpx.Response(code, json=answer)

    return QWEDClient(api_key="key", base_url=URL, transport=httpx.MockTransport(handle))


@pytest.mark.row("P-001", "P-002", "P-008..012")
def test_the_documents_calls_without_a_service(local: QWEDClient) -> None:
    result = local.verify("Is 2+2=4?")
    assert (result.verified, result.status) == (True, "VERIFIED")
    assert local.verify_math("x**2 + 2*x + 1 = (x+1)**2").verified
    assert local.verify_logic("(AND (GT x 5) (LT y 10))").model["x"] > 5
    vulnerabilities = local.verify_code("eval(input())", language="python").vulnerabilities
    assert [(v.severity, v.message) for v in vulnerabilities] == [("critical", "Dangerous pattern: eval")]
    assert local.verify_sql(
        query="SELECT * FROM users WHERE id = 1", schema_ddl="CREATE TABLE users (id INT, name TEXT)",
        dialect="postgresql").verified
    assert local.verify_fact(
        claim="The company was founded in 2020", context="Acme Corp was established in 2020 in San Francisco.").verified


@pytest.mark.row("P-014..018")
def test_files_consensus_and_batches_without_a_service(local: QWEDClient, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("salary\n60000\n")
    Image.new("RGB", (4, 3)).save(tmp_path / "photo.png")
    assert local.verify_stats(query="The average salary is above 50000", file_path=str(tmp_path / "data.csv")).verified
    result = local.verify_consensus(query="The square root of 144 is 12", mode="high", min_confidence=0.8)
    assert result.verified and result.confidence >= 0.8
    assert local.verify_image(image_path=str(tmp_path / "photo.png"), claim="The image is 4x3").verified
    assert local.verify_image(
        image_path=str(tmp_path / "photo.png"), claim="This image contains a cat").status == "INCONCLUSIVE"
    results = local.verify_batch([{"query": "2+2=4", "type": "math"}, {"query": "x + x", "type": "math"}])
    assert results.summary.success_rate == 0.5 and results.results[1].status == "SIMPLIFIED" and results.results[
        1].is_valid is False


@pytest.mark.row("P-005")
def test_the_asynchronous_client() -> None:
    async def main() -> None:
        async with QWEDAsyncClient(api_key="qwed_...") as client:
            result = await client.verify("2+2=4")
            assert result.verified
            both = await asyncio.gather(client.verify_math("1=1"), client.verify_fact("a@b.example is it", "x"))
            assert [r.status for r in both] == ["VERIFIED", "BLOCKED"]

    asyncio.run(main())


@pytest.mark.row("P-004")
@pytest.mark.parametrize(("translation", "status", "inner"), [
    ("2+2=4", "INCONCLUSIVE", "VERIFIED"), ("2+2=5", "INCONCLUSIVE", "ERROR"), ("gib", "INCONCLUSIVE", "INCONCLUSIVE"),
    ("import os; os.system('id')", "BLOCKED", "BLOCKED"),
])  # fmt: skip
def test_what_a_model_translated_is_never_verified(translation: str, status: str, inner: str) -> None:
    asked: list[str] = []

    def model(text: str) -> str:
        asked.append(text)
        return translation

    async def later(text: str) -> str:
        return model(text)

    async def main() -> Any:
        async with QWEDAsyncClient(api_key="qwed_...", translator=later) as client:
            return await client.verify("Zwei und zwei gibt vier")

    with QWEDClient(api_key="qwed_...", translator=model) as client:
        verdicts = [client.verify("Zwei und zwei gibt vier"), asyncio.run(main())]
        assert client.verify("Is 2+2=4?").verified  # which needs no model
    assert asked == ["Zwei und zwei gibt vier"] * 2
    for verdict in verdicts:
        assert (verdict.status, verdict.evidence["verdict_on_translation"]["status"]) == (status, inner)


@pytest.mark.row("P-004")
def test_a_service_does_not_see_the_translator() -> None:
    def service(request: httpx.Request) -> httpx.Response:
        known = json.loads(request.content)["query"] == "2+2=4"
        return httpx.Response(200, json=VERIFIED if known else {
            "status": "INCONCLUSIVE", "engine": "auto", "message": "no", "evidence": {}, "query_type": "unknown"})

    client = QWEDClient(api_key="k", base_url=URL, transport=httpx.MockTransport(service), translator=lambda _: "2+2=4")
    assert client.verify("x").status == "INCONCLUSIVE" and client.verify("2+2=4").verified
    none = QWEDClient(
        api_key="k", base_url=URL, transport=httpx.MockTransport(service), translator=lambda _: None)  # type: ignore
    assert "no text" in none.verify("x").message


@pytest.mark.row("P-006")
def test_key_and_url_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_API_KEY", "from-environment")
    monkeypatch.setenv("QWED_BASE_URL", URL + "/")
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=VERIFIED)

    client = QWEDClient(transport=httpx.MockTransport(handle))
    assert client.base_url == URL and client.verify("2+2=4").verified
    assert seen[0].headers["Authorization"] == "Bearer from-environment" and seen[
        0].url.path == "/v1/verify/natural_language"
    assert QWEDClient(api_key="argument").api_key == "argument" and QWEDClient(base_url="").base_url == ""
    for bad in ("ftp://x", "http://example.com", "nonsense", "http://"):
        with pytest.raises(ValueError):
            QWEDClient(base_url=bad)


def test_what_the_service_is_sent(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x\n1\n", encoding="utf-8-sig")
    seen: list[httpx.Request] = []
    client = served(VERIFIED, seen=seen)
    client.verify_stats("The average x is 1", str(tmp_path / "data.csv"))
    client.verify_image(str(tmp_path / "data.csv"), "x")
    client.verify_sql("SELECT 1")
    bodies = [json.loads(r.content) for r in seen]
    assert bodies == [{"query": "The average x is 1", "csv_text": "x\n1\n"},
        {"claim": "x", "image_base64": "77u/eAoxCg=="}, {"query": "SELECT 1", "dialect": "postgresql"}]
    assert client.verify_stats("x", str(tmp_path / "none.csv")).status == "INCONCLUSIVE" and len(seen) == 3


@pytest.mark.row("P-013")
def test_personal_data_never_leaves() -> None:
    seen: list[httpx.Request] = []
    client = served(VERIFIED, seen=seen)
    for claim, context in (("His SSN is 123-45-6789", "x"), ("x", "mail a@b.example"), ("x", "4111 1111 1111 1111")):
        result = client.verify_fact(claim, context)
        assert result.status == "BLOCKED" and not result.verified and result.pii_detected
    assert seen == [] and client.verify_fact("The company was founded in 2020", "It was.").verified and len(seen) == 1


@pytest.mark.parametrize(
    ("answer", "code", "error"),
    [
        ({"error": "no"}, 401, "QWEDAuthenticationError"), ({}, 403, "QWEDAuthenticationError"),
        ({"error": {"message": "broken"}}, 500, "QWEDResponseError"),
        ({"verified": True}, 200, "QWEDResponseError"), ([], 200, "QWEDResponseError"),
        ({"status": "GREAT"}, 200, "QWEDResponseError"), ("VERIFIED", 200, "QWEDResponseError"),
        (lambda r: httpx.Response(200, text="<html>"), 200, "QWEDResponseError"),
        (lambda r: httpx.Response(200), 200, "QWEDResponseError"),
        (lambda r: httpx.Response(302), 200, "QWEDResponseError"),
    ],
)  # fmt: skip
def test_errors_of_the_service_are_clear(answer: Any, code: int, error: str) -> None:
    with pytest.raises(getattr(qwed_sdk, error)) as raised:
        served(answer, code).verify("2+2=4")
    assert raised.value.status == "INCONCLUSIVE" and raised.value.message


def refusing(times: int, after: str | None, seen: list[float]) -> Callable[[httpx.Request], httpx.Response]:
    def handle(_: httpx.Request) -> httpx.Response:
        seen.append(1.0)
        if len(seen) > times:
            return httpx.Response(200, json=VERIFIED)
        headers = {"Retry-After": after} if after else {}
        return httpx.Response(429, json={"error": {"message": "slow down"}}, headers=headers)

    return handle


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of both clients, which do not take time here."""
    taken: list[float] = []

    async def pause(seconds: float) -> None:
        taken.append(seconds)

    monkeypatch.setattr("qwed_sdk.client.time.sleep", taken.append)
    monkeypatch.setattr("qwed_sdk.async_client.asyncio.sleep", pause)
    return taken


def ask(handler: Callable[[httpx.Request], httpx.Response], awaited: bool) -> qwed_sdk.Verdict:
    if not awaited:
        return QWEDClient("key", URL, transport=httpx.MockTransport(handler)).verify("2+2=4")

    async def verify() -> qwed_sdk.Verdict:
        async with QWEDAsyncClient("key", URL, transport=httpx.MockTransport(handler)) as client:
            return await client.verify("2+2=4")

    return asyncio.run(verify())


@pytest.mark.parametrize("awaited", [False, True])
def test_a_refused_request_is_repeated_with_growing_pauses(pauses: list[float], awaited: bool) -> None:
    """Issue 26: 429 is repeated after Retry-After at least, and the pauses double."""
    seen: list[float] = []
    assert ask(refusing(3, None, seen), awaited).verified and len(seen) == 4
    assert len(pauses) == 3 and all(0.25 * 2**n <= p <= 0.32 * 2**n for n, p in enumerate(pauses))
    pauses.clear()
    assert ask(refusing(1, "7", []), awaited).verified and 7 <= pauses[0] <= 9


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(
    ("after", "requests", "least", "most"),
    [
        ("1", 5, 1, 1), ("3600", 1, 3600, 3600), ("Wed, 21 Oct 2099 07:28:00 GMT", 1, 1e9, 4e9),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 5, 0, 0), ("soon", 5, None, None), ("-1", 5, None, None),
        ("9" * 400, 5, None, None), ("1.5", 5, None, None), ("\u0663", 5, None, None), (None, 5, None, None),
    ],
)  # fmt: skip
def test_what_stays_refused_has_retry_after(
    pauses: list[float], awaited: bool, after: str | None, requests: int, least: float | None, most: float | None
) -> None:
    """Issue 26: the exception has the seconds of Retry-After, and a request is not repeated after its timeout."""
    seen: list[float] = []
    raw = after.encode() if after else after
    handler = refusing(99, raw, seen)  # type: ignore[arg-type]
    with pytest.raises(qwed_sdk.QWEDRateLimitError) as raised:
        ask(handler, awaited)
    got = raised.value.retry_after
    assert len(seen) == requests and raised.value.code == 429 and "slow down" in raised.value.message
    assert got is None if least is None else got is not None and least <= got <= most


def test_the_fields_of_results_are_typed(local: QWEDClient) -> None:
    """Issue 26: what Verdict and the objects in it declare is there, with the declared names."""
    kinds = {
        "vulnerabilities": local.verify_code("eval(input())").vulnerabilities[0],
        "summary": local.verify_batch([{"query": "1+1=2", "type": "math"}]).summary,
        "results": local.verify_batch([{"query": "1+1=2", "type": "math"}]).results[0],
    }
    for name, value in kinds.items():
        assert name in qwed_sdk.Verdict.__annotations__
        for field in type(value).__annotations__:
            assert getattr(value, field) == value[field], (name, field)
    verdict = local.verify_logic("(GT x 5)")
    assert isinstance(verdict.model, dict) and verdict.status == "VERIFIED" and verdict.is_valid is True


def test_the_command_has_a_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"qwed {qwed_sdk.__version__} (airlock-verify)\n"


def test_a_verdict_is_verified_by_its_status_alone() -> None:
    assert served({"status": "INCONCLUSIVE", "verified": True}).verify("x").verified is False


def test_a_service_that_is_away_is_said_and_the_next_call_works() -> None:
    answers: list[Callable[[], httpx.Response]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        return answers.pop(0)()

    def away() -> httpx.Response:
        raise httpx.ConnectError("refused")

    def slow() -> httpx.Response:
        raise httpx.ReadTimeout("slow")

    answers += [away, slow, lambda: httpx.Response(200, json=VERIFIED)]
    client = QWEDClient(base_url=URL, transport=httpx.MockTransport(handle))
    for _ in range(2):
        with pytest.raises(qwed_sdk.QWEDConnectionError):
            client.verify("2+2=4")
    assert client.verify("2+2=4").verified


def test_an_engine_that_hangs_or_ends_is_inconclusive_and_the_next_call_works() -> None:
    worker = Worker(seconds=20)
    assert worker.ask("math", {"expression": "1=1"}).verified
    assert worker._process is not None
    worker._process.kill()
    worker._process.wait()
    assert worker.ask("math", {"expression": "1=1"}).verified
    worker._process.send_signal(signal.SIGSTOP)
    worker._seconds = 0.1
    assert worker.ask("math", {"expression": "1=1"}).status == "INCONCLUSIVE"
    worker._seconds = 20
    assert worker.ask("math", {"expression": "1=1"}).verified and worker.ask(
        "math", {"expression": {1}}).status == "UNKNOWN"
    worker.close()


def test_agents_need_a_service() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        answers = {
            "activity": {"activity": [{"action_type": "x"}]}, "budget": {"cost": {}},
            "actions": {"decision": "APPROVED"}, "read": {"approved": True}}
        return httpx.Response(200, json=answers.get(request.url.path.rsplit("/", 1)[-1], {"agent_id": "agent_1"}))

    client = served(handle, seen=seen)
    assert client.register_agent(name="A", type="supervised", principal_id="u")["agent_id"] == "agent_1"
    assert client.verify_action("agent_1", {"type": "x"}, {"conversation_id": "c", "step_number": 1})[
        "decision"] == "APPROVED"
    assert client.get_agent_activity("agent_1", limit=10) == [{"action_type": "x"}] and client.get_agent_budget(
        "agent_1") == {"cost": {}}
    assert client.verify_tool_call("a/../b", "read")["approved"]
    with pytest.raises(qwed_sdk.QWEDServiceRequired):
        QWEDClient().get_agent_budget("agent_1")


@pytest.mark.row("P-034..037")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script.py").write_text("import os\nos.system('id')\n")
    (tmp_path / "good.py").write_text("print(1)\n")
    (tmp_path / "queries.json").write_text('[{"query": "2+2=4", "type": "math"}, {"query": "2+2=5", "type": "math"}]')
    (tmp_path / "good.json").write_text('{"items": [{"query": "2+2=4", "type": "math"}]}')
    (tmp_path / "bad.json").write_text("{")
    for arguments, code, text in (
        (["verify", "2+2=4"], 0, "VERIFIED: "), (["verify", "2+2=5"], 1, "ERROR: "),
        (["verify-logic", "(AND (GT x 5) (LT y 10))"], 0, "model: x = 6"),
        (["verify-code", "-f", str(tmp_path / "script.py")], 1, "line 2: critical: Dangerous pattern: os.system"),
        (["verify-code", "-f", str(tmp_path / "good.py")], 0, "VERIFIED: "),
        (["batch", "-f", str(tmp_path / "queries.json")], 1, "1 of 2 items"),
        (["batch", "-f", str(tmp_path / "good.json")], 0, "1 of 1 items"),
        (["batch", "-f", str(tmp_path / "bad.json")], 2, ""), (["verify-code", "-f", str(tmp_path / "none.py")], 2, ""),
    ):  # fmt: skip
        assert cli.main(arguments) == code, arguments
        assert text in capsys.readouterr().out, arguments
    assert cli.main(["verify", "2+2=4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "VERIFIED"
    with pytest.raises(SystemExit) as usage:
        cli.main([])
    assert usage.value.code == 2


@pytest.mark.row("A-062", "A-063")
def test_the_integrations_construct_without_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    callback = QWEDVerificationCallback(agent_id="agent_abc123")
    assert callback.check("2+2=4") is not None and callback.verdicts[0].verified
    callback.client.close()
    agent = QWEDVerifiedAgent(role="Analyst", goal="Analyze data", agent_id="agent_abc123")
    assert agent.verify_output("2+2=5").status == "ERROR"
    agent.client.close()
    monkeypatch.setitem(sys.modules, "crewai", None)
    with pytest.raises(ImportError):
        _ = agent.agent


@pytest.mark.row("A-062")
def test_langchain_asks_before_a_tool_runs() -> None:
    tools = pytest.importorskip("langchain_core.tools")
    ran: list[str] = []

    def read(path: str) -> str:
        """Reads."""
        ran.append(path)
        return path

    tool = tools.StructuredTool.from_function(read, name="read")
    for approved in (False, True):
        callback = QWEDVerificationCallback(
            agent_id="agent_abc123", client=served({"approved": approved, "blocked_reason": "not allowlisted"}))
        if approved:
            assert tool.invoke({"path": "x"}, config={"callbacks": [callback]}) == "x"
        else:
            with pytest.raises(qwed_sdk.QWEDBlockedError, match="not allowlisted"):
                tool.invoke({"path": "x"}, config={"callbacks": [callback]})
    assert ran == ["x"]
