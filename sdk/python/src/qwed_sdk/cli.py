"""The `qwed` command."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from qwed_new import strict_json
from qwed_new.verdict import Verdict
from qwed_sdk.client import QWEDClient
from qwed_sdk.errors import QWEDError
from qwed_sdk.settings import VERSION

MAX_FILE = 16 * 1024 * 1024
_LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".sql": "sql",
    ".sh": "shell",
    ".bash": "shell",
}


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 when verified, 1 when not, 2 for wrong usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        with QWEDClient(timeout=options.timeout) as client:
            verdict = options.ask(client, options)
    except OSError as error:
        what = f"{error.filename} cannot be read: {error.strerror}" if error.filename else error
        print(f"error: {what}", file=sys.stderr)
        return 2
    except (QWEDError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    _show(verdict, options.json)
    return 0 if verdict["verified"] else 1


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print the whole verdict as JSON")
    common.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait for a verdict")
    parser = argparse.ArgumentParser(prog="qwed", description="Verify claims, constraints and programs.")
    parser.add_argument("--version", action="version", version=f"qwed {VERSION} (airlock-verify)")
    verbs = parser.add_subparsers(required=True, metavar="verb")
    verify = verbs.add_parser("verify", parents=[common], help="verify a claim of whatever kind")
    verify.add_argument("query")
    verify.set_defaults(ask=lambda client, o: client.verify(o.query))
    logic = verbs.add_parser("verify-logic", parents=[common], help="verify constraints in QWED-Logic")
    logic.add_argument("query")
    logic.set_defaults(ask=lambda client, o: client.verify_logic(o.query))
    code = verbs.add_parser("verify-code", parents=[common], help="look for what is dangerous in a program")
    code.add_argument("-f", "--file", required=True)
    code.add_argument("-l", "--language", help="the language, when the file's name does not say it")
    code.set_defaults(
        ask=lambda client,
        o: client.verify_code(_read(o.file), o.language or _LANGUAGES.get(Path(o.file).suffix.lower(), "python"))
    )
    batch = verbs.add_parser("batch", parents=[common], help="verify the items of a JSON file")
    batch.add_argument("-f", "--file", required=True)
    batch.set_defaults(ask=lambda client, o: client.verify_batch(_items(o.file)))
    return parser


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read(MAX_FILE)
    data = Path(path).read_bytes()
    if len(data) > MAX_FILE:
        raise ValueError(f"{path} has more than {MAX_FILE} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None


def _items(path: str) -> list[dict[str, object]]:
    try:
        data = strict_json.loads(_read(path))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    items = data.get("items") if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise ValueError(f'{path} is neither a list of items nor {{"items": […]}}')
    return items


def _show(verdict: Verdict, whole: bool) -> None:
    if whole:
        print(json.dumps(verdict.to_dict(), ensure_ascii=False, indent=2))
        return
    print(f"{verdict['status']}: {verdict['message']}")
    if verdict.get("model"):
        print("  model: " + ", ".join(f"{k} = {v}" for k, v in verdict["model"].items()))
    for finding in verdict.get("vulnerabilities") or ():
        print(f"  line {finding['line']}: {finding['severity']}: {finding['message']}")
    for result in verdict.get("results") or ():
        print(f"  {result['status']}: {result.get('query', '')[:60]}: {result['message']}")


if __name__ == "__main__":
    raise SystemExit(main())
