"""The components of a pipeline."""

from qwed_mcp.observability.aibom import AIBOMGenerator

__all__ = ["AIBOMGenerator"]
