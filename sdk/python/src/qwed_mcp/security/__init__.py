"""The risk gateway and the provenance of skills."""

from qwed_mcp.security.gateway import RiskBasedExecutionGateway
from qwed_mcp.security.skills import SkillProvenanceGuard

__all__ = ["RiskBasedExecutionGateway", "SkillProvenanceGuard"]
