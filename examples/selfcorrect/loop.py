#!/usr/bin/env python3
"""Let a model repair its own code, with a hard cap: a loop for agent hosts.

    loop.py TASK MODEL [ARG ...]

MODEL is a command that reads a task on stdin and prints a Python program. The
program runs with `airlock run`. When it fails in a way that is worth another
attempt, the task is put to the model again with the error below it. After
MAX_RETRIES attempts, or at once for a failure that no retry corrects, the loop
gives up and says so. One line of JSON is printed: the program's data, or
{"error": "handoff_required"}, which asks a person to take over.
"""

import json
import os
import subprocess
import sys

MAX_RETRIES = 3


def generate(model, task):
    """Returns the program that the model command writes for the task."""
    return subprocess.run(model, input=task, capture_output=True, text=True, check=True).stdout


def run(code):
    """Runs a program in Airlock and returns the result part of its envelope."""
    airlock = os.environ.get("AIRLOCK", "airlock")
    done = subprocess.run([airlock, "run", "-"], input=code, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["result"]


def solve(task, model):
    """Returns the data of the first program that succeeds, or the handoff."""
    for attempt in range(1, MAX_RETRIES + 1):
        result = run(generate(model, task))
        if result["ok"]:
            return result["data"]
        error = result["error"]
        # What raised the error knows whether another attempt can help: the
        # flag says it, the type alone does not.
        if not error["retryable"]:
            break
        task += f"\n\nPrevious error (attempt {attempt}): {error['message']}"
    return {"error": "handoff_required"}


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print(json.dumps(solve(sys.argv[1], sys.argv[2:])))
