"""The code engine: each language by its own parser."""

from qwed_new.engines.code.findings import Finding
from qwed_new.engines.code.verdicts import LANGUAGES, verify_code, verify_code_safety

__all__ = ["LANGUAGES", "Finding", "verify_code", "verify_code_safety"]
