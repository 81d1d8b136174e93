"""``Session``: a ``requests.Session`` whose requests go through a relay.

Everything that ``requests`` decides it still decides, by the URLs that it was given: redirects, cookies, credentials,
hooks. Only the connection leads to the relay, below all that, in :class:`Adapter`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import UnrewindableBodyError
from requests.utils import get_environ_proxies, rewind_body, select_proxy, should_bypass_proxies
from urllib3.exceptions import NewConnectionError

from . import _report, _wishes
from ._relay import Relay, connected
from ._report import CallReport
from ._wishes import Time, Wishes
from .errors import STOPS, NotCarried, kind_of, pause, words

#: How a relay's report is kept with a response.
_REPORT = "_steady_relay_report"
#: How the caller's request is kept with the one that goes to the relay.
_CALLERS = "_steady_relay_callers"


#: Pools of connections of a parent.
_left: list[Any] = []


def report_of(response: Any) -> CallReport | None:
    """How the call of a response went, of ``requests`` or ``httpx``; ``None`` where it went without a relay."""
    extensions = getattr(response, "extensions", None)
    found = extensions.get("steady_relay") if isinstance(extensions, dict) else getattr(response, _REPORT, None)
    return found if isinstance(found, CallReport) else None


class Adapter(HTTPAdapter):
    """Carries the requests of any ``requests.Session`` through a relay, where it is mounted.

    It takes what ``requests.adapters.HTTPAdapter`` takes, and:

    - ``patience``, ``profile``: how long a call may wait between sends, and how hard the relay tries;
    - ``raises``: whether a call that the relay gives up is an error also where there is an answer of the service;
    - ``relay``: another relay than the one that this process shares.
    """

    __attrs__ = [*HTTPAdapter.__attrs__, "_usual", "_raises"]  # noqa: RUF012

    def __init__(
        self,
        *args: Any,
        patience: Time | None = None,
        profile: str | None = None,
        raises: bool = False,
        relay: Relay | None = None,
        **kwargs: Any,
    ) -> None:
        self._usual = Wishes(patience, profile)
        self._raises = raises
        self._relay = relay
        super().__init__(*args, **kwargs)
        connected.add(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A relay stays in its process; whoever takes this up uses the one that is shared there.
        self._relay = None
        super().__setstate__(state)  # type: ignore[misc]
        connected.add(self)

    def _after_fork(self) -> None:
        """In a child: the connections are the parent's. They are left as they are, since their locks may be held."""
        _left.append(self.poolmanager)
        block = self._pool_block  # type: ignore[attr-defined]
        self.init_poolmanager(self._pool_connections, self._pool_maxsize, block=block)  # type: ignore[attr-defined]

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        url, relay = request.url or "", self._relay or Relay.shared()
        why = _wishes.unfit(request.method or "", url, request.headers)
        why = why or _unfit(url, verify, cert, proxies, relay.environment())
        base: str | None = None
        if why is None:
            try:
                base = relay.base(_wishes.origin(url))
            except NotCarried as error:
                why = str(error)
        if why is not None:
            _wishes.goes_direct(url, why)
        if base is None:
            return super().send(_for_service(request), stream, timeout, verify, cert, proxies)
        before: CallReport | None = None
        for stops in range(STOPS):
            try:
                response = self._carry(base, request, stream, timeout)
            except requests.exceptions.ConnectionError as error:
                # Nothing was sent, since nobody listened.
                if not _nobody_listens(error) or stops + 1 == STOPS:
                    raise
            else:
                report = report_of(response)
                if report is not None and before is not None:
                    report = report.after(before)
                    setattr(response, _REPORT, report)
                seconds = pause(report, stops, lambda: _rewinds(request))
                if seconds is None:
                    break
                response.close()
                before = report
                time.sleep(seconds)
            relay.lost(base)
            base = relay.base(_wishes.origin(url)) or ""
        self._judge(response)
        return response

    def _carry(self, base: str, request: requests.PreparedRequest, stream: bool, timeout: Any) -> requests.Response:
        carried = request.copy()
        carried.url = base + request.path_url
        carried.headers.pop("host", None)
        for name, value in _wishes.now(self._usual).headers(_read_timeout(timeout)).items():
            # What the caller wrote as a header is a wish for this call.
            carried.headers.setdefault(name, value)
        setattr(carried, _CALLERS, request)
        try:
            response = super().send(carried, stream, timeout, True, None, {})
        except requests.exceptions.RequestException as error:
            if error.request is carried:
                error.request = request
            raise
        return response

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """Of the request as its caller made it, whatever went to the relay."""
        callers = getattr(req, _CALLERS, None)
        if callers is None:
            return super().build_response(req, resp)
        line = resp.headers.get(_report.HEADER)
        resp.headers.pop(_report.HEADER, None)
        response = super().build_response(callers, resp)
        setattr(response, _REPORT, _report.read(line))
        return response

    def _judge(self, response: requests.Response) -> None:
        """Raises what a call came to that has no answer of a service, or one that the relay gave up on."""
        report = report_of(response)
        kind = None if report is None else kind_of(report)
        if report is None or kind is None or not (report.by_relay or self._raises):
            return
        message = words(report, response.status_code, _said(response))
        raise kind(message, report=report, request=response.request, response=response)


