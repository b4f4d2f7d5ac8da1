"""The clients against the real `airlock serve`: agents, tokens, decisions, and the same claims there and here."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service import IMAGES, PROGRAM, Service, serving

from qwed_sdk import QWEDAsyncClient, QWEDAuthenticationError, QWEDClient, QWEDResponseError
from qwed_sdk.langchain import QWEDVerificationCallback

pytestmark = pytest.mark.skipif(
    not (PROGRAM.exists() and (IMAGES / "python.lock").exists()),
    reason="needs bin/airlock and its images: make images")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def key(service: Service) -> str:
    return service.token("sdk", "agents", "run")


class Waiting:
    """The methods of QWEDAsyncClient without await, so that one test is for both clients."""

    def __init__(self, api_key: str | None, base_url: str) -> None:
        self._client = QWEDAsyncClient(api_key=api_key, base_url=base_url)
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._loop.run_until_complete(getattr(self._client, name)(*args, **kwargs))

        return call

    def close(self) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


@pytest.fixture(params=[QWEDClient, Waiting], ids=["sync", "async"])
def connect(request: pytest.FixtureRequest, service: Service) -> Iterator[Any]:
    made: list[Any] = []

    def client(api_key: str | None) -> Any:
        made.append(request.param(api_key=api_key, base_url=service.url))
        return made[-1]

    yield client
    for each in made:
        each.close()


def context(step: int, conversation: str = "conv_1") -> dict[str, Any]:
    return {"conversation_id": conversation, "step_number": step, "user_intent": "test"}


READ = {"type": "database_read", "query": "SELECT 1"}


@pytest.mark.row("A-001", "A-006..008", "A-010..011", "A-052", "A-055")
def test_an_agent_is_registered_and_asks(connect: Any, key: str) -> None:
    agent = connect(key).register_agent(
        name="DataAnalyst",
        type="supervised",
        permissions={"allowed_engines": ["math", "logic", "sql"], "blocked_tools": ["execute_code"]},
        budget={"max_daily_cost_usd": 50, "max_requests_per_hour": 100},
    )
    assert agent["agent_id"].startswith("agent_") and agent["agent_token"].startswith("qwed_agent_") and agent[
        "principal_id"] == agent["owner"]
    mine, client = agent["agent_id"], connect(agent["agent_token"])
    assert client.verify_action(agent_id=mine, action=READ, context=context(1))["decision"] == "APPROVED"
    again = client.verify_action(agent_id=mine, action=READ, context=context(1))
    assert again["decision"] == "DENIED" and again["error"]["code"] == "QWED-AGENT-LOOP-002"
    pending = client.verify_action(agent_id=mine, action={"type": "send_email"}, context=context(2))
    assert pending["decision"] == "PENDING" and pending["approval_id"]
    denied = client.verify_action(agent_id=mine, action={"type": "execute_code", "code": "1"}, context=context(3))
    assert denied["decision"] == "DENIED" and denied["error"]["message"]
    budget = client.get_agent_budget(mine)
    assert budget["cost"] == {"max_daily_usd": 50, "current_daily_usd": 0} and budget["requests"]["max_per_hour"] == 100
    activity = client.get_agent_activity(mine, limit=2)
    assert [(a["action_type"], a["decision"]) for a in activity] == [("execute_code", "DENIED"),
        ("send_email", "PENDING")] and activity[0]["timestamp"]
    assert len(client.get_agent_activity(mine)) == 4


@pytest.mark.row("A-011", "A-053")
def test_a_budget_ends(connect: Any, key: str) -> None:
    agent = connect(key).register_agent("Small", budget={"max_requests_per_hour": 1})
    client = connect(agent["agent_token"])
    assert client.verify_action(agent["agent_id"], READ, context(1))["decision"] == "APPROVED"
    over = client.verify_action(agent["agent_id"], READ, context(2))
    assert over["decision"] == "BUDGET_EXCEEDED" and over["error"]["code"] == "QWED-AGENT-BUDGET-002"


@pytest.mark.row("A-042..044", "A-047")
def test_tool_calls(connect: Any, key: str) -> None:
    agent = connect(key).register_agent("Tools", permissions={"allowed_tools": ["fetch_report"]})
    client = connect(agent["agent_token"])
    assert client.verify_tool_call(agent["agent_id"], "fetch_report", {"x": 1})["approved"] is True
    unknown = client.verify_tool_call(agent["agent_id"], "my_custom_tool", {"x": "database"})
    assert unknown == {
        "approved": False,
        "blocked_reason": "Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.2)",
        "risk_score": 0.2}
    assert client.verify_tool_call(agent["agent_id"], "../tokens?x")["approved"] is False
    assert "manual approval" in client.verify_tool_call(agent["agent_id"], "drop_table")["blocked_reason"]


@pytest.mark.row("A-009")
def test_tokens_that_are_wrong_of_others_or_rotated(connect: Any, key: str, service: Service) -> None:
    owner = connect(key)
    first, second = owner.register_agent("First"), owner.register_agent("Second")
    for wrong in ("qwed_agent_" + "0" * 64, first["agent_token"][:-1], key + "x", ""):
        with pytest.raises(QWEDAuthenticationError) as refused:
            connect(wrong).get_agent_budget(first["agent_id"])
        assert refused.value.code == 401
    with pytest.raises(QWEDResponseError, match="no such agent"):
        connect(first["agent_token"]).get_agent_budget(second["agent_id"])
    with pytest.raises(QWEDAuthenticationError, match="does not allow") as refused:
        connect(first["agent_token"]).register_agent("Third")
    assert refused.value.code == 403
    rotated = httpx.post(
        f"{service.url}/v1/agents/{first['agent_id']}/token", headers={"Authorization": f"Bearer {key}"}).json()[
            "agent_token"]
    with pytest.raises(QWEDAuthenticationError):
        connect(first["agent_token"]).get_agent_budget(first["agent_id"])
    assert connect(rotated).get_agent_budget(first["agent_id"])["requests"]


def test_a_revoked_token_is_worthless_at_once(connect: Any, service: Service) -> None:
    made = json.loads(service.airlock("tokens", "create", "short", "--scope", "agents", "--json"))
    client = connect(made["token"])
    agent = client.register_agent("Before")
    service.airlock("tokens", "revoke", made["token_id"])
    with pytest.raises(QWEDAuthenticationError):
        client.get_agent_budget(agent["agent_id"])


def test_mistakes_come_back_in_words(connect: Any, key: str) -> None:
    client = connect(key)
    for mistake in ({"type": "root"}, {"budget": {"nope": 1}}, {"permissions": {"allowed_engines": "math"}}):
        with pytest.raises(QWEDResponseError) as refused:
            client.register_agent("x", **mistake)
        assert refused.value.code == 422 and len(str(refused.value)) > 40
    with pytest.raises(QWEDResponseError, match="limit"):
        client.get_agent_activity(client.register_agent("x")["agent_id"], limit=0)


def test_what_a_person_refuses_stays_refused(key: str, service: Service) -> None:
    agent = QWEDClient(key, service.url).register_agent("Mailer")
    client = QWEDClient(agent["agent_token"], service.url)
    mail, at = {"type": "send_email", "target": "ann@example.org"}, context(1)
    pending = client.verify_action(agent["agent_id"], mail, at)
    assert pending["decision"] == "PENDING"
    service.airlock("approvals", "deny", pending["approval_id"])
    denied = client.verify_action(agent["agent_id"], mail, at)
    while denied["decision"] == "PENDING":  # the answer is stored after the command that gives it has ended
        denied = client.verify_action(agent["agent_id"], mail, at)
    assert denied["decision"] == "DENIED" and denied["error"]["message"]


@pytest.mark.row("A-062")
def test_the_langchain_callback_asks_the_service(key: str, service: Service) -> None:
    tools = pytest.importorskip("langchain_core.tools")

    @tools.tool
    def fetch_report(name: str) -> str:
        """Fetch a report."""
        return f"report {name}"

    for permissions, runs in (({"allowed_tools": ["fetch_report"]}, True), ({}, False)):
        agent = QWEDClient(key, service.url).register_agent("Chain", permissions=permissions)
        callback = QWEDVerificationCallback(
            agent_id=agent["agent_id"], client=QWEDClient(agent["agent_token"], service.url))
        if runs:
            assert fetch_report.invoke({"name": "x"}, config={"callbacks": [callback]}) == "report x"
        else:
            with pytest.raises(Exception, match="requires explicit allowlisting"):
                fetch_report.invoke({"name": "x"}, config={"callbacks": [callback]})


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        return {n: list(inspect.signature(f).parameters) for n,
            f in vars(kind).items() if callable(f) and not n.startswith("_")}

    assert methods(QWEDClient) == methods(QWEDAsyncClient)


# Claims whose verdict is the same by HTTP and here.
CLAIMS = [
    ("verify", {"query": "Is 2+2=4?"}), ("verify", {"query": "What is 15% of 200?"}),
    ("verify", {"query": "The sky is blue"}), ("verify_math", {"expression": "x**2 + 2*x + 1 = (x+1)**2"}),
    ("verify_math", {"expression": "2+2=5"}), ("verify_math", {"expression": "9**9**9**9 = 1"}),
    ("verify_logic", {"query": "(AND (GT x 5) (LT x 3))"}),
    ("verify_code", {"code": "eval('1')", "language": "python"}),
    ("verify_sql",
        {"query": "SELECT * FROM users WHERE id = 1", "schema_ddl": "CREATE TABLE users (id INT, name TEXT)",
            "dialect": "postgresql"}), ("verify_sql", {"query": "DROP TABLE users"}),
    ("verify_fact",
        {"claim": "The company was founded in 2020", "context": "Acme Corp was established in 2020 in San Francisco."}),
        ("verify_consensus", {"query": "The square root of 144 is 12", "mode": "high"}),
    ("verify_batch", {"items": [{"query": "2+2=4", "type": "math"}, {"query": "x + x", "type": "math"}]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def verifying(service: Service, key: str) -> str:
    """A key for /v1/verify."""
    paths = httpx.get(f"{service.url}/v1/openapi.json", headers={"Authorization": f"Bearer {key}"}).json()["paths"]
    if "/v1/verify/math" not in paths:
        pytest.skip("this service has no /v1/verify")
    return service.token("verifier", "run", "agents")


@pytest.mark.row("P-007..011", "P-015", "P-017")
@pytest.mark.parametrize(("method", "arguments"), CLAIMS, ids=lambda v: v if isinstance(v, str) else json.dumps(v)[:40])
def test_verdicts_are_the_same_there_and_here(
    method: str, arguments: dict[str, Any], service: Service, verifying: str) -> None:
    with QWEDClient(verifying, service.url) as there, QWEDClient(base_url="") as here:
        remote, local = getattr(there, method)(**arguments), getattr(here, method)(**arguments)
    assert (remote["status"], remote["verified"], remote["message"]) == (
        local["status"], local["verified"], local["message"])
    assert remote["evidence"] == local["evidence"]


@pytest.mark.row("P-014", "P-016")
def test_files_are_sent_by_the_client(tmp_path: Path, service: Service, verifying: str) -> None:
    table, image = tmp_path / "data.csv", tmp_path / "photo.png"
    table.write_text("salary\n60000\n50000\n")
    pillow = pytest.importorskip("PIL.Image")
    pillow.new("RGB", (40, 30)).save(image)
    with QWEDClient(verifying, service.url) as client:
        assert client.verify_stats("The average salary is above 50000", str(table)).verified
        assert client.verify_image(str(image), "The image is 40x30 pixels").verified
