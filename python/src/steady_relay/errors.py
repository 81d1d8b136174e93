"""The errors of this package. Each is one of ``requests`` as well, so that what catches those catches these."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import requests

from ._report import Attempt, CallReport

__all__ = [
    "CallFailed",
    "CertificateRefused",
    "DirectWarning",
    "MaxRetriesExceeded",
    "NotCarried",
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


class NotCarried(RelayError):
    """The relay cannot carry requests to this place; in its words."""


class CallFailed(RelayError):
    """The relay gave a call up, or refused to send it again.

    ``response`` is what a client without this package would have got: the service's last answer, or the relay's words.
    """

    def __init__(self, message: str, *, report: CallReport, request: Any = None, response: Any = None) -> None:
        super().__init__(message, request=request, response=response)
        #: How the call went.
        self.report = report

    def __reduce__(self) -> Any:
        # An error crosses to another process with all that it has, as those of `requests` do.
        kind = next(kind for kind in type(self).__mro__ if kind.__module__ == __name__ and kind not in _library_of)
        library = _library_of.get(type(self))
        return _again, (kind, library, str(self), self.report), {"request": self.request, "response": self.response}

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


#: What each is in a library that has transports, so that what catches that catches it there as well.
_IN_LIBRARIES: dict[type[CallFailed], str] = {
    TotalTimeoutExceeded: "TimeoutException",
    ResendRefused: "RemoteProtocolError",
    CertificateRefused: "ConnectError",
    ProxyRefused: "ProxyError",
}
_in_libraries: dict[tuple[str, type[CallFailed]], Any] = {}
_library_of: dict[type, str] = {}


def in_library(library: str, kind: type[CallFailed]) -> Any:
    """The same error, which is one of httpx or httpx2 as well."""
    both = _in_libraries.get((library, kind))
    if both is None:
        other = getattr(importlib.import_module(library), _IN_LIBRARIES.get(kind, "TransportError"))
        both = type(kind.__name__, (kind, other), {"__module__": kind.__module__, "__qualname__": kind.__name__})
        both = _in_libraries.setdefault((library, kind), both)
        _library_of[both] = library
    return both


def _again(kind: type[CallFailed], library: str | None, message: str, report: CallReport) -> CallFailed:
    made: CallFailed = (kind if library is None else in_library(library, kind))(message, report=report)
    return made


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
        if why == "stopping" and report.may_have_run:
            return ResendRefused
        return _GAVE_UP.get(why, MaxRetriesExceeded)
    if report.outcome == "refused":
        return _REFUSED.get(why, ResendRefused)
    if report.outcome == "turned_away":
        return WishRefused if why == "bad_steady_header" else TurnedAway
    if report.outcome == "returned" and report.by_relay:
        # There was no answer that could be returned, only a connection that ended.
        return ResendRefused
    return None


#: How many relays one after the other may be lost to a call, and what is waited longer for each, in seconds.
STOPS = 8
_MOMENT = 0.1


def pause(report: CallReport | None, stops: int, rewinds: Callable[[], bool]) -> float | None:
    """How many seconds it is until the call goes on at another relay, having lost ``stops`` of them before; ``None``:
    this is its end.

    It goes on where the relay was stopped while it waited, or knows this process no more, where nothing of it can have
    run at the service, and where its body can be sent again.
    """
    if report is None or not report.by_relay or stops + 1 == STOPS:
        return None
    ended = (report.outcome, report.why)
    was_stopped = ended == ("gave_up", "stopping") and not report.may_have_run
    if not (was_stopped or ended == ("turned_away", "no_session")) or not rewinds():
        return None
    # As it would have waited there; a relay that begins is given a moment.
    return max(report.left, stops * _MOMENT)


def words(report: CallReport, status: int, said: str | None) -> str:
    """What an error says: the relay's own words, or what the service said at last and what was tried until then."""
    if report.by_relay and said:
        return said
    sends = len(report.attempts)
    tried = f"{sends} send{'' if sends == 1 else 's'}"
    asked = " ".join(part for part in (report.upstream, report.model and f"({report.model})") if part)
    told = f"{asked or 'the service'} answered {status} after {tried} and {report.waited:.1f} s of waiting"
    return f"{told}: {said}" if said else told
