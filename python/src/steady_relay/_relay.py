"""A relay for this process: the one of this user that runs, or one that lives and dies with the process.

The program ``steady-relay session`` is started once, and asked by lines of JSON. It ends when its standard input does,
so nothing of it is left however this process ends. It does all that concerns calls; here is only how it is held.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ._program import program
from .errors import NotCarried, RelayError, RelayNotStarted

_log = logging.getLogger("steady_relay")

#: How long the program may take to end once its input has, to say its first line, and to answer.
_ENDS = 5.0
_STARTS = 30.0
_ANSWERS = 15.0
#: How much of what it says is read at once, and the longest line that a program may begin with which is none of ours.
_PIECE = 64 * 1024
_FIRST = 16 * 1024 * 1024
#: The longest question that it reads.
_LONGEST = 32 * 1024


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


#: Why none is started.
_OVER = "this process is ending, and starts no relay any more"


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
        if _is_over:
            raise RelayError(_OVER)
        options = ["--own"] if own else []
        given = (("--profile", profile), ("--config", config), ("--port", port), ("--client", client or _name()))
        for flag, value in given:
            if value is not None:
                # In one word: a name may begin with a dash.
                options.append(f"{flag}={value}")
        self._options = options
        # A handler of a signal may need it in the middle of anything.
        self._lock = threading.RLock()
        self._kept = _Kept()
        self._closed = False
        #: When a start failed last, and how, for all who waited for it.
        self._failed: tuple[float, RelayNotStarted] | None = None
        #: What reaches each service; ``None``: that is the relay itself.
        self._bases: dict[str, str | None] = {}
        _relays.add(self)
        # One that nobody has any more leaves nothing behind.
        weakref.finalize(self, self._kept.leave).atexit = False

    @property
    def _held(self) -> _Held | None:
        return self._kept.held

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
        if self.knows(url):
            with contextlib.suppress(KeyError):
                return self._bases[url]
        bases, told = self._ask({"ask": "base", "url": url})
        return bases.setdefault(url, told.get("base"))

    def knows(self, url: str) -> bool:
        """Whether :meth:`base` answers at once."""
        # Where it has ended, somebody else may listen at its address.
        held = self._held
        return held is not None and held.lives and url in self._bases

    def lost(self, base: str) -> None:
        """Nobody listens at ``base`` any more: the relay is looked for, or one is started."""
        if base not in self._bases.values():
            # Another thread was first.
            return
        bases, told = self._ask({"ask": "lost"})
        with self._lock:
            held = self._held
            if held is not None and bases is self._bases and told["url"] != held.url:
                held.url, held.joined = told["url"], told["joined"]
                self._bases = {}

    def environment(self) -> Mapping[str, str]:
        """The variables that it was started with: they name the proxies on its way, and certificates that it trusts."""
        with self._lock:
            return self._running().environment

    def stats(self) -> Statistics:
        """What the calls of this process came to so far."""
        _, told = self._ask({"ask": "stats"})
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
        # Whoever has the lock may wait for a program that does not start: that one ends all the same.
        has_lock = self._lock.acquire(timeout=1.0)
        try:
            self._closed, self._bases = True, {}
            ending = self._kept.take()
        finally:
            if has_lock:
                self._lock.release()
        for held in ending:
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

    def _running(self, asked: float | None = None) -> _Held:
        """The program, started where none is; the lock is held, and was waited for since ``asked``."""
        held = self._kept.held
        if held is not None and not held.lives:
            # Somebody ended it. What it told holds no more.
            held, self._bases = None, {}
            self._kept.parts()
        if self._closed:
            raise RelayError("this relay was closed")
        if _is_over:
            raise RelayError(_OVER)
        if held is None:
            if self._failed is not None and asked is not None and asked < self._failed[0]:
                raise RelayNotStarted(str(self._failed[1]))
            # A fork waits for this much, so that a child knows what is not its own.
            with _starting:
                held = self._kept.held = _Held(self._options)
        try:
            held.is_ready()
        except RelayNotStarted as error:
            self._failed = (time.monotonic(), error)
            self._gives_up(held)
            raise
        except BaseException:
            self._gives_up(held)
            raise
        if self._closed:
            raise RelayError("this relay was closed")
        return held

    def _gives_up(self, held: _Held) -> None:
        if self._kept.held is held:
            self._kept.held = None
        held.end()

    def _ask(self, question: Mapping[str, Any]) -> tuple[dict[str, str | None], dict[str, Any]]:
        """The answer, and the bases that were known to whoever gave it."""
        asked = time.monotonic()
        for tries_left in (1, 0):
            with self._lock:
                held, bases = self._running(asked), self._bases
            try:
                told = held.ask(question)
                break
            except _Hangs:
                held.end()
                why: Exception = RelayError("the relay does not answer")
            except _Gone:
                # It has ended, or is about to.
                why = RelayError("the relay has ended")
            if not tries_left:
                raise why
        if "error" in told:
            raise NotCarried(str(told["error"]))
        return bases, told

    def _after_fork(self) -> None:
        """In a child: the relay is the parent's, and must end with it and not with us."""
        self._lock = threading.RLock()
        self._bases = {}
        for held in self._kept.take():
            held.forget()


class _Gone(Exception):
    """The program has ended, or said that it will."""


class _Hangs(_Gone):
    """The program does not answer in time."""


