"""Verifiers of banking: calculations with exact decimals, ISO 20022 messages."""

from qwed_finance.finance_verifier import FinanceVerifier
from qwed_finance.iso_guard import ISOGuard

__all__ = ["FinanceVerifier", "ISOGuard"]
