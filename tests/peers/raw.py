"""A WebSocket peer on a bare socket: it sends whatever bytes a case wants, and wsproto judges what it receives.

`websockets` refuses to break the rules; this peer breaks them on request. By itself it answers pings and nothing else,
close frames included. What it hears comes as tuples:

    ("text", str) ("binary", bytes) ("ping", bytes) ("pong", bytes) ("close", code, reason) ("end",) ("reset",)
"""

import asyncio
import base64
import hashlib
import os
import socket
import struct

from wsproto import events
from wsproto.connection import Connection, ConnectionType
from wsproto.frame_protocol import XorMaskerSimple
from wsproto.utilities import RemoteProtocolError

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

# Of Linux: one that is closed in this state says nothing. It takes the right to shape the network.
TCP_REPAIR = 19

# As RFC 6455 has it, in section 1.3.
ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key.encode() + ACCEPT_SUFFIX).digest()).decode()


def frame(opcode, payload=b"", mask=None, fin=True, rsv=0, declared=None):
    """One frame. `mask` is four bytes or None; `declared` is a length that the head states in place of the true one."""
    payload = payload.encode() if isinstance(payload, str) else payload
    length = len(payload) if declared is None else declared
    masked = 0x80 if mask is not None else 0
    head = bytes([(0x80 if fin else 0) | (rsv << 4) | opcode])
    if length < 126:
        head += bytes([masked | length])
    elif length < 1 << 16:
        head += bytes([masked | 126]) + struct.pack("!H", length)
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", length)
    if mask is None:
        return head + payload
    return head + mask + bytes(XorMaskerSimple(mask).process(bytearray(payload)))


def close_payload(code, reason=""):
    return struct.pack("!H", code) + (reason.encode() if isinstance(reason, str) else reason)


class Head:
    """The head of a request or an answer."""

    def __init__(self, data):
        self.first, *lines = data.decode("latin-1").strip().split("\r\n")
        self.fields = [(name.lower(), value.strip()) for name, value in (line.split(":", 1) for line in lines)]

    def all(self, name):
        return [value for key, value in self.fields if key == name]

    def get(self, name):
        return next(iter(self.all(name)), None)

    @property
    def status(self):
        return int(self.first.split()[1])


class Raw:
    def __init__(self, reader, writer, is_client):
        self.reader, self.writer, self.is_client = reader, writer, is_client
        self.judge = Connection(ConnectionType.CLIENT if is_client else ConnectionType.SERVER)
        self.head, self.heard, self.parts = None, [], []

    async def read_head(self):
        self.head = Head(await self.reader.readuntil(b"\r\n\r\n"))
        return self.head

    async def accept(self, with_it=b"", slowly=False, **changes):
        """Answers an upgrade with 101. `changes` replace headers (`_` for `-`), or drop them where they are None."""
        fields = {
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-accept": accept_of(self.head.get("sec-websocket-key")),
        }
        fields.update({name.replace("_", "-"): value for name, value in changes.items()})
        lines = [f"{name}: {value}\r\n" for name, value in fields.items() if value is not None]
        answer = ("HTTP/1.1 101 Switching Protocols\r\n" + "".join(lines) + "\r\n").encode() + with_it
        await (self.trickle(answer) if slowly else self.write(answer))

    async def refuse(self, status, body=b"", **fields):
        lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items()]
        head = f"HTTP/1.1 {status}\r\n{''.join(lines)}content-length: {len(body)}\r\n\r\n"
        await self.write(head.encode() + body)

    def frame(self, opcode, payload=b"", **how):
        how.setdefault("mask", os.urandom(4) if self.is_client else None)
        return frame(opcode, payload, **how)

    async def send(self, opcode, payload=b"", **how):
        await self.write(self.frame(opcode, payload, **how))

    async def close(self, code=None, reason=""):
        await self.send(CLOSE, b"" if code is None else close_payload(code, reason))

    async def write(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def trickle(self, data):
        for at in range(len(data)):
            await self.write(data[at : at + 1])
            await asyncio.sleep(0)

    def vanish(self):
        """Ends the connection with a reset."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def lose(self):
        """Leaves the connection without a word, as a machine does that loses its power."""
        # An acknowledgement that is still due would be answered with a reset, and tell.
        await asyncio.sleep(0.3)
        socket_of = self.writer.get_extra_info("socket")
        socket_of.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        self.writer.transport.abort()

    async def hear(self, within=8):
        """The next thing that comes, a message when it is whole."""
        async with asyncio.timeout(within):
            while not self.heard:
                try:
                    data = await self.reader.read(1 << 18)
                except ConnectionError:
                    return ("reset",)
                if not data:
                    return ("end",)
                try:
                    self.judge.receive_data(data)
                    self.heard.extend(filter(None, map(self.whole, self.judge.events())))
                except RemoteProtocolError as error:
                    raise AssertionError(f"wsproto says: {error}") from error
            heard = self.heard.pop(0)
            if heard[0] == "ping":
                try:
                    await self.send(PONG, heard[1])
                except ConnectionError:
                    pass
            return heard

    def whole(self, event):
        match event:
            case events.Ping():
                return ("ping", bytes(event.payload))
            case events.Pong():
                return ("pong", bytes(event.payload))
            case events.CloseConnection():
                return ("close", int(event.code), event.reason or "")
            case events.TextMessage() | events.BytesMessage():
                self.parts.append(event.data)
                if not event.message_finished:
                    return None
                parts, self.parts = self.parts, []
                return ("text", "".join(parts)) if isinstance(event, events.TextMessage) else ("binary", b"".join(parts))
        return None

    async def next(self, kind, within=8):
        """The next of a kind, whatever comes before it; an end ends the search."""
        while True:
            heard = await self.hear(within)
            if heard[0] == kind:
                return heard[1] if len(heard) == 2 else heard[1:]
            assert heard[0] not in ("end", "reset", "close"), f"waited for {kind}, and got {heard}"

    async def ending(self, within=8):
        """All that comes until a close frame or the end of the connection, the last of it first."""
        heard = []
        while not heard or heard[0][0] not in ("close", "end", "reset"):
            heard.insert(0, await self.hear(within))
        return heard

    async def leave(self, within=8):
        """Waits for a close frame or the end, and closes the connection, as is the duty of a service."""
        last = (await self.ending(within))[0]
        self.writer.close()
        return last

    async def gone(self, within=8):
        """Waits until the other side has ended the connection, close frame or not."""
        async with asyncio.timeout(within):
            try:
                while await self.reader.read(1 << 18):
                    pass
            except ConnectionError:
                pass
