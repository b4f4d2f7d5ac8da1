"""ConfigGuard: does a configuration hold secrets in plain text?"""

from __future__ import annotations

import functools
import importlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from qwed_new import strict_json
from qwed_new.plain_text import plain
from qwed_sdk.guards.answers import allowed, refused

MAX_VALUES = 100_000


def _command(program: str, word: str = "[^|;&]") -> str:
    """A pattern of a command up to one of its arguments. It ends before the same program, so that a text that repeats
    a program is searched once."""
    return rf"(?:{program})\b(?:(?!\s(?:{program})\b){word})*"


_PATTERNS = {
    "ANTHROPIC_API_KEY": r"\bsk-ant-[\w-]{16,}",
    "OPENAI_API_KEY": r"\bsk-(?!ant-)(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}",
    "AWS_ACCESS_KEY": r"\b(?:AKIA|ASIA|ABIA|ACCA|A3T[0-9A-Z])[0-9A-Z]{16}\b",
    # Tokens of vendors that begin with a name, which the vendor chose so that scanners find them.
    "VENDOR_TOKEN": r"(?<![\w.-])(?:(?:gl(?:ptt|dt|rt|ft|imt|agent|oas|cbt)-|GOCSPX-|whsec_|dckr_[po]at_|hv[sbr]\."
        r"|lin_(?:api|oauth)_|ntn_|hf_|api_org_|r8_|pplx-|gsk_|xai-|NR(?:AK|II|RA)-|glsa_|glc_|sntry[su]_|tfp_|sgp_"
        r"|vercel_|fo1_|fm2_|pscale_(?:tkn|pw|oauth)_|dp\.(?:pt|st|ct)\.|duffel_(?:test|live)_|ATATT3|ATCTT3|ATBB|figd_"
        r"|pul-|sbp_|nfp_|CFPAT-|tskey-(?:auth|api)-|bkua_|phx_|re_|EZ[AT]K|LTAI|AKCp|mfa\.)(?=[\w.-]*\d)[\w.-]{20,}"
        r"|ya29\.[\w-]{20,}|1//0[\w-]{30,}|xapp-\d-[\w-]{30,}|secret_[A-Za-z0-9]{43}\b|s\.[A-Za-z0-9]{24}\b"
        r"|(?:rubygems_|key-|d(?:op|oo|or)_v1_|shp(?:at|ss|ca|pa)_|dapi|v1\.0-)[0-9a-f]{32,}"
        r"|(?:FLWSECK|FLWPUBK)(?:_TEST)?-\w{32}"
        r"|(?:PMAK-[0-9a-f]{24}-|CCI(?:PAT|PRJ)_\w{22}_)[0-9a-f]{20,}|ops_eyJ[\w=-]{40,}|AGE-SECRET-KEY-1[0-9A-Z]{50,}"
        r"|EAA[A-Z][A-Za-z0-9]{40,}|[xyz]prv[A-Za-z0-9]{100,}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}"
        r"|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|pat-(?:na|eu)\d-[0-9a-f-]{36}|oy2[a-z0-9]{43}\b|AC[0-9a-f]{32}:[0-9a-f]{32}"
        r"|AAAA[\w-]{7}:[\w-]{100,}|sl\.[\w-]{100,})",
    "WEBHOOK_URL": r"https://(?:(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"
        r"|[\w.-]*(?:office\.com|office365\.com|powerplatform\.com"
        r"|logic\.azure\.com)\S*/(?:IncomingWebhook|triggers)/\S+"
        r"|hooks\.zapier\.com/hooks/catch/\S+|maker\.ifttt\.com/trigger/\S+/key/\S+)",
    "GITHUB_TOKEN": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})",
    "GITLAB_TOKEN": r"\bglpat-[\w-]{20,}",
    # In the second form in base64, as Kubernetes has it: "-----BEGIN" and PRIVATE KEY at any offset.
    "PRIVATE_KEY_PEM": r"-----(?:BEGIN|END) [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"|LS0tLS1CRUdJT[\w+/]*?(?:UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW)",
    "JWT_TOKEN": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+",
    "GOOGLE_API_KEY": r"\bAIza[\w-]{35}",
    "STRIPE_API_KEY": r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    "SLACK_TOKEN": r"\bxox[abeoprs]-[\w-]{10,}|https://hooks\.slack\.com/services/\S+",
    "DISCORD_TOKEN": r"\b[MNO][A-Za-z\d_-]{23,}\.[\w-]{6}\.[\w-]{27,}",
    "NPM_TOKEN": r"\bnpm_[A-Za-z0-9]{36}\b",
    "SENDGRID_KEY": r"\bSG\.[\w-]{22}\.[\w-]{43}",
    "TWILIO_KEY": r"\bSK[0-9a-f]{32}\b",
    "URL_PASSWORD": r"\b[a-zA-Z][a-zA-Z0-9+.-]*:(?:[a-z]+:)?//[^\s:/?#@]*:(?!\$|\{|<|\*+@|%\w+%@"
        r"|x{3,}@)[^\s/?#]+@[^\s@]*",
    "CONNECTION_STRING": r"(?i)(?:^|[;&?\s,'\"])(?:password|passwd|pwd|pass|account_?key|shared_?access_?key"
        r"|secret_?key|sig|client_?secret)\s*=\s*"
    r"['\"]?(?!\$|\{|<|\*|%\w+%|x{3,}|env:|vault:|\s*(?:;|&|$))[^\s;&'\",]{3,}",
    "BASIC_AUTH": r"\bBasic\s+(?=\S*[\dA-Z=])[A-Za-z0-9+/]{12,}={0,2}",
    "BEARER_TOKEN": r"\bBearer\s+[\w.~+/=-]{20,}|(?i:^(?:authorization\s*:\s*)?"
        r"(?:bearer|token)\s+)(?![$<{*])(?=\S*[\d.])[\w.~+/=-]{8,}$",
    "COOKIE": r"(?i:(?:^|cookie\s*:\s*|;\s*)(?:session(?:_?id)?|sess|sid|auth|token|jwt|connect\.sid"
        r"|phpsessid|jsessionid)=)"
        r"(?![$<{*])(?=\S*\d)[\w.%+/=:-]{8,}",
    "XML_ELEMENT": r"(?i:<(?:\w+:)?(?:password|passwd|pwd|passphrase|secret|token|api_?key)\b[^<>]*>)"
        r"\s*(?![$<{*])[^<\s]{3,}\s*</",
    "HEADER": r"(?i:(?<![\w-])(?:x-[\w-]*(?:key|token)|api-?key|authorization)\s*+:"
        r"\s*+(?:token|bearer|apikey|key)?\s*+)(?![$<{*])(?=\S*\d)[\w.~+/=-]{12,}",
    "PROGRAM_ARGUMENT": r"(?:^|\s)(?:" + _command("curl") + r"\s(?:-u|--user)[\s=]+[^\s:$]+:(?![$<{*])\S{3,}"
        r"|sshpass\s++-p\s*+(?![$<{*])\S{3,}"
    r"|" + _command("mysql|mysqldump|mariadb") + r"\s-p(?![$<{*])[^\s=]{3,}"
    r"|" + _command(r"docker\s++login|mongo(?:sh|dump|restore|export)?") + r"\s-p[\s=]*+(?![$<{*-])\S{4,}"
    r"|" + _command("redis-cli") + r"\s-a\s*+(?![$<{*-])\S{4,}"
    r"|" + _command("openssl") + r"\s-(?:k\s+|pass(?:in|out)?\s+pass:)(?![$<{*-])\S{4,}"
    r"|" + _command(r"net\s++use", ".") + r"\s/user:\S+\s+(?![$<{*/])\S{4,}"
    r"|aws\s+configure\s+set\s+aws_secret_access_key\s+(?![$<{*])\S{16,}"
    r"|machine\s+\S+\s+login\s+\S+\s+password\s+(?![$<{*])\S{3,}|requirepass\s+(?![$<{*])\S{4,})"
    r"|(?:^|\s)--?(?:password|passwd|token|secret|api-key)[\s=]+(?![$<{*-]|[A-Z_]+(?:\s|$))\S{4,}",
    "NPM_AUTH": r":_(?:authToken|auth|password)\s*=\s*(?![$<{*])\S{4,}",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}
