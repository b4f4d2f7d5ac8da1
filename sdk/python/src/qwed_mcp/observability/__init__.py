"""What a pipeline consists of."""

from qwed_mcp.observability.aibom import AIBOMGenerator

__all__ = ["AIBOMGenerator"]
