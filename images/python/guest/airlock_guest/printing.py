"""A print function that is fast for texts and numbers.

Python's own writes each of its arguments, each space and the end of the line by
itself, through all layers of the stream: four times for `print("line", i)`.
"""

import sys

_type, _map, _str = type, map, str  # the code may replace the builtins
_PLAIN = frozenset({str, int, float, bool, _type(None)})  # whose text no code of the program makes


def printing(original, stream):
    """Return a print function that writes a line at once if it goes to `stream`, and otherwise calls `original`."""

    def print(*values, **options):
        if not options and sys.stdout is stream:
            for value in values:
                if _type(value) not in _PLAIN:
                    break
            else:
                try:
                    line = " ".join(_map(_str, values)) + "\n"
                except ValueError:  # an integer with too many digits: the values before it are printed
                    return original(*values)
                stream.write(line)
                return None
        return original(*values, **options)

    print.__module__, print.__qualname__ = original.__module__, original.__qualname__
    print.__doc__, print.__text_signature__ = original.__doc__, original.__text_signature__
    return print
