"""Lets `linecache`, and with it tracebacks and `inspect`, find the code's text.

`linecache` reads no file with a name in angle brackets, so its cache has to hold
the text. It is not imported for that, because it takes longer than a small
run: if it is not there yet, the text is put in when somebody imports it.
"""

import sys

NAME = "<agent_code>"


def publish(code):
    """Make `code` known as the text of the file `<agent_code>`."""
    if "linecache" in sys.modules:
        _fill(sys.modules["linecache"], code)
    else:
        sys.meta_path.insert(0, _Finder(code))


def _fill(linecache, code):
    lines = code.splitlines(keepends=True)
    linecache.cache[NAME] = (len(code), None, lines, NAME)


class _Finder:
    """Fills the cache of `linecache` right after its import, then steps aside."""

    def __init__(self, code):
        self._code = code

    def find_spec(self, name, path=None, target=None):
        if name != "linecache":
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        load, code = spec.loader.exec_module, self._code

        def load_and_fill(module):
            load(module)
            _fill(module, code)

        spec.loader.exec_module = load_and_fill
        return spec
