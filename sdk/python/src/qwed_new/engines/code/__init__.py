"""The code engine: each language by its own parser."""

from qwed_new.engines.code.findings import Finding
from qwed_new.engines.code.verdicts import LANGUAGES, is_program, verify_code, verify_code_safety

__all__ = ["LANGUAGES", "Finding", "is_program", "verify_code", "verify_code_safety"]
