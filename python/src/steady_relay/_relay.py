"""A relay for this process: the one of this user that runs, or one that lives and dies with the process.

The program ``steady-relay session`` is started once, and asked by lines of JSON. It ends when its standard input does,
so nothing of it is left however this process ends. It does all that concerns calls; here is only how it is held.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ._program import program
from .errors import NotCarried, RelayError, RelayNotStarted

_log = logging.getLogger("steady_relay")

#: How long the program may take to end once its input has.
_ENDS = 5.0
#: How many relays one after the other may be lost to a call.
STOPS = 8


@dataclass(frozen=True)
class Statistics:
    """What the calls of this process came to. Open ones count in ``open``, ``held`` and ``all_sends`` alone.

    It is told by the relay: where that was lost and another took its place, it begins anew.
    """

    #: How many calls are open.
    open: int
    #: Those of them that are held, the longest first: see `docs/status.md`, "Sessions".
    held: tuple[Mapping[str, Any], ...]
    #: Calls that met a fault the relay waited for.
    calls: int
    #: Those of them that were told of a want of capacity.
    at_capacity: int
    #: Those that were served in the end.
    recovered: int
    #: Those that were not.
    lost: int
    #: How long calls waited, in seconds: those that met no fault, too, which a crowd holds back.
    waited: float
    #: The sends of those that met a fault.
    sends: int
    #: Sends of what may have run before.
    maybe_billed_twice: int
    #: Sends that were refused for want of capacity.
    refusals: int
    #: All sends, of calls that met no fault, too.
    all_sends: int


class Relay:
    """A relay that this process uses, started when it is first needed.

    One of this user's that runs already is joined, unless ``own`` is set or an option says how the relay is to be.
    """

    def __init__(
        self,
        *,
        own: bool = False,
        profile: str | None = None,
        config: str | Path | None = None,
        port: int | None = None,
        client: str | None = None,
    ) -> None:
        options = ["--own"] if own else []
        given = (("--profile", profile), ("--config", config), ("--port", port), ("--client", client or _name()))
        for flag, value in given:
            if value is not None:
                # In one word: a name may begin with a dash.
                options.append(f"{flag}={value}")
        self._options = options
        self._lock = threading.Lock()
        self._held: _Held | None = None
        self._closed = False
        #: What reaches each service; ``None``: that is the relay itself.
        self._bases: dict[str, str | None] = {}
        _relays.add(self)

    @classmethod
    def shared(cls) -> Relay:
        """The one that everything in this process uses that names no other."""
        global _shared
        with _shared_lock:
            if _shared is None or _shared._closed:
                _shared = cls()
            return _shared

    @property
    def url(self) -> str:
        """The base URL of the relay for this process: a request to it goes where its credential belongs."""
        with self._lock:
            return self._running().url

    @property
    def joined(self) -> bool:
        """Whether it is one that ran before, which goes on when this process ends."""
        with self._lock:
            return self._running().joined

    def base_url(self, url: str) -> str:
        """The base URL by which requests reach the service at ``url`` through the relay.

        Paths are appended to it as they would be to ``url``; what a request carries goes to that service alone.
        """
        base = self.base(url)
        return url if base is None else base

    def base(self, url: str) -> str | None:
        """The same; ``None`` where ``url`` is the relay itself."""
        try:
            return self._bases[url]
        except KeyError:
            pass
        with self._lock:
            if url not in self._bases:
                told = self._ask({"ask": "base", "url": url})
                self._bases[url] = told.get("base")
            return self._bases[url]

    def knows(self, url: str) -> bool:
        """Whether :meth:`base` answers at once."""
        return url in self._bases

    def lost(self, base: str) -> None:
        """Nobody listens at ``base`` any more: the relay is looked for, or one is started."""
        with self._lock:
            if base not in self._bases.values():
                # Another thread was first.
                return
            running = self._running()
            told = self._ask({"ask": "lost"})
            if told["url"] != running.url:
                running.url, running.joined = told["url"], told["joined"]
                self._bases.clear()

    def environment(self) -> Mapping[str, str]:
        """The variables that it was started with: they name the proxies on its way, and certificates that it trusts."""
        with self._lock:
            return self._running().environment

    def stats(self) -> Statistics:
        """What the calls of this process came to so far."""
        with self._lock:
            told = self._ask({"ask": "stats"})
        sums = told["sums"]
        return Statistics(
            open=told["open"],
            held=tuple(told["held"]),
            calls=sums["calls"],
            at_capacity=sums["at_capacity"],
            recovered=sums["recovered"],
            lost=sums["lost"],
            waited=sums["waited_s"],
            sends=sums["sends"],
            maybe_billed_twice=sums["maybe_billed_twice"],
            refusals=sums["refusals"],
            all_sends=sums["all_sends"],
        )

    def close(self) -> None:
        """Lets go of the relay. One that was started for this process ends, and calls that are open with it."""
        with self._lock:
            held, self._held, self._closed = self._held, None, True
            self._bases.clear()
        if held is not None:
            held.end()

    def __enter__(self) -> Relay:
        with self._lock:
            self._running()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        held = self._held
        return f"<Relay {'not started' if held is None else 'joined' if held.joined else 'own'}>"

    def _running(self) -> _Held:
        if self._closed:
            raise RelayError("this relay was closed")
        if self._held is None:
            self._held = _Held(self._options)
        return self._held

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        held = self._running()
        try:
            told = held.ask(question)
        except _Gone:
            # Somebody ended it. What it told holds no more.
            held.end()
            self._bases.clear()
            self._held = None
            told = self._running().ask(question)
        if "error" in told:
            raise NotCarried(told["error"])
        return told

    def _after_fork(self) -> None:
        """In a child: the relay is the parent's, and must end with it and not with us."""
        self._lock = threading.Lock()
        held, self._held = self._held, None
        self._bases = {}
        if held is not None:
            held.forget()


