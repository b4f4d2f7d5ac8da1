"""Judges texts with the Python port: a JSON string a line in, the reason why it is not a read out."""

import importlib.util
import json
import sys

spec = importlib.util.spec_from_file_location("reads", sys.argv[1])
assert spec and spec.loader
reads = importlib.util.module_from_spec(spec)
sys.modules["reads"] = reads
spec.loader.exec_module(reads)
for line in sys.stdin:
    print(json.dumps(reads.why_not(json.loads(line))), flush=True)
