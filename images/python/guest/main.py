"""The program that an Airlock sandbox starts to run Python code.

    /usr/bin/python3 -I -S -B -X utf8 /opt/airlock/guest/main.py

-I and -S keep the environment, the working directory and `site` out of the
interpreter's start; -B writes no bytecode, because nothing would read it; -X
utf8 is the encoding of everything. This file stays small: Python never caches
the bytecode of the file it is started with.
"""

import gc
import sys

# All that is loaded stays: to look for garbage among it takes a fifth of the start. `session` ends this.
gc.disable()

# The code's directory comes first, as for a script: the client and the wrappers are
# in it. Code cannot import the guest by accident.
sys.path[:0] = ["/opt/airlock/guest", "/workspace"]
# Where an image with packages has them; they come after the standard library.
sys.path.append("/usr/lib/python3/dist-packages")

from airlock_guest import bundle  # noqa: E402

bundle.use()

from airlock_guest import session  # noqa: E402

del sys.path[0]

session.main()