class _Gone(Exception):
    """The program does not answer any more."""


class _Held:
    """The program while it runs."""

    def __init__(self, options: list[str]) -> None:
        separate: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            separate = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        command = [program(), "session", *options]
        self.environment = _environment()
        try:
            # Apart from our terminal: Ctrl-C is for us, and calls may still be answered then.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=self.environment,
                **separate,
            )
        except OSError as error:
            raise RelayNotStarted(f"{command[0]} cannot be started: {error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input = self._process.stdin
        self._output = io.BufferedReader(self._process.stdout)  # type: ignore[type-var]
        self._questions = 0
        try:
            ready = self._line()
        except _Gone:
            ready = {"error": f"{command[0]} ended before it said anything"}
        except BaseException:
            self.end()
            raise
        if "error" in ready:
            self.end()
            raise RelayNotStarted(str(ready["error"]))
        self.url: str = ready["url"]
        self.joined: bool = ready["joined"]
        for notice in ready["notices"]:
            _log.info("%s", notice)

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        self._questions += 1
        line = json.dumps({"id": self._questions, **question}) + "\n"
        try:
            self._input.write(line.encode())
        except OSError as error:
            raise _Gone from error
        while True:
            told = self._line()
            # An answer that was given up on, by Ctrl-C for example, comes first.
            if told.get("id") == self._questions:
                return told

    def _line(self) -> dict[str, Any]:
        line = self._output.readline()
        if not line.endswith(b"\n"):
            raise _Gone
        told = json.loads(line)
        return told if isinstance(told, dict) else {}

    def end(self) -> None:
        self._close()
        try:
            self._process.wait(_ENDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """In a child: only our copies of the pipes are closed."""
        self._close()
        # It is no child of ours, and not waited for.
        self._process.returncode = 0

    def _close(self) -> None:
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):
                pipe.close()


def _name() -> str:
    """What this process is called, for people who look at the relay."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c", "-m") else ""
    return name or "python"


def _environment() -> dict[str, str]:
    """Ours. The file that ``requests`` would take its certificates from is for the relay then."""
    environment = dict(os.environ)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        bundle = environment.get(name)
        if bundle and os.path.isfile(bundle):
            environment.setdefault("SSL_CERT_FILE", bundle)
    return environment


_relays: weakref.WeakSet[Relay] = weakref.WeakSet()
_shared: Relay | None = None
_shared_lock = threading.Lock()


def _after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for relay in list(_relays):
        relay._after_fork()


def _at_exit() -> None:
    for relay in list(_relays):
        relay.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
