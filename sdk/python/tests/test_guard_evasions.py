"""Guards against spellings that evade them, and against alarms that are false (issue 26.6, 26.12)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qwed_legal import CitationGuard, ProvenanceGuard
from qwed_mcp.security import SkillProvenanceGuard
from qwed_mcp.security.skills import UNTRUSTED_REGISTRIES
from qwed_sdk.guards import ConfigGuard, MCPPoisonGuard, SovereigntyGuard

SECRETS: list[Any] = [
    *({"url": url} for url in (
        "postgres://user:hunter2@db/x", "postgresql+psycopg://u:p%40ss@h:5432/d", "mysql://root:123456@localhost",
        "redis://:secret@cache:6379/0",
        "mongodb+srv://app:p4ss@cluster0.x.net/db", "amqp://guest:guest@mq", "https://user:a:b@example.com",
        "jdbc:mysql://h/d?user=u&password=abc123",
        "jdbc:postgresql://u:pw123@h/d", "Server=db;Database=x;User Id=sa;Password=abc123;",
        "Server=db;Uid=sa;Pwd=1234;", "host=db user=app password=hunter2 dbname=x",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abcd1234==;",
        "Endpoint=sb://x/;SharedAccessKey=abcdefgh", "FTP://Admin:Pass123@files",
        "data source=x;PASSWORD = 'abc 1';", "sftp://u:p@ss@h", "smtp://mail:12345678@smtp.example.com:587",
        "ｐostgres://user:hunter2@db/x",
    )),
    *({key: "12345678"}
        for key in (
            "password", "db_password", "dbPassword", "PASSWORD", "pwd", "passphrase", "secret", "ｐａｓｓｗｏｒｄ",
            "pаssword", "pass\u200bword", "api_key", "user.password", "admin-password", "passcode")),
    *({key: 12345678} for key in ("password", "db_password", "secret", "pin", "passcode")), {"password": 1234},
    {"password": -98765}, {"password": 3.14159},
    {"a": [{"b": {"password": 424242}}]}, {"password": ["123456"]}, {"password": "abc"}, {"password_prod": "hunter22"},
    {"password1": "hunter22"},
    {"password": {"value": "hunter22"}}, {"args": ["--password", "hunter2"]},
    {"args": ["run", "--api-key", "abcd1234"]},
    {"headers": {"Authorization": "Bearer abcdef123456"}}, {"secretKey": "abc123"}, {"passwort": "geheim1"},
    {"contraseña": "secreta1"}, {"mot_de_passe": "secret12"}, {"client_secret": 123456},
    {"otp_seed": "JBSWY3DPEHPK3PXP"}, {"run": "curl -u admin:hunter2 https://h"},
    {"run": "mysql -u root -pHunter2 db"}, {"run": "sshpass -p hunter2 ssh h"},
    {"npmrc": "//registry.npmjs.org/:_authToken=abcdef"},
    "DB_URL=postgres://u:hunter2@h/x", "x=1; password=hunter2", "export PASSWORD=hunter2",
]  # fmt: skip
HARMLESS: list[Any] = [
    {"password_policy": "strong"}, {"passwordPolicy": {"min_length": 12, "rotation_days": 90}},
    {"password_min_length": 12}, {"password_max_age_days": "90"}, {"token_limit": 4096},
    {"max_tokens": 100000}, {"tokens_per_minute": 90000}, {"password_reset_url": "https://example.com/reset"},
    {"auth_timeout": 3000}, {"secret_name": "prod-db"}, {"password_field": "pw_hash"},
    {"token_type": "bearer"}, {"auth_method": "oauth2"}, {"password": "${DB_PASSWORD}"},
    {"url": "postgres://user:${PW}@db/x"}, {"url": "postgres://user:<password>@db/x"}, {"password": True},
    {"url": "https://example.com/a:b@c"}, {"url": "https://example.com?x=1&page=2"}, {"port": 5432},
    {"require_password": True}, {"password_hint": "the usual one"}, {"use_token": 1}, {"num_tokens": 123456},
    {"password_required": "always"}, {"password_strength": "high"}, {"passwordRules": "8 characters"},
    {"secret_provider": "vault"}, {"credential_store": "keychain"}, {"api_key_header": "X-Api-Key"},
    {"url": "postgres://db.internal:5432/app"}, {"email": "mailto:ada@example.com"}, {"token_expiry": "3600"},
    {"args": ["--password-file", "/run/x"]}, {"args": ["--token", "$TOKEN"]}, {"args": ["--port", "8080"]},
    {"run": "mysql -u root -p db"}, {"run": "curl -u $USER:$PW https://h"}, {"run": "mkdir -p hunter2"},
    {"text": "Token required"}, {"text": "bearer authentication"}, {"auth": "Bearer"}, {"password": "%(pw)s"},
    {"usage": "run with --password PASSWORD"}, {"header": "Authorization: Bearer <token>"},
    {"query": "a=1;b=2"}, {"api_key_env": "OPENAI_KEY_NAME"},
]  # fmt: skip


@pytest.mark.row("Q-068", "Q-080")
@pytest.mark.parametrize("config", SECRETS, ids=str)
def test_secrets_are_found_however_they_are_written(config: Any) -> None:
    answer = ConfigGuard().verify_config_safety(config)
    assert not answer["verified"] and answer["violations"]


@pytest.mark.parametrize("config", HARMLESS, ids=str)
def test_settings_about_secrets_are_not_secrets(config: Any) -> None:
    answer = ConfigGuard().verify_config_safety(config)
    assert answer["verified"], answer


MANIFEST = {
    "name": "a", "version": "1", "source_url": "https://github.com/a/b", "digest": "sha256:" + "a" * 64,
    "download_count": 247}
SPELLINGS = (
    lambda h: h.upper(),
    lambda h: "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in h),
    lambda h: h.replace(".", "。"),
    lambda h: h.replace(".", "．"),
    lambda h: h.replace(".", "%2e"),
    lambda h: h[0] + "\u200b" + h[1:],
    lambda h: h[0] + "\u00ad" + h[1:],
    lambda h: h.replace("o", "о").replace("a", "а").replace("e", "е").replace("i", "і"),
    lambda h: f"evil@{h}",
    lambda h: f"https://{h}:443/x",
    lambda h: f"//{h}",
    lambda h: f"{h}.",
    lambda h: f"api.{h}",
    lambda h: f"{h}\\x",
    lambda h: f" {h}/skills ",
    lambda h: f"{h}?x=1",
    lambda h: f"{h}#x",
    lambda h: f"https:\\\\{h}\\x",
    lambda h: f"{h}.mirror.net",
    lambda h: h.replace(".", "-mirror."),
    lambda h: f"{h}@github.com",
    lambda h: f"https://proxy.example/{h}",
    lambda h: f"https://cdn.example.com/?u={h}",
    lambda h: h.rpartition(".")[0],
    lambda h: h.rpartition(".")[0] + ".org",
    lambda h: h.replace("l", "1").replace("o", "0", 1) if "l" in h or "o" in h else h,
    lambda h: h[:3] + "-" + h[3:],
    lambda h: "".join(chr(0x1D41A + ord(c) - 97) if c.isalpha() else c for c in h),
)


@pytest.mark.row("Q-100")
@pytest.mark.parametrize("host", sorted(UNTRUSTED_REGISTRIES))
def test_registries_are_known_in_every_spelling(host: str) -> None:
    for spell in SPELLINGS:
        answer = SkillProvenanceGuard().verify_skill(manifest={**MANIFEST, "registry": spell(host)})
        assert not answer["verified"] and answer["risk_level"] == "high", spell(host)


@pytest.mark.row("Q-104")
@pytest.mark.parametrize("text", ["ｅｖａｌ('x')", "eva\u200bl('x')", "еval('x')", "os．system('x')", "𝐞𝐱𝐞𝐜('x')"])
def test_patterns_are_found_in_look_alikes(text: str) -> None:
    assert not SkillProvenanceGuard().verify_skill(manifest={**MANIFEST, "registry": "github.com", "script": text})[
        "verified"]


def test_other_registries_pass() -> None:
    for registry in (
        "github.com", "PyPI", "https://registry.npmjs.org", "registry.example.com:8443", "internal-registry",
        "My Registry", "crates.io", "hub.docker.com", "huggingface.co", "skills.example.org", "agents.internal"):
        assert SkillProvenanceGuard().verify_skill(manifest={**MANIFEST, "registry": registry})["verified"], registry


DENIED = """This memo was not AI-generated.
No part of this document was AI-generated.
AI-generated content was not used.
AI-generated: no
AI-generated? No.
Was this AI-generated? It was written by our team.
This is not, in any way, AI-generated.
This text is free of AI-generated content.
It is false that this text is AI-generated.
It is not true that this was generated by AI.
We deny that this memo was generated by AI.
This was written by people rather than generated by AI.
Unlike AI-generated texts, this one was written by lawyers.
None of it, not one word, was AI-generated.
If this were AI-generated, we would disclose it.
This contains zero AI-generated sentences.
Nothing here is machine-generated.
This was never written by an AI.
This wasn't drafted by a machine.
This isn't AI-generated.
This isn’t AI-generated.
This is n\u200bot AI-generated.
This is nоt AI-generated.
Neither the memo nor its annex was generated by AI.
AI-generated text is prohibited in our filings.
We never submit AI-generated memos.
The memo is anything but AI-generated.
Whether this was AI-generated is unknown.
AI-generated: false.
AI-generated content: none
This text contains 0% AI-generated content.
Without AI-generated text, this memo took a week.
This would be AI-generated in other firms.
We avoid AI-generated content.
The absence of AI-generated content is certified.
The memo says that it was AI-generated. Not true.
Some people think this is AI-generated; they are mistaken.
"AI-generated" is a term defined below.""".split("\n")  # fmt: skip
DISCLOSED = """This AI-generated memo reviews the indemnification terms.
This contract summary was AI-generated.
This document is AI-generated and does not constitute legal advice.
AI-generated; not reviewed by a lawyer.
Not legal advice. This text was generated by AI.
Generated by an AI.
This text was written with the help of AI, and no lawyer has checked it.
No warranty is given. Produced using a large language model.
AI-generated content follows.
The following was drafted by AI but it is not final.
Please note: this summary was machine-generated.
AI-generated: yes
This memo was prepared using artificial intelligence.
(AI-generated) Terms of the lease do not include parking.""".split("\n")


@pytest.mark.row("Q-028")
@pytest.mark.parametrize("content", DENIED)
def test_denials_are_not_disclosures(content: str) -> None:
    assert "disclosure_present" in _provenance(content)["checks_failed"]


@pytest.mark.parametrize("content", DISCLOSED)
def test_disclosures_are_found(content: str) -> None:
    assert "disclosure_present" in _provenance(content)["checks_passed"]


def _provenance(content: str) -> dict[str, Any]:
    guard = ProvenanceGuard(require_disclosure=True)
    record = guard.generate_provenance(content, "m")
    return guard.verify_provenance(
        content, {k: getattr(record, k) for k in ("content_hash", "model_id", "generation_timestamp")})


@pytest.mark.row("Q-062", "Q-076")
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("99 U.S.C. § 1", "ERROR"), ("0 U.S.C. § 1", "ERROR"), ("53 U.S.C. § 1", "ERROR"), ("55 U.S.C. § 101", "ERROR"),
        ("99 U.S.C.", "ERROR"), ("42 U.S.C.", "ERROR"), ("51 C.F.R. § 1", "ERROR"),
        ("35 C.F.R. § 1", "ERROR"), ("999 C.F.R. § 240", "ERROR"), ("42 U.S.C. § 1983", "VERIFIED"),
        ("54 U.S.C. § 100101", "VERIFIED"), ("17 C.F.R. § 240.10b-5", "VERIFIED"),
        ("See 42 U.S.C. § 1983.", "VERIFIED"),
        ("Brown v. Board of Education, 347 U.S. 483 (1954)", "VERIFIED"),
        ("See Brown v. Board of Education, 347 U.S. 483 (1954).", "VERIFIED"),
        ("Miranda v. Arizona, 384 U.S. 436 (1966) held that taxes are void", "INCONCLUSIVE"),
        ("42 U.S.C. § 1983 abolishes all taxes", "INCONCLUSIVE"),
        ("As Brown v. Board of Education, 347 U.S. 483 (1954), established, contracts need no consideration",
            "INCONCLUSIVE"),
        ("Taxes were abolished in 26 U.S.C. § 1", "INCONCLUSIVE"), ("26 U.S.C. § 1 was repealed", "INCONCLUSIVE"),
    ],
)  # fmt: skip
def test_citations_are_judged_for_their_form_only(text: str, status: str) -> None:
    verdict = CitationGuard().verify(text)
    assert verdict.status == status, verdict
    assert status != "VERIFIED" or "not checked" in verdict.message
    assert status != "INCONCLUSIVE" or (verdict.valid and verdict.evidence["not_checked"])


CITATIONS = [
    tuple(line.split(" ", 1)) for line in
    (Path(__file__).parent / "programs" / "citations.txt").read_text().splitlines() if not line.startswith("#")]


@pytest.mark.row("Q-062", "Q-076")
@pytest.mark.parametrize(("status", "text"), CITATIONS)
def test_forms_of_citations(status: str, text: str) -> None:
    assert CitationGuard().verify(text).status == status, CitationGuard().verify(text)


def test_a_section_keeps_its_subsections() -> None:
    parts = CitationGuard().verify("28 U.S.C. §§ 1331, 1343(a)(3) (2018)").parsed_components
    assert parts == {"title": 28, "reporter": "U.S.C.", "section": "1331, 1343(a)(3)"}


@pytest.mark.parametrize(
    "text", [
        "Family 👨‍👩‍👧‍👦 planner", "Developer 👩🏽‍💻 tools", "Pride 🏳️‍🌈 flag", "Love ❤️‍🔥", "Pirates 🏴‍☠️",
        "Plain 😀 face", "Keycap ✔️",
        "می\u200cخواهم", "क्\u200dष"])
def test_joined_emoji_are_not_hidden_characters(text: str) -> None:
    assert MCPPoisonGuard().verify_tool_definition({"name": "x", "description": text})["verified"]


@pytest.mark.parametrize(
    "text", ["a\u200db", "pay\u200dpal", "😀\u200d", "\u200d😀",
        "x\u2060y", "a\U000e0041b", "می\u200c\u200cخ", "a\u200cم", "👩‍\u200b👩"])
def test_other_joiners_are_hidden(text: str) -> None:
    assert not MCPPoisonGuard().verify_tool_definition({"name": "x", "description": text})["verified"]


@pytest.mark.parametrize("text", ["ｃｏｎｆｉｄｅｎｔｉａｌ", "cоnfidential", "confi\u200bdential", "𝐜𝐨𝐧𝐟𝐢𝐝𝐞𝐧𝐭𝐢𝐚𝐥"])
def test_marks_are_found_in_look_alikes(text: str) -> None:
    assert not SovereigntyGuard().verify_routing(f"This is {text}.", "openai")["verified"]


CONFIGURATIONS = [line.split(" ", 1) for line in
    (Path(__file__).parent / "programs" / "configurations.txt").read_text().splitlines() if not line.startswith("#")]


@pytest.mark.row("Q-080", "P-044")
@pytest.mark.parametrize(("kind", "text"), CONFIGURATIONS)
def test_secrets_in_configurations(kind: str, text: str) -> None:
    assert ConfigGuard().verify_config_safety(json.loads(text))["verified"] == (kind == "N")
