"""verify_code_safety: rules with alternatives, for each language."""

from __future__ import annotations

import re
from typing import Any

from qwed_new.engines.code.findings import Finding

# The rules that are checked: search pattern, severity, message, alternative.
SQL_RULES = {
    "drop_table": (
        "DROP",
        "critical",
        "Destructive SQL: DROP operation detected",
        "Consider using soft delete or archiving instead of DROP",
    ),
    "truncate_table": (
        "TRUNCATE", "critical", "Destructive SQL: TRUNCATE operation detected",
        "Delete selected rows with a WHERE clause"),
    "delete_without_where": (
        "DELETE",
        "high",
        "Destructive SQL: DELETE operation detected",
        "Mark rows as deleted, or name them in a WHERE clause and ask",
    ),
    "update_rows": (
        "UPDATE", "high", "SQL changes data: UPDATE operation detected",
        "Ask for the change through a reviewed migration"),
    "insert_rows": (
        "INSERT", "medium", "SQL changes data: INSERT operation detected",
        "Ask for the change through a reviewed migration"),
    "merge_rows": (
        "MERGE", "high", "SQL changes data: MERGE operation detected",
        "Ask for the change through a reviewed migration"),
    "alter_table": (
        "ALTER", "critical", "SQL changes the schema: ALTER operation detected", "Use a reviewed migration"),
    "create_object": (
        "CREATE", "high", "SQL changes the schema: CREATE operation detected", "Use a reviewed migration"),
    "grant_rights": ("GRANT", "critical", "SQL changes rights: GRANT operation detected", "Ask an administrator"),
}
OTHER_RULES = (
    "sql_injection", "sql_function", "sql_several_statements", "sql_hidden_text", "dangerous_pattern",
    "unresolved_reflection", "source_encoding",
    "blocked_command", "computed_command", "command_substitution", "file_write", "path_violation",
    "variable_assignment", "function_definition", "too_large", "too_deep",
)  # fmt: skip
RULES = (*SQL_RULES, *OTHER_RULES)

_ISSUES = (
    (re.compile(r"always true|UNION with|holds for every row"), "sql_injection", "critical",
        "Bind values as parameters"),
    (re.compile(r"function not allowed|system table"), "sql_function", "high", "Use functions that only compute"),
    (re.compile(r"statements where one"), "sql_several_statements", "high", "Send one statement"),
    (re.compile(r"comment hides"), "sql_hidden_text", "high", "Leave comments out"),
)


def of_sql(issues: list[str]) -> list[Finding]:
    """The findings that the SQL engine's issues are."""
    findings = []
    for issue in issues:
        for rule, (word, severity, message, alternative) in SQL_RULES.items():
            if re.search(rf"(?:not a query|mutation[\w ]*): {word}", issue):
                findings.append(Finding(rule, severity, message, 1, alternative))
                break
        else:
            rule, severity, alternative = next(((r, s, a) for p, r, s, a in _ISSUES if p.search(issue)),
                ("dangerous_pattern", "high", ""))
            findings.append(Finding(rule, severity, issue, 1, alternative))
    return findings


def report(code: str, language: str, findings: list[Finding]) -> dict[str, Any]:
    """The answer of verify_code_safety."""
    violations = [
        {
            "rule": f.rule,
            "severity": f.severity,
            "message": f.message,
            "alternative": f.alternative or "Leave this out, or ask for a tool that does it",
        }
        for f in findings
    ]
    answer: dict[str, Any] = {
        "safe": not violations, "violations": violations, "warnings": [], "language": language,
        "code_length": len(code), "rules_checked": len(RULES),
    }  # fmt: skip
    if violations:
        answer["blocked_reason"] = violations[0]["message"]
        answer["alternative"] = violations[0]["alternative"]
    return answer
