"""How messages are cut into frames, masked and interleaved: whatever a peer may do, they arrive whole and unchanged."""

import asyncio
import hashlib
import os
import random

from raw import BINARY, CONTINUATION, PING, PONG, TEXT, frame
from stage import answer, ask, case, refusal, words_of

# Two, three and four bytes a character, so that a cut falls into the middle of one.
TONGUES = "naïve café, 世界, 🚀🚀, ё " * 40


def cut(data, most):
    """Pieces of one byte to `most`, the same ones in each run."""
    dice, at = random.Random(7), 0
    while at < len(data):
        size = dice.randint(1, most)
        yield data[at : at + size]
        at += size


async def send_in_pieces(peer, opcode, pieces, between=None):
    pieces = list(pieces)
    for number, piece in enumerate(pieces):
        await peer.send(opcode if number == 0 else CONTINUATION, piece, fin=number == len(pieces) - 1)
        if between is not None:
            await between(number)


async def echo(connection):
    async for message in connection:
        await connection.send(message)


async def answering(connection):
    """Answers each call with what it was."""
    async for text in connection:
        for event in answer([text]):
            await connection.send(event)


async def heard_answer(peer):
    """The texts of an answer that a raw client hears, and the pongs between them."""
    texts, pongs = [], []
    while not texts or "response.completed" not in texts[-1]:
        kind, *what = await peer.hear()
        if kind == "text":
            texts.append(what[0])
        elif kind != "ping":
            assert kind == "pong", f"in the middle of an answer came {kind} {what}"
            pongs.append(what[0])
    return texts, pongs


@case()
async def fragments_from_the_client(on):
    await on.serve(answering)
    peer = await on.raw_client()
    assert peer.head.status == 101, peer.head.first
    call, pings = ask(TONGUES), []

    async def ping(number):
        if number % 50 == 0:
            pings.append(b"between %d" % number)
            await peer.send(PING, pings[-1])

    await send_in_pieces(peer, TEXT, cut(call.encode(), 7), ping)
    texts, pongs = await heard_answer(peer)
    assert texts == list(answer([call])), f"not what was asked: {str(texts)[:200]}"
    assert pongs == pings, f"{len(pings)} pings, and {len(pongs)} pongs"


@case()
async def fragments_from_the_service(on):
    texts, pongs = list(answer([TONGUES, "end"])), []

    async def service(peer):
        await peer.accept()
        assert await peer.next("text") == ask()
        for number, text in enumerate(texts):
            async def ping(at, number=number):
                if at % 100 == 0:
                    await peer.send(PING, b"%d %d" % (number, at))

            await send_in_pieces(peer, TEXT, cut(text.encode(), 5), ping)
        await peer.send(PING, b"last")
        while not pongs or pongs[-1] != b"last":
            pongs.append(await peer.next("pong"))

    await on.serve_raw(service)
    client = await on.client()
    await client.send(ask())
    assert [await client.recv() for _ in texts] == texts
    # The service has its pongs before the client goes.
    await asyncio.wait_for(client.ping(), 5)
    await asyncio.sleep(0.2)
    assert pongs and pongs[-1] == b"last" and pongs[0] == b"0 0", pongs[:5]
    assert pongs == sorted(pongs[:-1], key=lambda pong: tuple(map(int, pong.split()))) + [b"last"]


@case()
async def empty_fragments(on):
    async def service(peer):
        await peer.accept()
        assert await peer.next("text") == ask()
        for text in answer(["a", ""]):
            await send_in_pieces(peer, TEXT, [b"", text[:9].encode(), b"", b"", text[9:].encode(), b""])
        assert await peer.next("binary") == b"", "an empty message"
        await peer.send(BINARY)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await send_in_pieces(peer, TEXT, [b"", b"", ask().encode(), b""])
    texts, _ = await heard_answer(peer)
    assert texts == list(answer(["a", ""]))
    await send_in_pieces(peer, BINARY, [b"", b""])
    assert await peer.hear() == ("binary", b"")