_SECRET_KEY = re.compile(
    r"(?:^|[_\-.\s])(?:pass(?:word|wd|phrase)?|(?:pg|db|my|app|user|root|admin|bind|login|ftp|smtp|mail|wifi|wlan)"
    r"(?:password|passwd|passphrase|pass|pwd|pw)|pwd|pw|psk|passcode|pin|secret|token|api[_-]?key|apikey"
    r"|private[_-]?key|access[_-]?key|credential|auth|signing[_-]?key"
    r"|encryption[_-]?key|secret[_-]?key|account[_-]?key|storage[_-]?key|client[_-]?secret|otp[_-]?seed|mnemonic"
    r"|(?:seed|recovery)[_-]?phrase"
    r"|passwort|kennwort|geheimnis|geheim|contrase(?:ñ|n)a|clave|mot[_-]?de[_-]?passe|senha|parola|wachtwoord|lozinka"
    r"|heslo|hasło|salasana|lösenord|passord|adgangskode|jelszó|şifre|пароль|密码|密碼|パスワード|비밀번호)s?(?:$|[_\-.\s])",
    re.I,
)
# Names of what is secret as a rule: a value with a digit counts.
_KEY_OR_CODE = re.compile(
    r"(?:^|_)(?:(?:hmac|shared|session|master|cipher|aes|rsa|priv|ssh|deploy|licen[sc]e|jwt|signature|network"
    r"|subscription|connection|symmetric|root|wallet|unlock)_?key|(?:unlock|security|recovery|backup)_?code|bearer|pat"
    r"|(?:ntlm|lm)_hash)$")
