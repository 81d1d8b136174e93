"""The errors of this package. Each is one of ``requests`` as well, so that what catches those catches these."""

from __future__ import annotations

from typing import Any

import requests

from ._report import Attempt, CallReport

__all__ = [
    "CallFailed",
    "CertificateRefused",
    "DirectWarning",
    "MaxRetriesExceeded",
    "ProxyRefused",
    "RelayError",
    "RelayNotStarted",
    "ResendRefused",
    "TotalTimeoutExceeded",
    "TurnedAway",
    "WishRefused",
]


class DirectWarning(UserWarning):
    """A request goes to its service without the relay, which could not carry it as it was asked for.

    ``warnings.simplefilter("error", DirectWarning)`` makes it an error, and nothing is sent then.
    """


class RelayError(requests.exceptions.RequestException):
    """Something about the relay, or about a call that went through it."""


class RelayNotStarted(RelayError, requests.exceptions.ConnectionError):
    """There is no relay: its program is missing, or says that it cannot start."""


class CallFailed(RelayError):
    """The relay gave a call up, or refused to send it again.

    ``response`` is what a client without this package would have got: the service's last answer, or the relay's words.
    """

    def __init__(self, message: str, *, report: CallReport, request: Any = None, response: Any = None) -> None:
        super().__init__(message, request=request, response=response)
        #: How the call went.
        self.report = report

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The sends of the call, in their order."""
        return self.report.attempts


class MaxRetriesExceeded(CallFailed, requests.exceptions.RetryError, requests.exceptions.ConnectionError):
    """No send is left, or every service that may be asked is cut off for now."""


class TotalTimeoutExceeded(CallFailed, requests.exceptions.ConnectTimeout, TimeoutError):
    """The next send would have come later than the call may wait."""


class ResendRefused(CallFailed, requests.exceptions.ConnectionError):
    """It may have run at the service, and is not sent a second time."""


class CertificateRefused(ResendRefused, requests.exceptions.SSLError):
    """The certificate of the service is none that the relay trusts."""


class ProxyRefused(ResendRefused, requests.exceptions.ProxyError):
    """A proxy on the way to the service does not let the request through."""


class TurnedAway(CallFailed, requests.exceptions.ConnectionError):
    """The relay did not take the request."""


class WishRefused(TurnedAway, requests.exceptions.InvalidHeader):
    """The relay cannot do what ``patience``, ``profile`` or another wish asks for."""


_GAVE_UP: dict[str, type[CallFailed]] = {
    "patience_spent": TotalTimeoutExceeded,
    "told_to_wait_longer": TotalTimeoutExceeded,
    "stopping": TotalTimeoutExceeded,
}
_REFUSED: dict[str, type[CallFailed]] = {"certificate": CertificateRefused, "proxy": ProxyRefused}


def kind_of(report: CallReport) -> type[CallFailed] | None:
    """The error for a call that ended like this; ``None`` where it ended with an answer."""
    why = report.why or ""
    if report.outcome == "gave_up":
        return _GAVE_UP.get(why, MaxRetriesExceeded)
    if report.outcome == "refused":
        return _REFUSED.get(why, ResendRefused)
    if report.outcome == "turned_away":
        return WishRefused if why == "bad_steady_header" else TurnedAway
    return None
