"""The Python SDK of QWED: clients, cache, guards, integrations."""

from qwed_new.verdict import Status, Verdict
from qwed_sdk.async_client import QWEDAsyncClient
from qwed_sdk.cache import CacheContext, CacheStats, VerificationCache
from qwed_sdk.client import QWEDClient
from qwed_sdk.errors import (
    QWEDAuthenticationError,
    QWEDBlockedError,
    QWEDConnectionError,
    QWEDError,
    QWEDRateLimitError,
    QWEDResponseError,
    QWEDServiceRequired,
)
from qwed_sdk.settings import VERSION as __version__

VerificationResult = Verdict

__all__ = [
    "CacheContext",
    "CacheStats",
    "QWEDAsyncClient",
    "QWEDAuthenticationError",
    "QWEDBlockedError",
    "QWEDClient",
    "QWEDConnectionError",
    "QWEDError",
    "QWEDRateLimitError",
    "QWEDResponseError",
    "QWEDServiceRequired",
    "Status",
    "Verdict",
    "VerificationCache",
    "VerificationResult",
    "__version__",
]
