"""One JSON request in, one JSON verdict out: the entry point of sandboxes and workers.

`python -m qwed_sdk.engine` answers the one request on stdin; with `--serve` it answers one
line after another. A sandbox imports this module and calls preload() before its checkpoint,
and answer_json() after it.

A request is `{"engine": NAME, "arguments": {...}}`; ENGINES lists the names. Whatever comes
in, a verdict goes out: an engine that fails is INCONCLUSIVE, a malformed request UNKNOWN.
"""

from __future__ import annotations

import importlib
import inspect
import random
import sys
from collections.abc import Callable, Mapping

from qwed_new import strict_json
from qwed_new.limits import TimeLimit, TooLarge, limited
from qwed_new.verdict import Status, Verdict

MAX_REQUEST = 16 * 1024 * 1024
SECONDS = 30.0

ENGINES: dict[str, str] = {
    "math": "qwed_new.engines.math:verify_math",
    "math_expression": "qwed_new.engines.math:verify_math_expression",
    "logic": "qwed_new.engines.logic:verify_logic",
    "logic_statement": "qwed_new.engines.logic:verify_logic_statement",
    "sql": "qwed_new.engines.sql:verify_sql",
    "code": "qwed_new.engines.code:verify_code",
    "fact": "qwed_new.engines.facts:verify_fact",
    "stats": "qwed_new.engines.stats:verify_stats",
    "image": "qwed_new.engines.image:verify_image",
    "consensus": "qwed_new.engines.consensus:verify_consensus",
    "batch": "qwed_new.engines.batch:verify_batch",
    "auto": "qwed_new.engines.claims:verify",
    "skill": "qwed_mcp.security.skills:verify_manifest",
}

# One small question for each engine that is slow at its first.
_WARM: tuple[tuple[str, dict[str, str]], ...] = (
    ("math", {"expression": "(x + 1)**2 = x**2 + 2*x + 1"}),
    ("math", {"expression": "sin(x)**2 + cos(x)**2 = 1"}),
    ("logic", {"query": "(AND (GT x 5) (LT y 10))"}),
    ("sql", {"query": "SELECT a FROM t WHERE a = 1 OR b = 2", "schema_ddl": "CREATE TABLE t (a INT, b INT)"}),
    ("code", {"code": "import math\nprint(math.pi)"}),
)

# Modules that scripts import and engines do not, and modules of libraries that load at their first use.
_SCRIPT_MODULES = (
    "qwed_new.engines.math_engine", "qwed_new.engines.logic_engine", "qwed_new.guards", "qwed_finance", "qwed_ucp",
    "qwed_mcp.security", "sympy.assumptions.wrapper", "sympy.integrals.heurisch", "sympy.integrals.manualintegrate",
    "sympy.integrals.risch", "sympy.solvers",
)


def resolve(name: str) -> Callable[..., Verdict]:
    """The function of an engine; KeyError for a name that is not in ENGINES."""
    module, _, function = ENGINES[name].partition(":")
    return getattr(importlib.import_module(module), function)


def preload() -> list[str]:
    """Import every engine with what it needs, and let each decide once; the names that work."""
    names = [name for name in ENGINES if resolve(name)]
    for name, arguments in _WARM:
        answer({"engine": name, "arguments": arguments})
    return names


def preload_scripts() -> Callable[[], None]:
    """Load what scripts of the gateway usually import, too, and let the guards that load libraries decide once. Return
    a small program to run in each restored sandbox while no script waits: it touches the memory that scripts touch."""
    from qwed_legal import DeadlineGuard
    from qwed_sdk.guards import ConfigGuard

    preload()
    for name in _SCRIPT_MODULES:
        importlib.import_module(name)
    DeadlineGuard().verify("2024-01-15", "30 business days", "2024-02-28")
    ConfigGuard().verify_config_safety({"name": "value"})
    return _rehearse


def _rehearse() -> None:
    from sympy import Symbol, expand
    from z3 import Int, Solver

    from qwed_sdk.guards import SystemGuard

    repr(expand((Symbol("x") + Symbol("y")) ** 2))
    solver, number = Solver(), Int("n")
    solver.add(number > 1, number < 3)
    repr(solver.check())
    SystemGuard().verify_shell_command("ls")


def _reseed() -> None:
    """New randomness for Python's and SymPy's generators: every process that is restored from one checkpoint has the
    state of that one."""
    random.seed()
    if sampler := sys.modules.get("sympy.core.random"):
        sampler.rng.seed()


def _call(name: str, arguments: Mapping[str, object]) -> Verdict:
    function = resolve(name)
    inspect.signature(function).bind(**arguments)
    return function(**arguments)


def answer(request: object, seconds: float = SECONDS) -> Verdict:
    """The verdict on one request, within `seconds`."""
    if not isinstance(request, Mapping) or not isinstance(request.get("engine"), str):
        return Verdict(Status.UNKNOWN, "none", 'a request is {"engine": NAME, "arguments": {...}}')
    if more := set(request) - {"engine", "arguments"}:
        return Verdict(Status.UNKNOWN, "none", f"a request has no member {min(map(str, more))!r}")
    name, arguments = str(request["engine"]), request.get("arguments", {})
    if name not in ENGINES:
        return Verdict(Status.UNKNOWN, "none", f"no engine {name!r}; there are {', '.join(ENGINES)}")
    if not isinstance(arguments, Mapping):
        return Verdict(Status.UNKNOWN, name, "arguments is not an object")
    _reseed()
    try:
        return limited(seconds, _call, name, arguments)
    except TypeError as error:
        return Verdict(Status.UNKNOWN, name, f"the arguments do not fit: {error}")
    except TimeLimit:
        return Verdict(Status.INCONCLUSIVE, name, f"not decided within {seconds:g} seconds", {"limit_seconds": seconds})
    except TooLarge as error:
        return Verdict(Status.BLOCKED, name, str(error))
    except (RecursionError, MemoryError):
        return Verdict(Status.BLOCKED, name, "the input is too deep or too large")
    except Exception as error:
        return Verdict(Status.INCONCLUSIVE, name, f"the engine failed: {type(error).__name__}")


def answer_json(text: str | bytes, seconds: float = SECONDS) -> str:
    """The verdict on a request in JSON, as one line of JSON."""
    if len(text) > MAX_REQUEST:
        return Verdict(Status.BLOCKED, "none", f"the request is larger than {MAX_REQUEST} bytes").to_json()
    try:
        request = strict_json.loads(text)
    except ValueError as error:
        return Verdict(Status.UNKNOWN, "none", f"the request is not JSON: {error}").to_json()
    return answer(request, seconds).to_json()


def main(arguments: list[str] | None = None) -> int:
    """Answer stdin. The exit code is 0 for every verdict."""
    given = sys.argv[1:] if arguments is None else arguments
    serve = "--serve" in given
    source, sink = sys.stdin.buffer, sys.stdout
    if not serve:
        print(answer_json(source.read(MAX_REQUEST + 1)), file=sink, flush=True)
        return 0
    if "--lazy" not in given:
        preload()
        print('{"ready": true}', file=sink, flush=True)
    while line := source.readline(MAX_REQUEST + 1):
        print(answer_json(line), file=sink, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
