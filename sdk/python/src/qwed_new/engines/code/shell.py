"""The analyser of shell commands, on tree-sitter's trees."""

from __future__ import annotations

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from qwed_new.engines.code.findings import Finding, unique
from qwed_new.engines.code.javascript import text_of, walk

MAX_CODE = 200_000

BLOCKED = frozenset(
    "rm rmdir del shred unlink chmod chown chgrp chattr setfacl wget curl fetch aria2c ssh scp sftp rsync nc ncat netcat socat telnet ftp sudo su doas pkexec "
    "mkfs fdisk parted dd mount umount losetup reboot shutdown halt poweroff init systemctl service kill pkill killall eval exec source . bash sh zsh dash ksh fish "
    "csh tcsh python python2 python3 perl ruby node deno bun php lua awk gawk mawk tclsh osascript powershell pwsh cmd xargs parallel watch nohup setsid env command "
    "builtin trap alias unalias export crontab at batch useradd userdel usermod passwd visudo iptables nft ip ifconfig route insmod rmmod modprobe sysctl truncate "
    "tee mv ln mknod mkfifo install apt apt-get dpkg yum dnf rpm pip pip3 npm npx yarn gem cargo make gdb strace ltrace docker podman kubectl chroot unshare nsenter "
    "busybox script expect screen tmux history timeout nice ionice stdbuf time flock coproc enable hash set shopt ulimit umask vim vi nano ed ex less more man "
    "tar unzip zip gzip gunzip cpio base64 openssl gpg git svn sed find".split()
)
# What only prints, and is therefore allowed although a variant of it is not.
_READS = {
    "sed": re.compile(r"\s-\w*i|\s--in-place|[;{}'\" ]w |e\b"),
    "find": re.compile(r"-(?:delete|exec|execdir|ok|okdir|fprint\w*|fls)\b"),
    "git": re.compile(r"^git (?!status\b|log\b|diff\b|show\b|branch$)"),
}
_PATHS = re.compile(
    r"(?:^|[\s'\"=:/])\.\.(?:/|$)|~?/?\.ssh\b|/etc/(?:passwd|shadow|sudoers|gshadow)|^/root\b|/var/log\b|\.env\b|\.git/config|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|\.pem$|/proc/|/sys/|/dev/(?!null\b|stdout\b|stderr\b)"
)


def analyse(code: str) -> list[Finding] | None:
    """The findings of a script, None when it does not parse."""
    if len(code) > MAX_CODE:
        return [Finding("too_large", "high", f"Too large: the script has more than {MAX_CODE} characters")]
    tree = Parser(Language(tree_sitter_bash.language())).parse(code.encode("utf-8", "surrogatepass"))
    if tree.root_node.has_error:
        return None
    findings: list[Finding] = []
    for node in walk(tree.root_node):
        findings += _judge(node)
    return unique(findings)


def _find(rule: str, node: Node, message: str) -> list[Finding]:
    return [Finding(rule, "critical", f"Dangerous pattern: {message}", node.start_point[0] + 1)]


def _judge(node: Node) -> list[Finding]:
    if node.type == "command":
        return _command(node)
    if node.type in ("command_substitution", "process_substitution"):
        return _find("command_substitution", node, "command substitution")
    if node.type == "file_redirect":
        return _redirect(node)
    if node.type == "function_definition":
        return _find("function_definition", node, f"function {text_of(node.child_by_field_name('name'))}")
    if node.type == "variable_assignment" and re.match(
        r"(?:PATH|LD_\w+|IFS|BASH_ENV|ENV|PROMPT_COMMAND|PYTHON\w*|NODE_OPTIONS|PERL5\w*)$", text_of(node.child_by_field_name("name"))
    ):
        return _find("variable_assignment", node, f"assignment to {text_of(node.child_by_field_name('name'))}")
    if node.type in ("word", "string", "raw_string", "concatenation") and _PATHS.search(unquote(text_of(node))):
        return _find("path_violation", node, f"path {unquote(text_of(node))[:80]}")
    return []


def _command(node: Node) -> list[Finding]:
    name_node = node.child_by_field_name("name")
    if name_node is None:
        return []
    raw = text_of(name_node)
    if any(n.type in ("simple_expansion", "expansion", "command_substitution", "ansi_c_string") for n in walk(name_node)) or re.search(
        r"[*?\[{]", raw
    ):
        return _find("computed_command", node, "a command whose name is computed")
    name = unquote(raw).rsplit("/", 1)[-1].lower()
    if name in _READS:
        return _find("blocked_command", node, name) if _READS[name].search(text_of(node)) else []
    if name in BLOCKED or re.match(r"(?:python|perl|ruby|mkfs|php|lua)[\d.]", name):
        return _find("blocked_command", node, name)
    return []


def _redirect(node: Node) -> list[Finding]:
    text = text_of(node)
    target = unquote(text_of(node.child_by_field_name("destination")))
    if ">" in text and not target.startswith("/dev/null") and not re.search(r"&\d?$|>&\s*\d", text):
        return _find("file_write", node, f"writing to {target[:80]}")
    return []


def unquote(text: str) -> str:
    """A word as the shell sees it: without quotes and escapes."""
    return re.sub(r"\\(.)", r"\1", re.sub(r"['\"]", "", text))
