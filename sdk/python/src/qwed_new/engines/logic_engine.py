"""The import path of the logic engine that programs use."""

from qwed_new.engines.logic import verify_logic, verify_logic_statement

__all__ = ["verify_logic", "verify_logic_statement"]
