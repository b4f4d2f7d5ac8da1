"""Writes the bundle of the Python image (see python/guest/airlock_guest/bundle.py).

    python3 -P -S -s -c "$(cat bundle.py)" ROOT TREE

ROOT is the root file system with the standard library, TREE the one with Airlock's own files.
It starts the guest to find out which modules are loaded.
"""

import marshal
import sys

root, tree = sys.argv[1:]
sys.path[:0] = [f"{tree}/opt/airlock/guest", f"{tree}/opt/airlock"]
before = set(sys.modules)

from airlock_guest import bundle, session  # noqa: E402

session.load_usual()

# The client is left out: the guest loads the one that the wrappers bring.
homes = [(root, "/usr/lib/python3."), (tree, "/opt/airlock/guest/")]
index, code = {}, b""
for name in sorted(set(sys.modules) - before):
    spec = getattr(sys.modules[name], "__spec__", None)  # which `typing.io` has none of
    home = next((home for home, below in homes if spec and spec.cached and spec.origin.startswith(home + below)), None)
    if home is not None:
        with open(spec.cached, "rb") as file:
            text = file.read()[16:]  # after what PEP 552 puts before the code
        index[name] = (spec.origin.removeprefix(home), len(code), len(text))
        code += text

head = marshal.dumps(index, 2)  # later versions depend on who else refers to an object
with open(tree + bundle.FILE, "wb") as file:
    file.write(len(head).to_bytes(8, "little") + head + code)
