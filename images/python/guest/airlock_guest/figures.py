"""Attaches the figures that a program has drawn and left open, if it has attached nothing itself.

Outside of a sandbox, `plt.show()` or a notebook shows them.
"""

import sys
from posix import write

_MOST = 4


def attach_open(ending):
    """Attach the open figures of a program that has ended well; list them on stderr."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None or ending.failure is not None or ending.script:
        return
    try:
        from client import attachments

        if attachments.sent:
            return
        numbers = plt.get_fignums()
        for number in numbers[:_MOST]:
            file = attachments.attach(plt.figure(number), name=f"figure-{number}.png")
            _tell(f"the figure {number} was open at the end, so it is attached as {file['name']}; client.attach(fig) "
                  "attaches only what it is given, and plt.close() closes a figure")
        if len(numbers) > _MOST:
            _tell(f"{len(numbers) - _MOST} more open figures are not attached")
    except BaseException as problem:  # the code may have replaced anything
        _tell(f"the open figures could not be attached: {type(problem).__name__}")


def _tell(text):
    try:
        write(2, f"airlock: {text}\n".encode(errors="backslashreplace"))
    except OSError:  # the code has closed its stderr
        return
