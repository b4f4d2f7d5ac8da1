"""Advice on files, packages, the network and whatever else of home is not in here."""

import os
import re
import sys

from airlock_guest.disk import is_disk_full
from airlock_guest.frames import line_of


def _installed():
    """Return what the image has beside the standard library, as its operator asked for it: ", NAME, …"."""
    try:
        with open("/opt/airlock/packages.txt", encoding="utf-8") as file:
            return "".join(f", {name}" for name in file.read().splitlines())
    except OSError:  # an image without packages
        return ""


_ONLY = f"only the standard library{_installed()} and the wrappers in `servers` are installed"
_NO_NETWORK = "the sandbox has no network: call tools through the wrappers in `servers`"
_OTHER_HOST = "the run reaches only the hosts in its network list that policy permits"
_NO_ENVIRONMENT = (
    "there are no environment variables and no credentials in here, and none are needed: the tools hold their own"
)
_INSTEAD = {
    "pandas": f"{_ONLY}: use lists of dicts, csv, statistics and collections",
    "polars": f"{_ONLY}: use lists of dicts, csv, statistics and collections",
    "numpy": f"{_ONLY}: use math, statistics and lists",
    "scipy": f"{_ONLY}: use math and statistics",
    "matplotlib": f"{_ONLY}; nothing can be drawn: return the numbers",
    "seaborn": f"{_ONLY}; nothing can be drawn: return the numbers",
    "plotly": f"{_ONLY}; nothing can be drawn: return the numbers",
    "yaml": f"{_ONLY}: use json",
    "dateutil": f"{_ONLY}: use datetime.fromisoformat",
    "pytz": f"{_ONLY}: use zoneinfo",
    "bs4": f"{_ONLY}: use html.parser or re",
    "lxml": f"{_ONLY}: use xml.etree.ElementTree or html.parser",
    "tabulate": f"{_ONLY}: use str.ljust and '\\n'.join",
    "tqdm": f"{_ONLY}: leave the progress bar out",
    "pydantic": f"{_ONLY}: use dataclasses",
    "dotenv": "there are no credentials in here, and none are needed: the tools hold their own",
    "nest_asyncio": "it is not needed: a top-level `await` works",
    "pip": "nothing can be installed: " + _ONLY,
    "setuptools": "nothing can be installed: " + _ONLY,
    "sqlite3": _ONLY,
    "IPython": "this is not a notebook: assign what you want to return to `result`",
}
_NETWORK = ("requests", "httpx", "aiohttp", "urllib3", "websockets",
            "openai", "anthropic", "boto3", "paramiko", "playwright", "selenium", "google")
_MCP = ("mcp", "fastmcp", "langchain", "langchain_mcp_adapters")
_INSTALLERS = re.compile(r"\b(?:pip3?|conda|uv|apt(?:-get)?|npm|npx|yarn|apk|poetry)\b")
_NETWORK_PROGRAMS = re.compile(r"\b(?:curl|wget|git|ssh|ping|gh|aws|kubectl|docker|psql|nc)\b")
_OWN_PLACES = ("/workspace", "/tmp")


def _missing_module(failure, message, namespace, code):
    if not isinstance(failure, ModuleNotFoundError) or not failure.name:
        return ""
    package, _, module = failure.name.partition(".")
    from airlock_guest import hints_names

    if package == "servers" and module:
        return hints_names.nearest(module, hints_names.servers(), "servers")
    if package in ("servers", "client") or package in sys.stdlib_module_names:
        return ""
    if server := hints_names.server_named(package):
        return f"write `from servers import {server}`"
    if package in ("mcp_client", "airlock_client", "catalog"):
        return f"write `from client.{'catalog' if package == 'catalog' else 'mcp_client'} import …`"
    if package in _MCP or package in hints_names.PRODUCTS:
        return f"tools are called through the wrappers: {hints_names.example(code)}"
    if package in _INSTEAD:
        return _INSTEAD[package]
    return f"{_ONLY}, and there is no network: call tools through the wrappers" if package in _NETWORK else _ONLY


def _relative_import(failure, message, namespace, code):
    if isinstance(failure, ImportError) and "attempted relative import" in message:
        return "the program is not a part of a package: leave the dot out, as in `from servers import …`"
    return ""


def _python_version(failure, message, namespace, code):
    if isinstance(failure, (ImportError, AttributeError)) and not isinstance(failure, ModuleNotFoundError):
        if re.search(
            r"'(?:override|batched|TypeAliasType|PythonFinalizationError|ReadOnly|TypeIs|deprecated)'", message):
            return "this is Python 3.11, which has not got it"
    return ""


def _no_stdin(failure, message, namespace, code):
    if type(failure).__name__ == "JSONDecodeError" and "stdin" in line_of(failure, code):
        return "stdin is empty in here: put the values into the code"
    if isinstance(failure, EOFError) and "EOF when reading a line" in message:
        return "stdin is empty in here: put the values into the code"
    return ""


