"""Peers that break the rules of RFC 6455: the connection ends with the code for it, and nothing of it goes on."""

import asyncio

from raw import BINARY, CLOSE, CONTINUATION, PING, TEXT, frame
from stage import answer, ask, case, heard_of, soon

# Each is (what it is, the frames, the code). A mask that is left out takes the peer's own.
BAD_TEXT = [
    ("a byte that begins nothing", [(TEXT, b"abc \xff def", {})]),
    ("a character cut off", [(TEXT, '{"type":"x"}'.encode() + b"\xf0\x9f", {})]),
    ("a surrogate", [(TEXT, b"\xed\xa0\x80", {})]),
    ("an overlong slash", [(TEXT, b"\xc0\xaf", {})]),
    ("beyond the last character", [(TEXT, b"\xf4\x90\x80\x80", {})]),
    ("cut off over two fragments", [(TEXT, b"\xf0\x9f", {"fin": False}), (CONTINUATION, b"\x98", {})]),
    ("wrong in the second fragment", [(TEXT, b"fine", {"fin": False}), (CONTINUATION, b"\xfe", {})]),
]
BAD_FRAMES = [
    ("opcode 3", [(3, b"", {})]),
    ("opcode 7", [(7, b"x", {})]),
    ("opcode 11", [(11, b"", {})]),
    ("opcode 15", [(15, b"x", {})]),
    ("reserved bit 1", [(TEXT, b"{}", {"rsv": 4})]),
    ("reserved bit 2", [(TEXT, b"{}", {"rsv": 2})]),
    ("reserved bit 3", [(BINARY, b"x", {"rsv": 1})]),
    ("a reserved bit of a ping", [(PING, b"", {"rsv": 4})]),
    ("a ping in fragments", [(PING, b"x", {"fin": False})]),
    ("a ping of 126 bytes", [(PING, b"x" * 126, {})]),
    ("a close of 126 bytes", [(CLOSE, b"\x03\xe8" + b"x" * 124, {})]),
    ("the rest of nothing", [(CONTINUATION, b"x", {})]),
    ("a text within a message", [(BINARY, b"x", {"fin": False}), (TEXT, b"y", {})]),
]


@case()
async def texts_of_the_client_that_are_no_utf8(on):
    await client_breaks(on, BAD_TEXT, 1007)


@case()
async def frames_of_the_client_that_break_the_rules(on):
    await client_breaks(on, [*BAD_FRAMES, ("no mask", [(TEXT, ask(), {"mask": None})])], 1002)


async def client_breaks(on, breaks, code):
    """Idle, and while a call runs."""
    heard, left = [], []

    async def service(connection):
        try:
            async for message in connection:
                if message == ask("first"):
                    await connection.send(next(answer([])))
                    await connection.send(list(answer("a"))[1])
                else:
                    heard.append(message)
        finally:
            left.append(connection.close_code)

    await on.serve(service)
    for in_call in (False, True):
        for name, frames in breaks:
            name += " in a call" if in_call else ""
            peer = await on.raw_client()
            if in_call:
                await peer.send(TEXT, ask("first"))
                await peer.next("text")
            await peer.write(b"".join(peer.frame(opcode, data, **how) for opcode, data, how in frames))
            last = (await peer.ending())[0]
            assert last[:2] == ("close", code), f"{name}: ended by {last}, not by {code}"
            peer.writer.close()
            assert await soon(lambda: left), f"{name}: the service was not left"
            left.clear()
            assert not heard, f"{name}: the service heard {heard}"


@case(ways=("speak",))
async def a_client_that_broke_the_rules_is_let_go(on):
    """It answers the close and waits for the end of the connection, which is the other side's to end (RFC 6455, 7.1.1)."""
    await on.serve(lambda connection: connection.wait_closed())
    for opcode, data, code in ((TEXT, b"\xff", 1007), (3, b"", 1002), (CLOSE, b"\x03", 1002)):
        peer = await on.raw_client()
        await peer.send(opcode, data)
        assert (await peer.ending())[0][:2] == ("close", code)
        await peer.close(code)
        try:
            await peer.gone(within=4)
        except TimeoutError:
            raise AssertionError(f"4 s after the close {code} was answered the connection is still open") from None


@case(limit=60)
async def texts_of_the_service_that_are_no_utf8(on):
    await service_breaks(on, BAD_TEXT)


@case(limit=90)
async def frames_of_the_service_that_break_the_rules(on):
    masked = ("a masked frame", [(TEXT, next(answer([])), {"mask": b"\x01\x02\x03\x04"})])
    await service_breaks(on, [*BAD_FRAMES, masked])


async def service_breaks(on, breaks):
    """While nothing goes on, before output, and after it: the client hears of an end, and of nothing else; the service
    is left, and not asked without end."""
    for moment in ("idle", "before", "after"):
        for name, frames in breaks:
            name, left = f"{name}, {moment}", []

            async def service(peer):
                await peer.accept()
                if moment == "idle":
                    await peer.next("binary")
                else:
                    await peer.next("text")
                if moment == "after":
                    for text in list(answer("a"))[:2]:
                        await peer.send(TEXT, text)
                await peer.write(b"".join(frame(opcode, data, **how) for opcode, data, how in frames))
                await peer.leave()
                left.append(True)

            if on.service is None:
                await on.serve_raw(lambda peer: service(peer))
            on.connections = 0
            client = await on.client()
            await client.send(b"now" if moment == "idle" else ask())
            heard = await heard_of(client, 12)
            allowed = list(answer("a"))[:2] if moment == "after" else []
            assert [text for text in heard if '"error"' not in str(text)] in ([], allowed, allowed[:1]), f"{name}: {heard}"
            assert on.connections == 1, f"{name}: {on.connections} connections"
            await client.close()
            assert await soon(lambda: len(left) == on.connections), f"{name}: the service was not left"
