"""The SQL engine: statements parsed by dialect, held against a schema, tautologies by evaluation."""

from qwed_new.engines.sql.decide import verify_sql

__all__ = ["verify_sql"]