def _no_network(failure, message, namespace, code):
    if type(failure).__name__ in ("gaierror", "URLError") or (
        isinstance(failure, OSError) and failure.errno in (97, 99, 101, 113, 111)
    ):
        return _OTHER_HOST if _has_network() else _NO_NETWORK
    return ""


def _has_network():
    with open("/proc/net/dev", encoding="ascii") as devices:
        return "eth0:" in devices.read()


def _program(failure, message, namespace, code):
    """subprocess: pip, npm, curl and whatever else is not in the image"""
    if type(failure).__name__ == "CalledProcessError":
        text = " ".join(failure.cmd) if isinstance(failure.cmd, (list, tuple)) else str(failure.cmd)
    elif isinstance(failure, FileNotFoundError) and any(
        frame in _files(failure) for frame in ("subprocess.py", "os.py")
    ):
        text = str(failure.filename)
    else:
        return ""
    if _INSTALLERS.search(text):
        return "nothing can be installed: " + _ONLY
    if _NETWORK_PROGRAMS.search(text):
        return _NO_NETWORK
    if re.search(r"\bpython\b(?!3)", text):
        return "the program is called python3; better, write what it is to do into this program"
    if isinstance(failure, OSError) or failure.returncode == 127:
        return "the image has a shell, coreutils, grep, sed, awk, find and tar, and no other programs"
    return ""


def _files(failure):
    names, at = set(), failure.__traceback__
    while at is not None:
        names.add(at.tb_frame.f_code.co_filename.rpartition("/")[2])
        at = at.tb_next
    return names


def _disk(failure, message, namespace, code):
    return "the sandbox's disk is full: keep less, or work in pieces" if is_disk_full(failure) else ""


def _file(failure, message, namespace, code):
    if not isinstance(failure, OSError):
        return ""
    path = failure.filename
    if isinstance(failure, FileNotFoundError) and isinstance(path, (str, bytes, os.PathLike)):
        path = os.fspath(path)
        path = path.decode("utf-8", "replace") if isinstance(path, bytes) else path
        if path.startswith("/workspace/servers") or path.startswith("servers/"):
            return "the wrappers are Python packages: import them, as in `from servers import …`"
        outside = os.path.isabs(path) and not path.startswith(_OWN_PLACES)
        if outside and re.search(
            r"""['"][wax]b?\+?['"]|\b(?:write_|mkdir|makedirs|to_csv|copy)""", line_of(failure, code)):
            return (
                "only /workspace and /tmp can be written, and only files in /workspace/session are there in the next "
                "run: return the data, attach it with client.attach, or write it with a tool"
            )
        if (os.path.isabs(path) and not path.startswith(_OWN_PLACES)) or path.startswith("~") or re.match(
            r"^[A-Za-z]:[\\/]", path):
            return (
                "files of the host are not in here: read them with a tool, if a server has one, or put the data into"
                " the code"
            )
        return _of_earlier_run(path)
    if failure.errno in (30, 13, 1):  # EROFS, EACCES, EPERM
        return "only /workspace and /tmp can be written, and not the wrappers in them"
    if failure.errno == 27:  # EFBIG
        return "no file may be larger than the sandbox's disk: keep less, or work in pieces"
    return ""


def _of_earlier_run(path):
    """Say which files of earlier runs there are."""
    kept = []
    for place, directories, files in os.walk("/workspace/session"):
        directories.sort()
        kept += [os.path.join(place, name) for name in sorted(files)]
        if len(kept) > 10:
            break
    if not kept:
        return (
            "of earlier runs, only files in /workspace/session are kept, and there are none: "
            "make the file in this program, or read it with a tool"
        )
    same = [each for each in kept if os.path.basename(each) == os.path.basename(path)]
    if same:
        return f"it is kept as {same[0]}"
    more = ", …" if len(kept) > 10 else ""
    return f"of earlier runs, only files in /workspace/session are kept: {', '.join(kept[:10])}{more}"


def _time(failure, message, namespace, code):
    if isinstance(failure, TimeoutError) and not message:
        return (
            "a time limit of the code's own was over (wait_for, asyncio.timeout, result(timeout=…)): give it more"
            " time, or do less"
        )
    if isinstance(failure, RecursionError):
        return "write a loop in place of the recursion, or check where it ends"
    if isinstance(failure, TypeError) and message == "exceptions must derive from BaseException":
        return "write `raise RuntimeError(…)`"
    return ""


def _environment(failure, message, namespace, code):
    if isinstance(failure, KeyError) and failure.__traceback__ and re.search(r"environ\b", line_of(failure, code)):
        return _NO_ENVIRONMENT
    if isinstance(failure, IndexError) and "sys.argv" in line_of(failure, code):
        return "the code gets no arguments: put the values into it"
    wanted = re.findall(r"""environ(?:\.get)?\s*[(\[]\s*['"](\w+)|getenv\(\s*['"](\w+)""", code)
    if any((first or second) in message for first, second in wanted):
        return _NO_ENVIRONMENT
    return ""


ADVISERS = (
    _disk, _time, _missing_module, _relative_import, _python_version, _no_stdin, _no_network, _program, _environment,
    _file)