@case()
async def masks_and_lengths(on):
    await on.serve(echo)
    peer = await on.raw_client()
    for mask in (bytes(4), b"\xff\xff\xff\xff", b"\x00\x01\x00\x02", os.urandom(4)):
        for length in (0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 125, 126, 127, 128, 65535, 65536, 65537):
            data = bytes(number * 7 % 251 for number in range(length))
            await peer.send(BINARY, data, mask=mask)
            assert await peer.hear() == ("binary", data), f"{length} bytes, mask {mask.hex()}"
            text = "ä" * (length // 2) + "x" * (length % 2)
            await peer.send(TEXT, text, mask=mask)
            assert await peer.hear() == ("text", text), f"{length} bytes of text, mask {mask.hex()}"


@case()
async def other_texts_pass(on):
    await on.serve(echo)
    client = await on.client()
    for text in ("", " ", "null", "[]", "{}", "{", '{"type":1}', '{"type":"session.update","x":[1,2]}', "\0", "\ufeff{}"):
        await client.send(text)
        assert await client.recv() == text, f"{text!r} came back otherwise"


@case()
async def byte_by_byte(on):
    async def service(peer):
        await peer.accept(slowly=True)
        assert await peer.next("text") == ask()
        for text in answer(["slow"]):
            await peer.trickle(frame(TEXT, text))
        await peer.trickle(frame(PING, b"p"))
        assert await peer.next("pong") == b"p"

    await on.serve_raw(service)
    peer = await on.raw_client(slowly=True)
    await peer.trickle(peer.frame(PING, b"q") + peer.frame(TEXT, ask()))
    texts, pongs = await heard_answer(peer)
    assert texts == list(answer(["slow"])) and pongs == [b"q"], (texts, pongs)
    # Where there is no relay, the last ping is still to be answered.
    if on.way != "speak":
        await peer.next("ping")


@case()
async def many_messages_in_one_write(on):
    got = []

    async def service(peer):
        await peer.accept()
        for _ in range(500):
            got.append(await peer.next("binary"))
        await peer.write(b"".join(frame(BINARY, b"back %d" % number) for number in range(500)))
        await peer.gone()

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.write(b"".join(peer.frame(BINARY, b"forth %d" % number) for number in range(500)))
    for number in range(500):
        assert await peer.hear() == ("binary", b"back %d" % number)
    assert got == [b"forth %d" % number for number in range(500)]


@case()
async def frames_right_behind_the_101(on):
    """A service may speak as soon as it has agreed."""

    async def service(peer):
        await peer.accept(with_it=frame(TEXT, '{"type":"session.created"}') + frame(PING, b"early"))
        assert await peer.next("pong") == b"early"
        await peer.next("text")
        for text in answer(["late"]):
            await peer.send(TEXT, text)
        await peer.gone()

    await on.serve_raw(service)
    client = await on.client()
    assert await client.recv() == '{"type":"session.created"}'
    await client.send(ask())
    assert (await words_of(client))[0] == "late"


@case()
async def pings_while_nothing_goes_on(on):
    async def service(peer):
        await peer.accept()
        for number in range(60):
            await peer.send(PING, bytes([number]) * (number * 2 + 1))
        for number in range(60):
            assert await peer.next("pong") == bytes([number]) * (number * 2 + 1), "a pong out of order"
        await peer.send(BINARY, b"done")
        await peer.gone()

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.write(b"".join(peer.frame(PING, bytes([n]) * (n * 2 + 1)) for n in range(60)))
    pongs, done = [], False
    while len(pongs) < 60 or not done:
        kind, *what = await peer.hear()
        if kind == "pong":
            pongs.append(what[0])
        done = done or kind == "binary"
    assert pongs == [bytes([n]) * (n * 2 + 1) for n in range(60)], "pongs in another order, or others"


@case(ways=("speak",))
async def pings_while_a_call_waits(on):
    """The relay waits out two refusals, and answers meanwhile."""
    asked = []

    async def service(connection):
        async for text in connection:
            asked.append(text)
            if len(asked) < 3:
                await connection.send(refusal(headers={"retry-after": "1"}))
                continue
            for event in answer(["at last"]):
                await connection.send(event)

    await on.serve(service)
    peer = await on.raw_client()
    await peer.send(TEXT, ask())
    for number in range(12):
        await peer.send(PING, b"are you there %d" % number)
        assert await peer.hear(within=2) == ("pong", b"are you there %d" % number)
        await asyncio.sleep(0.1)
    texts, _ = await heard_answer(peer)
    assert texts == list(answer(["at last"])) and asked == [ask()] * 3, asked


@case()
async def pings_of_the_service_in_a_call(on):
    async def service(peer):
        await peer.accept()
        await peer.next("text")
        for number, text in enumerate(answer("abc")):
            for ping in (b"x%d" % number, b"", b"y" * 125):
                await peer.send(PING, ping)
                assert await peer.next("pong") == ping
            await peer.send(TEXT, text)
        await peer.gone()

    await on.serve_raw(service)
    client = await on.client()
    await client.send(ask())
    assert (await words_of(client))[0] == "abc"


@case()
async def pongs_nobody_asked_for(on):
    async def service(peer):
        await peer.accept()
        await peer.send(PONG, b"unasked")
        await peer.next("text")
        await peer.send(PONG)
        for text in answer(["fine"]):
            await peer.send(TEXT, text)
            await peer.send(PONG, b"again")
        await peer.gone()

    await on.serve_raw(service)
    client = await on.client()
    await client.pong(b"nor this")
    await client.send(ask())
    await client.pong()
    assert (await words_of(client))[0] == "fine"


@case(limit=60)
async def thirty_two_mebibytes_both_ways(on):
    size = 32 << 20
    down, seen = "d" * size, []

    async def service(connection):
        call = await connection.recv()
        seen.append(hashlib.sha256(call.encode()).digest())
        for event in answer([down]):
            await connection.send(event)
        async for message in connection:
            await connection.send(message)

    await on.serve(service)
    client = await on.client(max_size=None)
    call = ask("0123456789abcdef" * (size // 16))
    await client.send(call)
    words, _ = await asyncio.wait_for(words_of(client), 40)
    assert words == down, f"{len(words)} bytes came down"
    assert seen == [hashlib.sha256(call.encode()).digest()], "what went up was changed"
    block = os.urandom(1 << 20) * 32
    await client.send(block)
    back = await asyncio.wait_for(client.recv(), 30)
    assert back == block, "a binary message was changed"


@case(limit=60)
async def large_messages_in_fragments(on):
    await on.serve(echo)
    client = await on.client(max_size=None)
    block = os.urandom(1 << 16) * 128
    await client.send([block[at : at + 10_000] for at in range(0, len(block), 10_000)])
    assert await asyncio.wait_for(client.recv(), 30) == block
