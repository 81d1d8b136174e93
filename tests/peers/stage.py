"""Where a case plays: a service, the relay before it, and clients. And the list of all cases.

The way to the service is one of three, so that a case can be checked without the relay: `direct`, `tunnel` (an address
where the relay carries bytes and nothing else) and `speak`, where it ends the WebSocket on both sides.
"""

import asyncio
import json
import os
import re
import signal
import tempfile

import websockets
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from raw import Raw

LINUX = os.path.isdir("/proc/self/fd")
WAYS = ("direct", "tunnel", "speak")

# Real rules, shrunk delays.
SETTINGS = """
[relay]
listen = "127.0.0.1"
port = 0
upstream = "{upstream}"
profile = "peers"
{relay}

[profile.peers]
based_on = "interactive"
gate = false
sends = 4
ambiguous_resends = 0
patience = "9s"
client_limit = "ignored"
base = "100ms"
cap = "400ms"
jitter = "50ms"
overloaded_base = "100ms"
overloaded_cap = "400ms"
useless_floor = "80ms"

[timeouts]
connect = "2s"
first_byte = "2s"
idle = "3s"
drain = "2s"

{more}
"""

# At most so many sends, and so at most so many connections, for one call.
SENDS = 4

CASES = []


def case(ways=WAYS, relay="", more="", limit=25):
    """Adds a case. `relay` are lines for `[relay]`, `more` other sections; `limit` is its deadline in seconds."""

    def add(play):
        name = play.__name__.replace("_", "-")
        CASES.append({"name": name, "play": play, "ways": ways, "relay": relay, "more": more, "limit": limit})
        return play

    return add


def ask(words="hello", **more):
    """The text of a call."""
    content = [{"type": "input_text", "text": words}]
    message = {"type": "message", "role": "user", "content": content}
    return json.dumps({"type": "response.create", "model": "gpt-x", "store": False, "stream": True, "input": [message]} | more)


def answer(words):
    """The texts of an answer, one for each word."""
    yield '{"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}'
    for number, word in enumerate(words):
        yield json.dumps({"type": "response.output_text.delta", "item_id": "m", "sequence_number": number, "delta": word})
    yield '{"type":"response.completed","response":{"id":"resp_1","status":"completed"}}'


def refusal(**more):
    error = {"type": "server_error", "code": "server_is_overloaded", "message": "busy"}
    return json.dumps({"type": "error", "status": 503, "error": error} | more)


def is_last(text):
    return '"response.completed"' in text or '"response.failed"' in text or '"type":"error"' in text.replace(" ", "")


async def heard_of(client, within):
    """What a client hears until an error or the end of its connection, with so many seconds between two texts."""
    texts = []
    try:
        while not texts or '"error"' not in str(texts[-1]):
            texts.append(await asyncio.wait_for(client.recv(), within))
    except websockets.ConnectionClosed:
        pass
    except TimeoutError:
        raise AssertionError(f"the client hears nothing for {within} s after {texts}") from None
    return texts


async def words_of(connection):
    """Reads an answer to its end: the words, joined, and the last text."""
    words = []
    while True:
        text = await connection.recv()
        if is_last(text):
            return "".join(words), text
        words.append(json.loads(text).get("delta", ""))


