"""A pretend service on loopback that answers as it is told, one connection at a time on a thread each."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: What a test does with a request: it writes its answer to the connection by itself.
Answer = Callable[["Seen"], None]


@dataclass
class Seen:
    """A request as it came."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: socket.socket
    #: Set once the other side has hung up; see :meth:`wait_for_hang_up`.
    left: threading.Event = field(default_factory=threading.Event)

    def header(self, name: str) -> str | None:
        found = [value for known, value in self.headers if known.lower() == name.lower()]
        return found[0] if found else None

    def write(self, data: bytes) -> None:
        self.connection.sendall(data)

    def wait_for_hang_up(self) -> None:
        """Returns when the other side has closed the connection."""
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass
        self.left.set()


def reply(status: int = 200, body: Any = b"", headers: dict[str, str] | None = None) -> Answer:
    """A whole answer; what is no bytes becomes JSON."""

    def answer(seen: Seen) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
        head = f"HTTP/1.1 {status} Told\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        seen.write(head.encode() + b"\r\n" + (b"" if seen.method == "HEAD" else data))

    return answer


def busy(retry_after: str | None = None) -> Answer:
    """A refusal for want of capacity."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    error = {"error": {"code": "server_is_overloaded", "message": "Our servers are overloaded."}}
    return reply(503, error, headers)


def stream(*events: str, gate: threading.Event | None = None, ends: bool = True) -> Answer:
    """Events of a stream; those after the first wait for ``gate``. Without an end the other side has to hang up."""

    def answer(seen: Seen) -> None:
        seen.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for place, event in enumerate(events):
            if place == 1 and gate is not None:
                assert gate.wait(30)
            data = event.encode()
            seen.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        if ends:
            seen.write(b"0\r\n\r\n")
        else:
            seen.wait_for_hang_up()

    return answer


def silent(seen: Seen) -> None:
    """No answer: it waits until the other side has had enough."""
    seen.wait_for_hang_up()


def drops(seen: Seen) -> None:
    """The connection ends without an answer."""
    seen.connection.shutdown(socket.SHUT_RDWR)


class Upstream:
    """The service. Answers are given in their order, the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers) or [reply(200, {"ok": True})]
        self.seen: list[Seen] = []
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Upstream:
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in it is not woken by `close` alone.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for seen in self.seen:
            seen.connection.close()

    def wrap(self, context: ssl.SSLContext) -> None:
        """From now on over TLS."""
        self._tls = context

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            try:
                connection = self._tls.wrap_socket(connection, server_side=True)
            except OSError:
                return
        with connection:
            reader = connection.makefile("rb")
            while True:
                try:
                    seen = self._read(reader, connection)
                    if seen is None:
                        return
                    with self._lock:
                        self.seen.append(seen)
                        answer = self.answers[min(len(self.seen), len(self.answers)) - 1]
                    answer(seen)
                except OSError:
                    return

    def _read(self, reader: Any, connection: socket.socket) -> Seen | None:
        first = reader.readline().decode("latin-1").split()
        if len(first) != 3:
            return None
        headers = []
        while line := reader.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
        seen = Seen(first[0], first[1], headers, b"", connection)
        if seen.header("transfer-encoding") == "chunked":
            while size := int(reader.readline(), 16):
                seen.body += reader.read(size)
                reader.readline()
            reader.readline()
        else:
            seen.body = reader.read(int(seen.header("content-length") or 0))
        return seen
