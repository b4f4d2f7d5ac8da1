"""SQLGuard: may this query be sent?"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from qwed_new.engines.sql import verify_sql


class SQLGuard:
    """Judges queries; allowed_tables limits what they may name, allow_mutations lets INSERT, UPDATE, DELETE and MERGE
    pass."""

    def __init__(
        self, allowed_tables: Collection[str] | None = None, dialect: str | None = None,
        allow_mutations: bool = False) -> None:
        self._allowed_tables = allowed_tables
        self._dialect = dialect
        self._allow_mutations = allow_mutations

    def verify_query(
        self, query: str, allowed_tables: Collection[str] | None = None, schema_ddl: str | None = None,
        dialect: str | None = None
    ) -> dict[str, Any]:
        """A dict with `verified`, `status`, `message`, `issues` and `evidence`."""
        tables = allowed_tables if allowed_tables is not None else self._allowed_tables
        verdict = verify_sql(query, schema_ddl, dialect or self._dialect, tables, self._allow_mutations)
        return verdict.to_dict()
