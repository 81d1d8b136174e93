"""What is asked of the relay for one call, as headers that end there. What they mean is decided there, too."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Union
from urllib.parse import urlsplit

from ._report import HEADER
from .errors import DirectWarning

#: A time: ``"30s"``, a number of seconds, or a :class:`datetime.timedelta`.
Time = Union[str, float, timedelta]

#: What is longer is a slip, says the relay.
_LONGEST = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Wishes:
    """The wishes for a call."""

    patience: Time | None = None
    profile: str | None = None

    def __post_init__(self) -> None:
        if self.patience is not None:
            _written(self.patience)

    def headers(self, read_timeout: float | None) -> dict[str, str]:
        """As headers; ``read_timeout``: the client hangs up after so many seconds without a byte."""
        wishes = {HEADER: "call"}
        if self.patience is not None:
            wishes["x-steady-patience"] = _written(self.patience)
        if self.profile is not None:
            wishes["x-steady-profile"] = self.profile
        if read_timeout is not None and 0 < read_timeout <= _LONGEST:
            wishes["x-steady-limit"] = _written(read_timeout)
        return wishes


_asked: ContextVar[Wishes] = ContextVar("steady_relay_wishes")
_NONE = Wishes()


@contextmanager
def wishes(patience: Time | None = None, profile: str | None = None) -> Iterator[None]:
    """Within it, calls of this thread or task are made with these wishes, by whichever client.

    What is not named here is as it was around it. Threads that are started within do not inherit it.
    """
    token = _asked.set(_laid_over(_asked.get(_NONE), Wishes(patience, profile)))
    try:
        yield
    finally:
        _asked.reset(token)


def now(usual: Wishes) -> Wishes:
    """The wishes of the call that is being made, and the usual ones where it has none."""
    return _laid_over(usual, _asked.get(_NONE))


def _laid_over(below: Wishes, above: Wishes) -> Wishes:
    return replace(
        below,
        patience=below.patience if above.patience is None else above.patience,
        profile=below.profile if above.profile is None else above.profile,
    )


def _written(time: Time) -> str:
    if isinstance(time, str) and time.strip():
        return time
    if isinstance(time, timedelta):
        time = time.total_seconds()
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise TypeError(f"patience is a time: seconds, a timedelta, or a text such as '30s', not {time!r}")
    # Not a number is neither less nor more.
    if not 0 <= time <= _LONGEST:
        raise ValueError(f"patience is a time from 0 to seven days, not {time!r}")
    return f"{round(time * 1000)}ms"


#: The modules that stand between a caller and us.
_BETWEEN = ("steady_relay", "requests", "httpx", "httpx2", "openai", "anthropic", "contextlib")


def goes_direct(url: str, why: str) -> None:
    """Says that a request goes to its service without the relay, as a warning about the line that made it."""
    warns_of_direct(f"{origin(url)} is asked without the relay: {why}")


def warns_of_direct(message: str) -> None:
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DirectWarning, stacklevel=level)


def origin(url: str) -> str:
    """Scheme, host and port of a URL, without what else may stand beside them."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}"


def without(headers: Iterable[str]) -> list[str]:
    """The headers that are for a relay alone, of which no service hears."""
    return [name for name in headers if name.lower().startswith("x-steady")]


#: What browsers say of the page that asks. The relay turns such requests away, since a page could use it unseen.
_OF_PAGES = ("origin", "sec-fetch-site")


def unfit(method: str, url: str, headers: Mapping[str, str | bytes]) -> str | None:
    """What keeps the relay from carrying a request as it is; ``None``: nothing."""
    if method.upper() == "CONNECT":
        return "the method is CONNECT"
    for name in _OF_PAGES:
        if name in headers:
            return f"it has the header `{name}`, as if a web page had sent it"
    host = headers.get("host")
    if host is not None:
        named = host.decode("latin-1") if isinstance(host, bytes) else host
        if named.lower() not in _own_names(url):
            return "its header `Host` names another place than its URL"
    return None


def _own_names(url: str) -> tuple[str, ...]:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2].lower()
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme.lower(), "")
    bare = place[: -len(usual)] if usual and place.endswith(usual) else place
    return (place, bare, bare + usual)
