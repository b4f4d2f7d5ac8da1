"""The exceptions of the clients."""

from __future__ import annotations


class QWEDError(Exception):
    """A failure between the client and its service. `status` is that of the corresponding verdict: INCONCLUSIVE."""

    status = "INCONCLUSIVE"

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.message, self.code = message, code


class QWEDConnectionError(QWEDError):
    """The service could not be reached, or did not answer in time."""


class QWEDAuthenticationError(QWEDError):
    """The service does not accept the API key, or not for this."""


class QWEDRateLimitError(QWEDError):
    """The service refuses more requests for now. `retry_after` is the number of seconds after which it can be asked
    again, or None if the service gave none."""

    def __init__(self, message: str, code: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.retry_after = retry_after


class QWEDResponseError(QWEDError):
    """The service answered with an error, or with something that is not a verdict."""


class QWEDServiceRequired(QWEDError):
    """This method needs a service: give base_url, or set QWED_BASE_URL."""


class QWEDBlockedError(QWEDError):
    """A tool call or an output was refused."""

    status = "BLOCKED"
