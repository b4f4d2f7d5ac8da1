"""The provenance of skills: may a manifest be loaded?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from qwed_new.plain_text import plain
from qwed_new.values import texts
from qwed_new.verdict import Status, Verdict

UNTRUSTED_REGISTRIES = frozenset({"clawdhub.com", "moltbot.io", "skillhub.ai", "agentstore.dev", "llm-tools.net"})
TRUSTED_DOMAINS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "pypi.org", "npmjs.com", "qwedai.com"})
_DIGESTS = {"sha256": 64, "sha384": 96, "sha512": 128}
_METADATA = frozenset(
    "name description source_url version registry digest homepage author license tags keywords title "
    "documentation_url".split()
)
_MAX_VALUES = 10_000

_SUSPICIOUS = {
    "eval()": re.compile(r"\beval\s*\(", re.I),
    "exec()": re.compile(r"\bexec\s*\(", re.I),
    "os.system()": re.compile(r"\bos\s*\.\s*(?:system|popen)\s*\(", re.I),
    "subprocess": re.compile(r"\bsubprocess\s*\.|\b(?:import|from)\s+subprocess\b|\bchild_process\b", re.I),
    "__import__": re.compile(r"__import__|\bimport_module\s*\(|\bfrom\s+os\s+import\b|\bgetattr\s*\(\s*os\b"),
    "a computed program": re.compile(
        r"\b(?:globals|locals)\s*\(\s*\)\s*\[|\bnew\s+Function\s*\(|\bpickle\s*\.\s*loads?\b"),
    "pipe to a shell": re.compile(
        r"\|\s*(?:sudo\s+(?:-\S+\s+)*)?(?:/\S*/)?(?:(?:ba|z|da|k)?sh|python[\d.]*|perl|ruby|node|php)(?![\w-])"
        r"|(?:\$|<)\(\s*(?:curl|wget)\b|`\s*(?:curl|wget)\b|\biex\s*[\s(]|\bpowershell\b.*\s-e(?:nc|ncodedcommand)?\b"
        r"|\bnc\b.*\s-e\b"
        r"|\b(?:curl|wget)\b[^;&]*[;&]+\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b",
        re.I,
    ),
    "a program in an argument": re.compile(
        r"\b(?:python[\d.]*|perl|ruby|node|php|deno|bun|lua)\s+(?:-\w+\s+)*-[ecr]\b"
        r"|\b(?:(?:ba|z|da|k)?sh|cmd(?:\.exe)?)\s+[-/]\w*c\b"
        r"|/dev/(?:tcp|udp)/|\bsetTimeout\s*\(\s*['\"`]|\bDeno\s*\.\s*(?:run|Command)\b|\bBun\s*\.\s*spawn\b"
        r"|\bvm\s*\.\s*runIn\w+"
        r"|\bctypes\s*\.|\bmarshal\s*\.\s*loads?\b|\byaml\s*\.\s*(?:unsafe_|full_)?load\s*\(", re.I),
    "a program of Windows": re.compile(
        r"\b(?:certutil|bitsadmin|mshta|regsvr32|rundll32|wscript|cscript)\b|\bInvoke-Expression\b"
        r"|\bDownload(?:String|File)\s*\(|\|\s*iex\b",
        re.I),
    "removal of files": re.compile(
        r"\brm\s+(?:-\S+\s+)*(?:[/~*]|\$HOME)|\bshutil\s*\.\s*rmtree\b|\bdd\s[^|;&]*\bof=/dev/|\bmkfs(?:\.\w+)?\s"
        r"|:\s*\(\s*\)\s*\{", re.I),
    "credential access": re.compile(
        r"\.(?:aws|ssh|netrc|npmrc|pypirc|docker|kube)\b[/\\]?|\b(?:aws_secret\w*|secret_access_key|api[_-]?key"
        r"|credentials?)\b|os\.environ|\bgetenv\s*\(|process\.env|id_rsa|/etc/(?:passwd|shadow)",
        re.I,
    ),
}


class SkillProvenanceGuard:
    """Judges skill manifests.

    trusted_registries, when given, is the only list of registries that are accepted; without it five known bad
    ones are refused. trusted_domains adds to the domains that sources may have.
    """

    def __init__(
        self, trusted_registries: set[str] | None = None, trusted_domains: set[str] | None = None,
        require_digest: bool = True
    ) -> None:
        self._registries = None if trusted_registries is None else {_host(r) for r in trusted_registries}
        self._domains = TRUSTED_DOMAINS | {_host(d) for d in trusted_domains or ()}
        self._require_digest = require_digest

    def verify_skill(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """A dict with verified, status (TRUSTED or BLOCKED), skill_name, risk_level (none, medium, high), findings and
        message."""
        if not isinstance(manifest, Mapping):
            return _response("", ["Manifest is not an object"], "high")
        name = manifest.get("name") if isinstance(manifest.get("name"), str) else ""
        high = [*_required(manifest), *self._registry(manifest), *self._source(manifest), *self._digest(manifest),
            *_patterns(manifest)]
        medium = _downloads(manifest)
        return _response(str(name), high + medium, "high" if high else "medium" if medium else "none")

    def _registry(self, manifest: Mapping[str, Any]) -> list[str]:
        registry = manifest.get("registry")
        if not isinstance(registry, str) or not registry.strip():
            return ["Missing required field: registry"]
        host = _host(registry)
        if self._registries is not None:
            return [] if host in self._registries else [f"Registry is not in the allowlist: {registry}"]
        if _is_untrusted(registry):
            return [f"Untrusted registry: {registry}"]
        if not re.fullmatch(r"[a-z0-9 ._\[\]:-]+", host) or "xn--" in host:
            return [f"Registry name is not plain ASCII: {registry}"]
        return []

    def _source(self, manifest: Mapping[str, Any]) -> list[str]:
        url = manifest.get("source_url")
        if not isinstance(url, str) or not url.strip():
            return ["Missing required field: source_url"]
        try:
            parts = urlsplit(url.strip())
            host, userinfo = (parts.hostname or "").rstrip("."), parts.username
        except ValueError:
            return [f"Source URL is malformed: {url}"]
        findings = []
        if parts.scheme != "https":
            findings.append(f"Source URL must use HTTPS: {url}")
        if userinfo is not None or "\\" in url or re.search(r"\s", url.strip()):
            findings.append(f"Source URL is malformed: {url}")
        if not any(host == d or host.endswith("." + d) for d in self._domains):
            findings.append(f"Source URL domain is not trusted: {host or url}")
        return findings

    def _digest(self, manifest: Mapping[str, Any]) -> list[str]:
        digest = manifest.get("digest")
        if digest is None or digest == "":
            return ["Missing required field: digest"] if self._require_digest else []
        algorithm, colon, value = digest.partition(":") if isinstance(digest, str) else ("", "", "")
        if not colon:
            return ["Digest is not of the form algorithm:hex_digest"]
        if algorithm not in _DIGESTS:
            return [f"Unsupported digest algorithm: {algorithm}"]
        if not re.fullmatch(r"[0-9a-fA-F]*", value) or len(value) != _DIGESTS[algorithm]:
            return [f"Digest has not {_DIGESTS[algorithm]} hexadecimal digits"]
        return []


def verify_manifest(manifest: Mapping[str, Any]) -> Verdict:
    """The judgement of SkillProvenanceGuard as a verdict: VERIFIED when the manifest is trusted, else BLOCKED."""
    judged = SkillProvenanceGuard().verify_skill(manifest)
    status = Status.VERIFIED if judged["verified"] else Status.BLOCKED
    evidence = {k: judged[k] for k in ("skill_name", "risk_level", "findings")}
    return Verdict(status, "skill", judged["message"], {**evidence, "method": "checks of provenance"})


def _host(text: str) -> str:
    """Return the host of a registry as a browser would read it, or its name if it is not a host."""
    text = re.sub(r"^https?:/*", "//", plain(unquote(text.strip())).lower().replace("\\", "/"))
    try:
        return (urlsplit(text if "//" in text else "//" + text).hostname or "").rstrip(".")
    except ValueError:
        return text


# Characters that look like a letter, in a name that imitates another.
_IMITATIONS = str.maketrans("013457", "oleast")


def _is_untrusted(registry: str) -> bool:
    """Report whether a registry is one of UNTRUSTED_REGISTRIES, imitates one, or is reached through it or a mirror of
    it: wherever the name is in the text, with any ending."""
    text = plain(unquote(unquote(registry))).lower().translate(_IMITATIONS)
    joined, words = re.sub(r"[^a-z]", "", text), f"-{re.sub(r'[^a-z]+', '-', text)}-"
    hosts = {re.sub(r"[^a-z]", "", w) for w in re.split(r"[./:@?#=&\\\s]+", text)}
    for bad in UNTRUSTED_REGISTRIES:
        name = bad.rpartition(".")[0]
        if re.sub(r"[^a-z]", "", bad) in joined or f"-{name}-" in words or name.replace("-", "") in hosts:
            return True
    return False


def _required(manifest: Mapping[str, Any]) -> list[str]:
    missing = [f for f in ("name", "version") if not isinstance(manifest.get(f), str) or not manifest[f].strip()]
    return [f"Missing required field: {field}" for field in missing]


def _downloads(manifest: Mapping[str, Any]) -> list[str]:
    if "download_count" not in manifest or manifest["download_count"] is None:
        return []
    count = manifest["download_count"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        return ["Download count is not a whole number"]
    if count < 10:
        return [f"Suspiciously low download count: {count} (possibly planted)"]
    if count % 1000 == 0:
        return [f"Suspiciously round download count: {count} (possible bot inflation)"]
    return []


def _patterns(manifest: Mapping[str, Any]) -> list[str]:
    findings = []
    for count, (path, text) in enumerate(texts(manifest, _METADATA)):
        if count >= _MAX_VALUES:
            return [*findings, "Manifest has too many values to be scanned"]
        findings += [
            f"Suspicious pattern in {path}: {what}" for what,
            pattern in _SUSPICIOUS.items() if pattern.search(plain(text))]
    return findings


def _response(name: str, findings: list[str], risk: str) -> dict[str, Any]:
    trusted = not findings
    return {
        "verified": trusted,
        "status": "TRUSTED" if trusted else "BLOCKED",
        "skill_name": name,
        "risk_level": risk,
        "findings": findings,
        "message": f"Skill '{name}' passed all provenance checks." if trusted
        else f"Skill '{name}' was blocked: {'; '.join(findings)}",
    }
