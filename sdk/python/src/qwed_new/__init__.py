"""Engines that decide claims, and guards based on them.

This package opens no connections. If an engine cannot decide a claim, the verdict is
INCONCLUSIVE; an engine never guesses, and nothing is VERIFIED by default.
"""

from qwed_new.verdict import Status, Verdict

__all__ = ["Status", "Verdict"]
