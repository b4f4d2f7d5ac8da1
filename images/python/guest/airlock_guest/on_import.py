"""Does something to a module when it is imported, without importing it for that.

A small run ends sooner than some modules of the standard library load, so what
the guest has to change in them waits until somebody wants them.
"""

import sys
from _frozen_importlib_external import PathFinder  # importlib.machinery's, without importing that


def when_imported(name, change):
    """Call `change(module)` now if the module is loaded, else right after its first import."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, change))


class _Finder:
    """Finds one module as `PathFinder` does, and steps aside."""

    def __init__(self, name, change):
        self._name = name
        self._change = change

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        load, change = spec.loader.exec_module, self._change

        def load_and_change(module):
            load(module)
            change(module)

        spec.loader.exec_module = load_and_change
        return spec
