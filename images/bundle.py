"""Writes the bundle of the Python image (see python/guest/airlock_guest/bundle.py).

    python3 -P -S -s -c "$(cat bundle.py)" ROOT TREE

ROOT is the root file system with the standard library, TREE the one with Airlock's own files.
It starts the guest to find out which modules are loaded, and in which order.
"""

import marshal
import sys

root, tree = sys.argv[1:]
sys.path[:0] = [f"{tree}/opt/airlock/guest", f"{tree}/opt/airlock"]

order = []  # of the modules: a module is looked for just before its code is needed


class Finder:
    """Keeps the names of the modules that are looked for, and finds none."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        order.append(name)


sys.meta_path.insert(0, Finder)

from airlock_guest import bundle, session  # noqa: E402

session.load_usual()

# Directories of modules here, and their paths in a sandbox.
homes = [
    (f"{root}/usr/lib/python3.", "/usr/lib/python3."),
    (f"{tree}/opt/airlock/guest/", "/opt/airlock/guest/"),
    (f"{tree}/opt/airlock/client/", "/workspace/client/"),
]
index, code = {}, b""
for name in dict.fromkeys(order):
    if name not in sys.modules:  # nothing has found it
        continue
    spec = sys.modules[name].__spec__
    if not spec or not spec.cached:
        continue
    place = next((there + spec.origin[len(here):] for here, there in homes if spec.origin.startswith(here)), None)
    if place is not None:
        with open(spec.cached, "rb") as file:
            text = file.read()[16:]  # after what PEP 552 puts before the code
        index[name] = (place, len(code), len(text))
        code += text

head = marshal.dumps(index, 2)  # later versions depend on who else refers to an object
with open(tree + bundle.FILE, "wb") as file:
    file.write(len(head).to_bytes(8, "little") + head + code)
