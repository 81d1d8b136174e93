"""What is asked of the relay for one call, as headers that end there. What they mean is decided there, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Union
from urllib.parse import urlsplit

from ._report import HEADER

#: A time: ``"30s"``, a number of seconds, or a :class:`datetime.timedelta`.
Time = Union[str, float, timedelta]

#: What is longer is a slip, says the relay.
_LONGEST = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Wishes:
    """The wishes for a call."""

    patience: Time | None = None
    profile: str | None = None

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


@contextmanager
def wishes(patience: Time | None = None, profile: str | None = None) -> Iterator[None]:
    """Within it, calls of this thread or task are made with these wishes, by whichever client."""
    token = _asked.set(Wishes(patience, profile))
    try:
        yield
    finally:
        _asked.reset(token)


def now(usual: Wishes) -> Wishes:
    """The wishes of the call that is being made, and the usual ones where it has none."""
    of_call = _asked.get(Wishes())
    return replace(
        usual,
        patience=usual.patience if of_call.patience is None else of_call.patience,
        profile=usual.profile if of_call.profile is None else of_call.profile,
    )


def _written(time: Time) -> str:
    if isinstance(time, str):
        return time
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    return f"{round(seconds * 1000)}ms"


def origin(url: str) -> str:
    """Scheme, host and port of a URL, without what else may stand beside them."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}"


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
