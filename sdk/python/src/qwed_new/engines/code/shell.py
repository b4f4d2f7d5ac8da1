"""The analyser of shell commands, on tree-sitter's trees."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from qwed_new.engines.code.findings import Finding, unique
from qwed_new.engines.code.shell_policy import PATHS, PROGRAM_DIRECTORIES, PROTECTED, READERS, READING, VARIABLES
from qwed_new.engines.code.trees import text_of, walk

MAX_CODE = 200_000

def analyse(code: str) -> list[Finding] | None:
    """Return the findings of a script, or None if it does not parse."""
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
    if node.type == "expansion" and re.search(r"@P\s*\}$", text_of(node)):
        return _find("command_substitution", node, "@P, which runs the commands in a text")
    if node.type in ("declaration_command", "unset_command"):
        return _find("blocked_command", node, text_of(node.children[0]) if node.children else "declare")
    if (assigned := _assigned(node)) and VARIABLES.fullmatch(assigned):
        return _find("variable_assignment", node, f"assignment to {assigned}")
    if node.type in ("raw_string", "string", "ansi_c_string", "word") and _SUBSCRIPT.search(unquote(text_of(node))):
        return _find("command_substitution", node, "a subscript that runs a command where a number is expected")
    if node.type == "ansi_c_string" and (
        re.search(r"\\[^'\\abefnrtv]", text_of(node)) or PATHS.search(text_of(node)[2:-1])):
        return _find("path_violation", node, f"a text with hidden characters {text_of(node)[:60]}")
    if node.type == "expansion" and re.search(r"(?<!\\)`", text_of(node)):
        return _find("command_substitution", node, "command substitution")
    if node.type in ("word", "concatenation") and _may_match_protected(text_of(node)):
        return _find("path_violation", node, f"pattern {text_of(node)[:80]}")
    if node.type in ("word", "string", "raw_string", "concatenation") and PATHS.search(unquote(text_of(node))):
        if node.parent is not None and node.parent.type == "command_name" and PROGRAM_DIRECTORIES.fullmatch(
            unquote(text_of(node))):
            return []
        return _find("path_violation", node, f"path {unquote(text_of(node))[:80]}")
    return []


# Bash evaluates `a[$(id)]` wherever it expects a number, also if the text is quoted: `[[ 'a[$(id)]' -eq 1 ]]`.
_SUBSCRIPT = re.compile(r"\[[^\]]*(?:\$\(|`|\$\{)")


def _may_match_protected(word: str) -> bool:
    """Report whether a pattern of file names matches a protected file, or a directory above it."""
    if not re.search(r"[*?\[]", word) or word == "/*":
        return False
    parts = unquote(word).rstrip("/").split("/")
    return word[:1] in "/~." and any(
        len(parts) <= path.count("/") + 1 and all(map(_matches, parts, path.split("/"))) for path in PROTECTED)


def _matches(pattern: str, name: str) -> bool:
    """Report whether a pattern of the shell matches a name; only a written point matches the one of a hidden file."""
    return fnmatchcase(name, pattern) and not (name.startswith(".") and pattern[:1] in ("*", "?", "["))


def _assigned(node: Node) -> str:
    """The variable that a node assigns to, or ""."""
    if node.type == "variable_assignment":
        return re.sub(r"\[.*|\+$", "", text_of(node.child_by_field_name("name")), flags=re.S)
    if node.type in ("for_statement", "select_statement"):
        return text_of(node.child_by_field_name("variable"))
    if node.type == "expansion" and (match := re.match(r"\$\{(\w+):?=", text_of(node))):
        return match[1]
    return ""


def _command(node: Node) -> list[Finding]:
    name_node = node.child_by_field_name("name")
    if name_node is None:
        return []
    raw = text_of(name_node)
    if any(n.type in ("simple_expansion", "expansion", "command_substitution", "ansi_c_string")
        for n in walk(name_node)) or re.search(
        r"[*?\[{]", raw
    ):
        return _find("computed_command", node, "a command whose name is computed")
    path = unquote(raw)
    if "/" in path and not PROGRAM_DIRECTORIES.fullmatch(path):
        return _find("blocked_command", node, f"a program that is named by its path: {path[:80]}")
    name = path.rsplit("/", 1)[-1]
    if name == "awk" and any(
        n.type in ("simple_expansion", "expansion", "ansi_c_string", "translated_string") for n in walk(node)):
        return _find("computed_command", node, "a program for awk that is computed")
    if name in READING:
        words = " ".join([name, *(text_of(c) for c in node.named_children if c != name_node)])
        return _find("blocked_command", node, name) if READING[name].search(words) or READING[name].search(
            unquote(words)) else []
    return [] if name in READERS else _find("blocked_command", node, name)


def _redirect(node: Node) -> list[Finding]:
    text = text_of(node)
    target = unquote(text_of(node.child_by_field_name("destination")))
    if ">" in text and not target.startswith("/dev/null") and not re.search(r"&\d?$|>&\s*\d", text):
        return _find("file_write", node, f"writing to {target[:80]}")
    return []


def unquote(text: str) -> str:
    """A word as the shell sees it: without quotes and escapes."""
    return re.sub(r"\\(.)", r"\1", re.sub(r"['\"]", "", text))