class Session(requests.Session):
    """A ``requests.Session`` whose requests go through a relay, which waits and sends again where that is right.

    What the relay decides comes back as an answer where the service gave one, as it would without this package. Where
    there is none the call raises :class:`MaxRetriesExceeded`, :class:`TotalTimeoutExceeded` or :class:`ResendRefused`;
    with ``raises`` it does so as well for answers that the relay gave up on.

    ``patience`` and ``profile`` hold for all calls, and can be given for one: ``session.get(url, patience="5min")``.
    """

    def __init__(
        self,
        *,
        patience: Time | None = None,
        profile: str | None = None,
        raises: bool = False,
        relay: Relay | None = None,
    ) -> None:
        super().__init__()
        for scheme in ("https://", "http://"):
            self.mount(scheme, Adapter(patience=patience, profile=profile, raises=raises, relay=relay))

    def request(  # type: ignore[override]
        self,
        method: str,
        url: str,
        *args: Any,
        patience: Time | None = None,
        profile: str | None = None,
        **kwargs: Any,
    ) -> requests.Response:
        with _wishes.wishes(patience, profile):
            return super().request(method, url, *args, **kwargs)

    def send(
        self,
        request: requests.PreparedRequest,
        *,
        patience: Time | None = None,
        profile: str | None = None,
        **kwargs: Any,
    ) -> requests.Response:
        with _wishes.wishes(patience, profile):
            return super().send(request, **kwargs)

    def mount(self, prefix: str | bytes, adapter: BaseAdapter) -> None:
        """As in ``requests``: what it is mounted for goes by that adapter, and so past the relay unless it is ours."""
        is_ours = isinstance(adapter, Adapter)
        # The ones of `requests` come before ours.
        if not is_ours and any(isinstance(mounted, Adapter) for mounted in self.adapters.values()):
            words = f"requests to {prefix!s} go without the relay, by the adapter that is mounted for them"
            _wishes.warns_of_direct(f"{words}; steady_relay.Adapter takes the same arguments")
        super().mount(prefix, adapter)

    if TYPE_CHECKING:
        # What each takes beside these is what it takes in `requests`.
        def get(  # type: ignore[override]
            self, url: str, *, patience: Time | None = None, profile: str | None = None, **kwargs: Any
        ) -> requests.Response: ...
        def post(  # type: ignore[override]
            self,
            url: str,
            data: Any = None,
            json: Any = None,
            *,
            patience: Time | None = None,
            profile: str | None = None,
            **kwargs: Any,
        ) -> requests.Response: ...
        def put(  # type: ignore[override]
            self,
            url: str,
            data: Any = None,
            *,
            patience: Time | None = None,
            profile: str | None = None,
            **kwargs: Any,
        ) -> requests.Response: ...

        options = head = delete = get  # type: ignore[assignment]
        patch = put  # type: ignore[assignment]


class CodexRetrySession(Session):
    """The session of codex-retry: its numbers, and an error where all tries failed."""

    def __init__(
        self,
        *,
        patience: Time | None = None,
        profile: str | None = "codex-retry",
        raises: bool = True,
        relay: Relay | None = None,
    ) -> None:
        super().__init__(patience=patience, profile=profile, raises=raises, relay=relay)


def _unfit(
    url: str,
    verify: bool | str,
    cert: Any,
    proxies: Mapping[str, str] | None,
    environment: Mapping[str, str],
) -> str | None:
    """Which argument asks for another way to the service than the relay goes, which is that of its environment."""
    if urlsplit(url).scheme.lower() == "https":
        bundles = (environment.get("REQUESTS_CA_BUNDLE"), environment.get("CURL_CA_BUNDLE"))
        if verify is not True and (not verify or verify not in bundles):
            return f"verify={verify!r}"
        if cert is not None:
            return "cert="
    if select_proxy(url, proxies) != _proxy(url, environment):
        return "proxies="
    return None


def _proxy(url: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that these variables name for a URL. On other systems than Unix they are not the only place."""
    if sys.platform in ("win32", "darwin"):
        return select_proxy(url, get_environ_proxies(url))

    def variable(name: str) -> str | None:
        return environment.get(name.lower()) or environment.get(name.upper()) or None

    if should_bypass_proxies(url, variable("no_proxy") or ""):
        return None
    named = {scheme: variable(f"{scheme}_proxy") for scheme in ("http", "https", "all")}
    return select_proxy(url, {scheme: proxy for scheme, proxy in named.items() if proxy is not None})


def _read_timeout(timeout: Any) -> float | None:
    read = timeout[1] if isinstance(timeout, tuple) and len(timeout) == 2 else timeout
    # A `urllib3.Timeout` holds its own.
    read = getattr(read, "read_timeout", read)
    return float(read) if isinstance(read, (int, float)) else None


def _nobody_listens(error: requests.exceptions.ConnectionError) -> bool:
    cause = error.args[0] if error.args else None
    return isinstance(getattr(cause, "reason", cause), NewConnectionError)


def _said(response: requests.Response) -> str | None:
    """What an answer says, of the form that clients of this service expect."""
    try:
        said = response.json()
        error = said.get("error", said)
        message = error.get("message") if isinstance(error, dict) else error
    except (ValueError, AttributeError):
        message = response.text
    return message if isinstance(message, str) and message else None


def _for_service(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """The request as it goes to its service without a relay."""
    ours = _wishes.without(request.headers)
    if not ours:
        return request
    direct = request.copy()
    for name in ours:
        del direct.headers[name]
    return direct


def _rewinds(request: requests.PreparedRequest) -> bool:
    """Whether its body can be sent again, and is ready for that."""
    if request.body is None or isinstance(request.body, (bytes, str)):
        return True
    try:
        rewind_body(request)
    except UnrewindableBodyError:
        return False
    return True