_PUBLIC = re.compile(
    r"(?:ssh-|ecdsa-|[~.]?/|[A-Za-z]:\\)|.*\.(?:pem|key|pub|crt|jks|p12)$|-----BEGIN (?:PUBLIC|CERT)", re.S)
# Words around the name of a secret that make it the name of something else.
_MEASURING = frozenset(
    "max min num number count total allow require requires required use enable enabled disable has is show forgot "
    "reset".split())
_DESCRIBING = frozenset(
    "policy policies length limit limits timeout ttl expiry expires expiration expire required enabled disabled count "
    "hint reset url uri endpoint path file dir type algorithm algo field header label rotation days hours minutes "
    "seconds age strength provider regex pattern rules rule attempts complexity strategy mode format env ref "
    "reference max min size bytes validation encoder manager store source method scheme issuer audience prompt "
    "placeholder name names helper history lifetime budget usage window per encoding class service server rounds cost "
    "iterations arn to through".split()
)
# Secrets that people choose, so that they may consist of digits.
_NUMERIC = frozenset(
    "password passwd passphrase pass pwd passcode pin secret client_secret api_key apikey access_key private_key "
    "token auth_token psk".split())
_ASSIGNED = re.compile(
    r"(?:^|[\n;,&?\s])(?:pw|[\w.-]*(?:password|passwd|pwd|secret|token(?!i[sz])|api_?key)(?![\w.-]*"
    r"(?:policy|length|limit|timeout|url|hint))[\w.-]*)"
    r"\s*[=:]\s*['\"]?([^\s'\"]{4,})",
    re.I,
)
# A sentence with a secret: its value has a digit, or is in quotes.
_TOLD = re.compile(
    r"\b(?:password|passphrase|passcode|pin|secret|token|api key)(?: for [\w ]{1,30}?)? (?:is|was|=|:) "
    r"(?:['\"`]\S{4,}['\"`]|(?=\S*\d)(?![\d.]+ )\S{5,})", re.I)
_REFERENCE = re.compile(
    r"^(?:\$\{\w+\}|\$(?-i:[A-Z_][A-Z0-9_]*|[a-z]+(?:_[a-z]+)+)|\$\(.*\)|\{\{.*\}\}|<[^<>]*>|\*+|x{3,}|%\w+%|%\(\w+\)s"
    r"|(?:env|vault|secret|file|op|keyring|aws|gcp|azure|ref|ssm|arn|projects)[:/].*|!\w+.*|your[_-].*"
    r"|change[_-]?me(?:[_-].*)?"
    r"|example|placeholder|none|null|true|false|bearer|basic|digest|todo|redacted|\[redacted\]|process\.env\.\w+)$",
    re.I,
)


