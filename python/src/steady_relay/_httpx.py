"""``Transport`` and ``AsyncTransport``: how clients of httpx, and of httpx2, send their requests through a relay.

Both libraries have the same classes under two names; the request that comes says whose it is, and gets a response of
the same. So neither has to be installed, and neither is imported before it is used.
"""

from __future__ import annotations

import importlib
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _report, _wishes
from ._relay import Relay, connected
from ._report import CallReport
from ._wishes import Time, Wishes
from .errors import STOPS, CallFailed, NotCarried, in_library, kind_of, pause, words

if TYPE_CHECKING:
    import httpx
    import httpx2

    class _Base(httpx.BaseTransport, httpx2.BaseTransport):
        def handle_request(self, request: Any) -> Any: ...

    class _AsyncBase(httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any: ...
else:
    _Base = object
    _AsyncBase = object

#: The libraries, and where to find them.
_LIBRARIES = ("httpx", "httpx2")


#: Transports of a parent.
_left: list[Any] = []


class _Carrier:
    """What both transports do that needs no waiting."""

    def __init__(
        self,
        *,
        patience: Time | None = None,
        profile: str | None = None,
        raises: bool = False,
        relay: Relay | None = None,
        direct: Any = None,
    ) -> None:
        self._usual = Wishes(patience, profile)
        self._raises = raises
        self._own_relay = relay
        self._direct = direct
        self._inner: dict[str, Any] = {}
        connected.add(self)

    def _after_fork(self) -> None:
        """In a child: the connections are the parent's. They are left as they are, since their locks may be held."""
        _left.append(self._inner)
        self._inner = {}

    @property
    def _relay(self) -> Relay:
        return self._own_relay or Relay.shared()

    def _unfit(self, request: Any) -> bool:
        """Whether it goes to its service without the relay, which is said."""
        if request.url.scheme not in ("http", "https"):
            return True
        why = _wishes.unfit(request.method, str(request.url), request.headers)
        if why is not None:
            _wishes.goes_direct(str(request.url), why)
        return why is not None

    def _carried(self, base: str, request: Any) -> Any:
        """The request for the relay; the caller's own stays as it is."""
        library = _library(request)
        place = library.URL(base)
        url = place.copy_with(raw_path=place.raw_path + request.url.raw_path)
        headers = request.headers.copy()
        headers["host"] = place.netloc.decode("ascii")
        timeout = request.extensions.get("timeout") or {}
        for name, value in _wishes.now(self._usual).headers(timeout.get("read")).items():
            # What the caller wrote as a header is a wish for this call.
            headers.setdefault(name, value)
        return library.Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )

    def _report(self, response: Any, before: CallReport | None) -> CallReport | None:
        """Takes the report from where only we look for it; ``before``: the call goes on from that one."""
        report = _report.read(response.headers.get(_report.HEADER))
        if report is not None:
            report = report.after(before)
        if _report.HEADER in response.headers:
            del response.headers[_report.HEADER]
        response.extensions = {**response.extensions, "steady_relay": report}
        return report

    def _kind(self, report: CallReport | None) -> type[CallFailed] | None:
        if report is None:
            return None
        # What ended without an answer is an error for every client.
        has_none = report.by_relay and report.outcome == "returned"
        return kind_of(report) if self._raises or has_none else None


class Transport(_Carrier, _Base):
    """A transport for ``httpx.Client`` and ``httpx2.Client`` whose requests go through a relay.

    ``patience`` and ``profile`` are wishes for all calls; ``raises``: a call that the relay gives up is an error, in
    place of the answer that comes then; ``relay``: another than this process shares; ``direct``: the transport for
    what the relay cannot carry.
    """

    def handle_request(self, request: Any) -> Any:
        base = None if self._unfit(request) else self._base(request)
        if base is None:
            return self._transport(request, "direct").handle_request(_for_service(request))
        transport, library = self._transport(request, "relay"), _library(request)
        before: CallReport | None = None
        for stops in range(STOPS):
            try:
                response = transport.handle_request(self._carried(base, request))
            except library.ConnectError:
                # Nothing was sent, since nobody listened.
                if stops + 1 == STOPS:
                    raise
            else:
                report = self._report(response, before)
                seconds = pause(report, stops, lambda: _rewinds(library, request))
                if seconds is None:
                    break
                response.close()
                before = report
                time.sleep(seconds)
            self._relay.lost(base)
            base = self._relay.base(_wishes.origin(str(request.url))) or ""
        kind = self._kind(report)
        if kind is not None and report is not None:
            response.read()
            response.close()
            raise _error(library, kind, report, request, response)
        return response

    def _base(self, request: Any) -> str | None:
        try:
            return self._relay.base(_wishes.origin(str(request.url)))
        except NotCarried as error:
            _wishes.goes_direct(str(request.url), str(error))
            return None

    def _transport(self, request: Any, to: str) -> Any:
        library = _library(request)
        if to == "direct" and self._direct is not None:
            return self._direct
        kept = f"{to} {library.__name__}"
        if kept not in self._inner:
            made = library.HTTPTransport() if to == "direct" else library.HTTPTransport(**_loopback(library))
            made = self._inner.setdefault(kept, made)
        return self._inner[kept]

    def close(self) -> None:
        for transport in [*self._inner.values(), *([self._direct] if self._direct is not None else [])]:
            transport.close()
        self._inner.clear()

    def __enter__(self) -> Transport:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self.close()


