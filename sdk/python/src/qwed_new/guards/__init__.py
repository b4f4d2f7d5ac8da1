"""CodeGuard and SQLGuard."""

from qwed_new.guards.code_guard import CodeGuard
from qwed_new.guards.sql_guard import SQLGuard

__all__ = ["CodeGuard", "SQLGuard"]
