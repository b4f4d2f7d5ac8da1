"""Governance of tool calls: the risk gateway, provenance of skills, the AI bill of materials."""