class AsyncTransport(_Carrier, _AsyncBase):
    """The same for ``httpx.AsyncClient`` and ``httpx2.AsyncClient``."""

    async def handle_async_request(self, request: Any) -> Any:
        base = None if self._unfit(request) else await self._base(request)
        if base is None:
            return await self._transport(request, "direct").handle_async_request(_for_service(request))
        transport, library = self._transport(request, "relay"), _library(request)
        before: CallReport | None = None
        for stops in range(STOPS):
            try:
                response = await transport.handle_async_request(self._carried(base, request))
            except library.ConnectError:
                # Nothing was sent, since nobody listened.
                if stops + 1 == STOPS:
                    raise
            else:
                report = self._report(response, before)
                seconds = pause(report, stops, lambda: _rewinds(library, request))
                if seconds is None:
                    break
                await response.aclose()
                before = report
                await _sleep(seconds)
            await _apart(self._relay.lost, base)
            base = await self._base(request) or ""
        kind = self._kind(report)
        if kind is not None and report is not None:
            await response.aread()
            await response.aclose()
            raise _error(library, kind, report, request, response)
        return response

    async def _base(self, request: Any) -> str | None:
        origin, relay = _wishes.origin(str(request.url)), self._relay
        try:
            return relay.base(origin) if relay.knows(origin) else await _apart(relay.base, origin)
        except NotCarried as error:
            _wishes.goes_direct(str(request.url), str(error))
            return None

    def _transport(self, request: Any, to: str) -> Any:
        library = _library(request)
        if to == "direct" and self._direct is not None:
            return self._direct
        kept = f"{to} {library.__name__}"
        if kept not in self._inner:
            options = {} if to == "direct" else _loopback(library)
            self._inner[kept] = library.AsyncHTTPTransport(**options)
        return self._inner[kept]

    async def aclose(self) -> None:
        for transport in [*self._inner.values(), *([self._direct] if self._direct is not None else [])]:
            await transport.aclose()
        self._inner.clear()

    async def __aenter__(self) -> AsyncTransport:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self.aclose()


async def _sleep(seconds: float) -> None:
    import anyio

    await anyio.sleep(seconds)


async def _apart(work: Any, *arguments: Any) -> Any:
    """Away from the loop: a program may have to be started first."""
    import anyio.to_thread

    return await anyio.to_thread.run_sync(work, *arguments)


def _library(request: Any) -> Any:
    """The library whose request this is, or is derived from."""
    for kind in type(request).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in _LIBRARIES:
            return importlib.import_module(name)
    raise TypeError(f"{type(request).__module__}.{type(request).__name__} is no request of httpx or httpx2")


def _loopback(library: Any) -> dict[str, Any]:
    """For connections to the relay: no TLS, so none has to be made ready, no proxy, and as many as the caller wants."""
    limits = library.Limits(max_connections=None, max_keepalive_connections=100)
    return {"verify": False, "trust_env": False, "limits": limits}


def _for_service(request: Any) -> Any:
    """The request as it goes to its service without a relay."""
    ours = _wishes.without(request.headers)
    if not ours:
        return request
    headers = request.headers.copy()
    for name in ours:
        del headers[name]
    return _library(request).Request(
        request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
    )


def _rewinds(library: Any, request: Any) -> bool:
    """Whether its body can be sent again."""
    return isinstance(request.stream, library.ByteStream)


def _error(library: Any, kind: type[CallFailed], report: CallReport, request: Any, response: Any) -> CallFailed:
    """The error, which is one of the library's as well, so that what catches those catches it."""
    try:
        said = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        said = None
    message = words(report, response.status_code, said if isinstance(said, str) else None)
    error: CallFailed = in_library(library.__name__, kind)(message, report=report)
    # `requests` would ask a response for its request, which this one is given later.
    error.request, error.response = request, response
    return error