class Stage:
    def __init__(self, way, program, relay, more):
        self.way, self.program = way, program
        self.settings = {"relay": relay, "more": more}
        self.service = self.process = self.log = None
        self.folder = tempfile.TemporaryDirectory(prefix="peers-")
        self.open, self.failed, self.tasks = [], [], set()
        # The request heads that reached the service, and how many connections were made to it.
        self.heads, self.connections = [], 0

    # A responses path is spoken, another one goes through the tunnel.
    @property
    def path(self):
        return "/v1/realtime?model=gpt-x" if self.way == "tunnel" else "/v1/responses"

    async def serve(self, handler, **options):
        """A service made of `websockets`."""

        async def watched(connection):
            self.connections += 1
            self.heads.append(connection.request.headers)
            await self.watch(handler(connection))

        options = {"compression": None, "max_size": None, "ping_interval": None} | options
        await self.serve_by(await serve(watched, "127.0.0.1", 0, **options))

    async def serve_raw(self, handler):
        """A service on bare sockets, whose handler gets the peer when its request head has come."""

        async def watched(reader, writer):
            self.connections += 1
            peer = Raw(reader, writer, is_client=False)
            self.open.append(peer)
            self.tasks.add(asyncio.current_task())
            self.heads.append(await peer.read_head())
            await self.watch(handler(peer))

        await self.serve_by(await asyncio.start_server(watched, "127.0.0.1", 0, limit=1 << 18))

    async def serve_by(self, service):
        self.service = service
        self.address = self.service_address = service.sockets[0].getsockname()[:2]
        if self.way != "direct":
            await self.start_relay()

    async def watch(self, playing):
        """A service that a case finds at fault fails the case; one that loses its peer does not."""
        try:
            await playing
        except (AssertionError, TimeoutError, ValueError, KeyError) as error:
            self.failed.append(error)
        except (ConnectionError, websockets.ConnectionClosed, asyncio.IncompleteReadError):
            pass

    async def start_relay(self):
        host, port = self.service_address
        settings = os.path.join(self.folder.name, "relay.toml")
        with open(settings, "w") as file:
            file.write(SETTINGS.format(upstream=f"http://{host}:{port}", **self.settings))
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.process = await asyncio.create_subprocess_exec(
            self.program, "serve", "--config", settings, stderr=self.log, cwd=self.folder.name
        )
        while not (found := re.search(r"listening on http://([\d.]+):(\d+)", self.told())):
            assert self.process.returncode is None, f"the relay did not start: {self.told()}"
            await asyncio.sleep(0.005)
        self.address = (found[1], int(found[2]))

    def told(self):
        if self.log is None:
            return ""
        with open(self.log.name) as file:
            return file.read()

    async def client(self, **options):
        """A client made of `websockets`."""
        options = {"compression": None, "max_size": None, "ping_interval": None, "proxy": None, "close_timeout": 3} | options
        headers = {"openai-beta": "responses_websockets=2026-02-06"} | options.pop("headers", {})
        host, port = self.address
        connection = await connect(f"ws://{host}:{port}{self.path}", additional_headers=headers, **options)
        self.open.append(connection)
        return connection

    async def dial(self):
        reader, writer = await asyncio.open_connection(*self.address, limit=1 << 18)
        peer = Raw(reader, writer, is_client=True)
        self.open.append(peer)
        return peer

    async def raw_client(self, with_it=b"", slowly=False, **changes):
        """A client on a bare socket, its upgrade answered. `changes` replace headers, or drop them where None."""
        peer = await self.dial()
        request = self.upgrade(**changes) + with_it
        await (peer.trickle(request) if slowly else peer.write(request))
        async with asyncio.timeout(12):
            await peer.read_head()
        return peer

    def upgrade(self, first=None, **changes):
        """The bytes of a request to upgrade. `changes` hold a value, a list of them, or None."""
        fields = {
            "host": "%s:%d" % self.address,
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
            "sec-websocket-version": "13",
        }
        fields.update({name.replace("_", "-"): value for name, value in changes.items()})
        lines = [first or f"GET {self.path} HTTP/1.1"]
        for name, values in fields.items():
            for value in values if isinstance(values, list) else [values]:
                if value is not None:
                    lines.append(f"{name}: {value}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def memory_kib(self):
        """What the relay has in memory, now and at most; nothing where there is none, or no Linux to tell."""
        if self.process is None or not LINUX:
            return 0, 0
        with open(f"/proc/{self.process.pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmRSS"].split()[0]), int(fields["VmHWM"].split()[0])

    def descriptors(self):
        return 0 if self.process is None or not LINUX else len(os.listdir(f"/proc/{self.process.pid}/fd"))

    async def end(self):
        """Ends all of it. A relay that panicked, or does not end, fails the case."""
        for peer in self.open:
            transport = peer.writer.transport if isinstance(peer, Raw) else peer.transport
            transport.abort()
        for task in self.tasks:
            task.cancel()
        told = self.told()
        if self.process is not None:
            self.check(self.process.returncode is None, f"the relay ended by itself: {self.process.returncode}")
            if self.process.returncode is None:
                self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), 6)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
                self.check(False, "the relay did not end within 6 s of SIGTERM")
            self.check("panicked" not in told, "the relay panicked")
            self.log.close()
        if self.service is not None:
            self.service.close()
        self.folder.cleanup()
        return told

    def check(self, holds, words):
        if not holds:
            self.failed.append(AssertionError(words))


async def soon(condition, within=5):
    """Whether something comes true in time."""
    for _ in range(int(within * 100)):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return condition()
