"""The logic engine: constraints and arguments, decided by Z3."""

from qwed_new.engines.logic.arguments import verify_logic_statement
from qwed_new.engines.logic.constraints import verify_logic

__all__ = ["verify_logic", "verify_logic_statement"]