# Detectors of detect-secrets for kinds that have no pattern above: its name, and what a violation calls it. None of
# them opens a connection.
_DETECTORS = {
    "artifactory.ArtifactoryDetector": "ARTIFACTORY_KEY",
    "azure_storage_key.AzureStorageKeyDetector": "AZURE_STORAGE_KEY", "cloudant.CloudantDetector": "CLOUDANT_KEY",
    "ibm_cloud_iam.IbmCloudIamDetector": "IBM_CLOUD_KEY", "ibm_cos_hmac.IbmCosHmacDetector": "IBM_COS_KEY",
    "mailchimp.MailchimpDetector": "MAILCHIMP_KEY",
    "pypi_token.PypiTokenDetector": "PYPI_TOKEN", "softlayer.SoftlayerDetector": "SOFTLAYER_KEY",
    "square_oauth.SquareOAuthDetector": "SQUARE_SECRET",
    "telegram_token.TelegramBotTokenDetector": "TELEGRAM_TOKEN",
}  # fmt: skip
MAX_TEXT = 100_000


@functools.cache
def _detectors() -> list[tuple[str, Any]]:
    found = []
    for name, kind in _DETECTORS.items():
        module, _, detector = name.partition(".")
        found.append((kind, getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), detector)()))
    return found


class ConfigGuard:
    """Scans keys and values at any depth. A value under a key that names a secret counts unless it is a reference or a
    placeholder.

    custom_patterns adds regular expressions by name; sensitivity "low" leaves the judgement by key names out.
    """

    def __init__(self, custom_patterns: Mapping[str, str] | None = None, sensitivity: str = "high") -> None:
        if sensitivity not in ("high", "low"):
            raise ValueError("sensitivity is 'high' or 'low'")
        self._patterns = {**_COMPILED, **{name: re.compile(p) for name, p in (custom_patterns or {}).items()}}
        self.sensitivity = sensitivity

    def verify_config_safety(self, config_data: Any, path: str = "") -> dict[str, Any]:
        """Judge a configuration: an object, a list, or a text (JSON, or anything else as one value). Violations have
        type, path and message; never the value."""
        if isinstance(config_data, bytes):
            config_data = config_data.decode("utf-8", "replace")
        if isinstance(config_data, str) and config_data.lstrip()[:1] in ("{", "["):
            try:
                config_data = strict_json.loads(config_data)
            except json.JSONDecodeError:
                pass  # it is scanned as text
            except ValueError as error:
                message = f"The configuration cannot be read: {error}."
                return refused(
                    "PLAINTEXT_SECRET", message,
                    violations=[{"type": "AMBIGUOUS_JSON", "path": path, "message": message}])
        violations: list[dict[str, str]] = []
        for count, (where, key, text) in enumerate(_values(config_data, path)):
            if count >= MAX_VALUES:
                violations.append({
                    "type": "TOO_LARGE", "path": where,
                    "message": "The configuration has too many values to be scanned."})
                break
            for kind in self._kinds(key, text):
                violations.append({"type": kind, "path": where, "message": f"Possible {kind} at '{where}'."})
        if violations:
            return refused(
                "PLAINTEXT_SECRET", f"Found {len(violations)} possible secret(s) in the configuration.",
                violations=violations)
        return allowed("No secrets were found in the configuration.", violations=[])

    def scan_string(self, text: str) -> dict[str, Any]:
        """Judge a text, such as a line of a log."""
        found = [
            {"type": name, "count": len(m), "message": f"Found {len(m)} instance(s) of {name}."}
            for name, p in self._patterns.items()
            if (m := p.findall(text))
        ]
        for kind, detector in _detectors():
            if count := sum(1 for line in _lines("", text) for _ in detector.analyze_string(line)):
                found.append({"type": kind, "count": count, "message": f"Found {count} instance(s) of {kind}."})
        if found:
            return refused("SECRET_EXPOSURE", f"Found {len(found)} kind(s) of secret in the text.", secrets_found=found)
        return allowed("No secrets were found.", secrets_found=[])

    def _kinds(self, key: str, text: str) -> list[str]:
        written, key, text = key, plain(key), plain(text)
        kinds = [name for name, pattern in self._patterns.items() if pattern.search(text)]
        if not _REFERENCE.match(text.strip()):
            kinds += [
                kind for kind,
                d in _detectors() if any(True for line in _lines(key, text) for _ in d.analyze_string(line))]
        if not kinds and self.sensitivity == "high":
            value = text.strip()
            if (_names_secret(key, value) or _names_secret(written, value)) and not _REFERENCE.match(value):
                kinds.append("SECRET_VALUE")
            elif re.fullmatch(r"[A-Za-z0-9/+=]{40}", value) and _entropy(value) > 4.3 and not re.fullmatch(
                r"[0-9a-f]{40}", value):
                kinds.append("AWS_SECRET_KEY")
            else:
                match = _ASSIGNED.search(text)
                if (match and not _REFERENCE.match(match[1])) or _TOLD.search(text):
                    kinds.append("SECRET_VALUE")
        return kinds


