"""The guards of agent pipelines. Each answers with a dict: `verified`, `message`, and `risk` when it refuses."""

from qwed_sdk.guards.config_guard import ConfigGuard
from qwed_sdk.guards.exfiltration_guard import ExfiltrationGuard
from qwed_sdk.guards.mcp_poison_guard import MCPPoisonGuard
from qwed_sdk.guards.rag_guard import RAGGuard
from qwed_sdk.guards.reasoning_guard import SelfInitiatedCoTGuard
from qwed_sdk.guards.sovereignty_guard import SovereigntyGuard
from qwed_sdk.guards.system_guard import SystemGuard

__all__ = [
    "ConfigGuard", "ExfiltrationGuard", "MCPPoisonGuard", "RAGGuard", "SelfInitiatedCoTGuard", "SovereigntyGuard",
    "SystemGuard"]
