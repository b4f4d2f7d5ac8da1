"""Says how to repair code that failed for a reason that is common in here.

- `hints_names`: names that do not exist, and tools under other names;
- `hints_values`: results of calls, and how they are awaited;
- `hints_syntax`: code that does not parse;
- `hints_sandbox`: files, packages, the network and whatever else is not in here.
"""

import re
import sys

from airlock_guest import hints_names, hints_sandbox, hints_syntax, hints_values

_ADVISERS = (*hints_values.ADVISERS, *hints_sandbox.ADVISERS, *hints_syntax.ADVISERS, *hints_names.ADVISERS)


def hint(failure, message, namespace, code):
    """Return advice on an exception that reached the top of `code`, or ""."""
    for advise in _ADVISERS:
        advice = advise(failure, message, namespace, code)
        if advice:
            return advice
    return ""


def hint_for_exit(status, code):
    """Return advice on `sys.exit(status)`, or ""."""
    if "argparse" in sys.modules and status == 2:
        return "the code gets no arguments: put the values into the code in place of argparse"
    if isinstance(status, int) and re.search(r"(?:exit|SystemExit)\(\s*(?:asyncio\.run\(\s*)?\w+\(", code):
        return "what the function returns became the exit code: to return it, write `result = …`"
    if status is not None and not isinstance(status, int):
        return "sys.exit with a value is a failure: to return it, write `result = …`"
    return ""
