"""Does something to a module when it is imported, without importing it for that.

A small run ends sooner than some modules of the standard library load, so what
the guest has to change in them waits until they are imported.
"""

import sys
from _frozen_importlib import _find_spec  # what `import` itself asks
from _functools import partial


def when_imported(name, change):
    """Call `change(module)` now if the module is loaded, else right after its first import."""
    if name in sys.modules:
        change(sys.modules[name])
        return

    def load_and_change(load, module):
        load(module)
        change(module)

    sys.meta_path.insert(0, _Finder(name, load_and_change))


def import_without(name, optional):
    """Let the module `name` load as if the module `optional`, which it can do without, did not exist."""

    def load_without(load, module):
        hide = optional not in sys.modules
        if hide:
            sys.modules[optional] = None
        try:
            load(module)
        finally:
            if hide:
                del sys.modules[optional]

    sys.meta_path.insert(0, _Finder(name, load_without))


class _Finder:
    """Finds one module as the other finders do, lets a function load it, and steps aside."""

    def __init__(self, name, load):
        self._name = name
        self._load = load

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = _find_spec(name, path)
        if spec is not None:
            spec.loader.exec_module = partial(self._exec_module, spec.loader, spec.loader.exec_module)
        return spec

    def _exec_module(self, loader, load, module):
        del loader.exec_module  # the remaining loader is the usual one
        self._load(load, module)
