"""Engines that decide a claim and the guards that rest on them.

Nothing here opens a connection. What an engine cannot decide it calls INCONCLUSIVE;
it never guesses, and nothing is VERIFIED by default.
"""

from qwed_new.verdict import Status, Verdict

__all__ = ["Status", "Verdict"]
