"""Verification of commerce: do carts and checkouts add up, and may they be in their state?"""

from qwed_ucp.verifier import UCPVerifier

__all__ = ["UCPVerifier"]