def _names_secret(key: str, value: str) -> bool:
    """Report whether a key names a secret, and not a property of one such as its length or policy."""
    words = [w for w in re.split(r"[\W\d_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()) if w]
    joined = "_".join(words)
    if "key" in words and re.fullmatch(r"0x[0-9a-fA-F]{64}", value) and not {"public", "pub", "cache"} & set(words):
        return True
    if _KEY_OR_CODE.search(joined) and re.search(r"\d", value) and not re.search(r"\s", value) and len(value) >= 6:
        return not _PUBLIC.match(value) and not {"public", "pub"} & set(words)
    found = [m.span() for m in _SECRET_KEY.finditer(joined)]
    if not found or len(value) < 3 or value in ("include", "omit", "same-origin"):  # what fetch sends
        return False
    before, after = joined[: found[-1][0]].split("_"), joined[found[-1][1] :].split("_")
    if set(before) & _MEASURING or set(after) & _DESCRIBING:
        return False
    number = re.fullmatch(r"[-+]?\d+(?:\.\d+)?", value)
    return not number or (len(value) >= 4 and joined[found[-1][0] : found[-1][1]].strip("_") in _NUMERIC)


def _lines(key: str, text: str) -> list[str]:
    """The lines of a text as detectors want them: one of a single value with its key before it."""
    lines = text[:MAX_TEXT].splitlines()[:10_000]
    return [f"{key} = {lines[0]}"] if len(lines) == 1 and key else lines


def _entropy(text: str) -> float:
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _document(text: str) -> object:
    """Return the JSON document that a text is, or None."""
    try:
        return strict_json.loads(text) if text.lstrip()[:1] in ("{", "[") and len(text) <= MAX_TEXT else None
    except (ValueError, RecursionError):
        return None


_CONTAINERS = frozenset({"secrets", "passwords", "passphrases"})  # their members are secrets under any name
_VALUE_KEYS = frozenset({"value", "default", "plain", "plaintext", "literal"})


def _values(data: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Path, key and text of every value; keys are values too. Without recursion."""
    stack: list[tuple[str, str, Any]] = [(path, "", data)]
    while stack:
        where, key, value = stack.pop()
        if isinstance(value, Mapping):
            for k, v in value.items():
                inner = f"{where}.{k}" if where else str(k)
                yield inner, "", str(k)
                if key.lower() in _CONTAINERS and isinstance(v, str) and re.search(r"\d", v):
                    stack.append((inner, f"secret_{k}", v))
                else:
                    stack.append((inner, key if key and str(k).lower() in _VALUE_KEYS else str(k), v))
        elif isinstance(value, list | tuple | set):
            listed = list(value)
            for i, v in enumerate(listed):  # ["--password", "hunter2"]: an option is the key of what follows it
                option = listed[i - 1] if i and isinstance(listed[i - 1], str) else ""
                is_value = option.startswith("--") and isinstance(v, str) and not v.startswith("-")
                stack.append((f"{where}[{i}]", option.lstrip("-") if is_value else key, v))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield where, key, str(value)
        elif isinstance(value, str | bytes):
            text = value if isinstance(value, str) else value.decode("utf-8", "replace")
            if isinstance(inner := _document(text), Mapping | list):
                stack.append((where, key, inner))
            yield where, key, text