class _Kept:
    """The program of a relay, and those before it whose calls come to their end just now."""

    def __init__(self) -> None:
        self.held: _Held | None = None
        self._parting: list[_Held] = []

    def parts(self) -> None:
        """The one that is held ends by itself."""
        held, self.held = self.held, None
        self._parting = [parting for parting in self._parting if not parting.is_over]
        if held is not None:
            self._parting.append(held)

    def take(self) -> list[_Held]:
        """All of them, to be ended."""
        held, self.held = self.held, None
        parting, self._parting = self._parting, []
        return parting if held is None else [*parting, held]

    def leave(self) -> None:
        """Nobody has them any more: their input ends, and is waited for elsewhere."""
        for held in self.take():
            held.leave()


class _Held:
    """The program while it runs.

    A thread reads what it says and hands each answer to whoever asked, so that nobody waits for another's answer, a
    handler of a signal may ask as well, and its end is noticed at once.
    """

    def __init__(self, options: list[str]) -> None:
        separate: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            separate = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        self._command = [program(), "session", *options]
        self.environment = _environment()
        self.url = ""
        self.joined = False
        self._gone = False
        self._numbers = itertools.count(1)
        self._asked: dict[int, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._first: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._writes = threading.RLock()
        try:
            # Apart from our terminal: Ctrl-C is for us, and calls may still be answered then.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=self.environment,
                **separate,
            )
        except (OSError, ValueError) as error:
            raise RelayNotStarted(f"{self._command[0]} cannot be started: {error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

        threading.Thread(target=self._read, name="steady-relay", daemon=True).start()

    @property
    def lives(self) -> bool:
        """Whether nothing tells that it has ended, or will."""
        return not self._gone

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.returncode is not None

    def is_ready(self) -> None:
        """Waits until it has said that it is ready."""
        if self.url:
            return
        try:
            ready = self._first.get(timeout=_STARTS)
        except queue.Empty:
            raise RelayNotStarted(f"{self._command[0]} said nothing within {_STARTS:.0f} s") from None
        # Whoever else waits for it, in a handler of a signal, reads it as well.
        self._first.put(ready)
        if ready is None:
            raise RelayNotStarted(f"{self._command[0]} ended before it said anything")
        error = ready.get("error")
        if isinstance(error, str):
            raise RelayNotStarted(error)
        url, joined, notices = ready.get("url"), ready.get("joined"), ready.get("notices")
        if ready.get("v") != 1 or not isinstance(url, str) or not url or not isinstance(joined, bool):
            raise RelayNotStarted(
                f"{self._command[0]} is no steady-relay that this package knows: it said {ready!r:.200}"
            )
        if not self.url:
            self.url, self.joined = url, joined
            for notice in notices if isinstance(notices, list) else []:
                _log.info("%s", notice)

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        line = (json.dumps({"id": number, **question}) + "\n").encode()
        if len(line) > _LONGEST:
            return {"error": "the URL is too long"}
        answer: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._asked[number] = answer
        try:
            with self._writes:
                if self._gone:
                    raise _Gone
                self._input.write(line)
            told = answer.get(timeout=_ANSWERS)
        except queue.Empty as error:
            raise _Hangs from error
        except (OSError, ValueError) as error:
            # Nobody reads any more, which the thread learns in a moment.
            self._gone = True
            raise _Gone from error
        finally:
            self._asked.pop(number, None)
        if told is None:
            raise _Gone
        return told

    def _read(self) -> None:
        """Hands on what is said until nothing more is."""
        rest, is_first = b"", True
        while True:
            try:
                piece = self._output.read(_PIECE)
            except (OSError, ValueError):
                piece = b""
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                told = _told(line)
                if is_first:
                    is_first = False
                    self._first.put(told)
                elif told.get("stopping") is True:
                    self._ends()
                elif (asked := self._asked.get(told.get("id", 0))) is not None:
                    asked.put(told)
            if len(rest) > _FIRST:
                # It speaks no lines.
                break
        if is_first and rest:
            self._first.put(_told(rest))
        self._first.put(None)
        self._ends()
        with contextlib.suppress(OSError):
            self._output.close()
        # It ends now, if it has not: its input is of no use to it any more. Nobody may be writing to it.
        with self._writes, contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS)

    def _ends(self) -> None:
        """Nothing more is answered."""
        self._gone = True
        for waiting in list(self._asked.values()):
            waiting.put(None)

    def leave(self) -> None:
        """Its input ends, and with that it does; that is not waited for here."""
        self._gone = True
        with self._writes, contextlib.suppress(OSError):
            self._input.close()

    def end(self) -> None:
        self._gone = True
        with self._writes, contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(_ENDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """In a child: only our copies of the pipes are closed. No lock is taken, which another thread may have had."""
        self._gone = True
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):
                pipe.close()
        # It is no child of ours, and not waited for.
        self._process.returncode = 0


def _told(line: bytes) -> dict[str, Any]:
    """A line as an object; what is none tells so."""
    try:
        told = json.loads(line)
    except ValueError:
        told = line
    return told if isinstance(told, dict) and isinstance(told.get("id", 0), int) else {"said": told}


def _name() -> str:
    """What this process is called, for people who look at the relay."""
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c", "-m") else ""
    # A name of a file is not always text.
    return name.encode("utf-8", "replace").decode("utf-8") or "python"


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
#: The process ends; a thread that was begun now might be waited for without end.
_is_over = False
_shared_lock = threading.RLock()
#: Held while a program is being started, and by whoever forks.
_starting = threading.RLock()

#: What has connections to a relay, which a child must not use.
connected: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    global _shared_lock, _starting
    _shared_lock, _starting = threading.RLock(), threading.RLock()
    for relay in list(_relays):
        relay._after_fork()
    for each in list(connected):
        each._after_fork()


def _at_exit() -> None:
    global _is_over
    _is_over = True
    for relay in list(_relays):
        relay.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _starting.acquire(),
        after_in_parent=lambda: _starting.release(),
        after_in_child=_after_fork,
    )
atexit.register(_at_exit)
