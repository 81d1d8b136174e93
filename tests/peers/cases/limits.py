"""Messages that are too large, and peers that stop reading or writing: an honest end, no loop, bounded memory."""

import asyncio

from raw import BINARY, CONTINUATION, PING, TEXT, frame
from stage import answer, ask, case, heard_of, is_last, soon, words_of

ONE_MEBIBYTE = '[limits]\nmessage = "1MiB"'


@case(ways=("speak",), more=ONE_MEBIBYTE)
async def messages_of_the_client_that_are_too_large(on):
    """In one frame, in many, in a head that only announces: 1009, and the service hears nothing."""
    heard, left = [], []

    async def service(connection):
        try:
            async for message in connection:
                heard.append(len(message))
        finally:
            left.append(True)

    await on.serve(service)
    fits = await on.client(max_size=None)
    await fits.send(b"x" * (1 << 20))
    assert await soon(lambda: heard == [1 << 20]), "a message as large as allowed did not arrive"
    heard.clear()
    block = b"x" * (1 << 16)
    ways = {
        "one frame": lambda peer: [peer.frame(TEXT, ask("x" * (2 << 20)))],
        "one byte too many": lambda peer: [peer.frame(BINARY, b"x" * ((1 << 20) + 1))],
        "fragments": lambda peer: [peer.frame(BINARY, block, fin=False)]
        + [peer.frame(CONTINUATION, block, fin=False) for _ in range(20)],
        "a head that announces 1 TiB": lambda peer: [peer.frame(BINARY, b"x", declared=1 << 40)],
        "a head that announces 2^63 - 1": lambda peer: [peer.frame(BINARY, b"x", declared=(1 << 63) - 1)],
    }
    for name, pieces in ways.items():
        peer = await on.raw_client()
        before, _ = on.memory_kib()

        async def send():
            try:
                for piece in pieces(peer):
                    await peer.write(piece)
            except ConnectionError:
                pass

        sending = asyncio.create_task(send())
        last = (await peer.ending())[0]
        await sending
        assert last[:2] == ("close", 1009), f"{name}: ended by {last}"
        assert on.memory_kib()[0] < before + 16 * 1024, f"{name}: {before} KiB grew to {on.memory_kib()}"
        assert await soon(lambda: left), f"{name}: the service was not left"
        left.clear()
        assert not heard, f"{name}: the service got {heard}"


@case(ways=("speak",), more=ONE_MEBIBYTE, limit=60)
async def messages_of_the_service_that_are_too_large(on):
    """While nothing goes on, before output and after it: the client hears of it, and the call is not made over and over."""
    big = '{"type":"response.output_text.delta","delta":"' + "x" * (2 << 20) + '"}'
    for moment in ("idle", "before", "after"):

        async def service(connection):
            await connection.recv()
            if moment == "after":
                for text in list(answer("a"))[:2]:
                    await connection.send(text)
            await connection.send(big)
            await connection.wait_closed()

        if on.service is None:
            await on.serve(lambda connection: service(connection))
        on.connections = 0
        client = await on.client()
        await client.send(b"now" if moment == "idle" else ask())
        heard = await heard_of(client, 15)
        assert all(len(text) < 1 << 20 for text in heard), f"{moment}: it went through"
        assert on.connections == 1, f"{moment}: {on.connections} connections"
        made = on.connections
        await client.close()
        await asyncio.sleep(1)
        assert on.connections == made, f"{moment}: it goes on asking"


@case(more=ONE_MEBIBYTE, limit=40)
async def a_service_that_stops_reading(on):
    """What a client sends on piles up in its own hands; the relay holds no more of it than one message may have."""
    gone = []

    async def service(peer):
        await peer.accept()
        await peer.next("binary")
        peer.reader._transport.pause_reading()
        await asyncio.sleep(12)
        peer.reader._transport.resume_reading()
        await peer.gone(within=20)
        gone.append(True)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.send(BINARY, b"first")
    before, _ = on.memory_kib()
    block, sent = peer.frame(BINARY, b"x" * (1 << 16)), 0
    given_up = False
    try:
        async with asyncio.timeout(6):
            while sent < 300:
                await peer.write(block)
                sent += 1
        raise AssertionError(f"{sent * 64} KiB went to a service that does not read")
    except TimeoutError:
        pass
    except ConnectionError:
        # Spoken, it is given up when nothing was taken for as long as `idle`.
        given_up = True
        assert on.way == "speak"
    grown = on.memory_kib()[1] - before
    assert grown < 24 * 1024, f"the relay grew by {grown} KiB, with {sent * 64} KiB sent"
    if not given_up:
        peer.vanish()
    assert await soon(lambda: gone, 20), "the service was not left"


@case(limit=40)
async def a_client_that_stops_reading(on):
    sent = [0]

    async def service(peer):
        await peer.accept()
        await peer.next("text")
        await peer.send(TEXT, next(answer([])))
        delta = frame(TEXT, '{"type":"response.output_text.delta","item_id":"m","delta":"%s"}' % ("x" * (1 << 16)))
        while sent[0] < 300:
            await peer.write(delta)
            sent[0] += 1

    await on.serve_raw(service)
    peer = await on.raw_client()
    before, _ = on.memory_kib()
    await peer.send(TEXT, ask())
    peer.reader._transport.pause_reading()
    await asyncio.sleep(2)
    first = sent[0]
    await asyncio.sleep(1)
    assert sent[0] == first < 300, f"{sent[0] * 64} KiB were taken for a client that does not read"
    grown = on.memory_kib()[1] - before
    assert grown < 24 * 1024, f"the relay grew by {grown} KiB, with {sent[0] * 64} KiB sent"


@case(limit=40)
async def a_slow_reader_gets_all(on):
    """Nothing is lost where one side is slower than the other."""
    words = [f"{number:06}" + "x" * 20_000 for number in range(400)]

    async def service(connection):
        await connection.recv()
        for text in answer(words):
            await connection.send(text)

    await on.serve(service)
    client = await on.client(max_queue=2)
    await client.send(ask())
    await asyncio.sleep(2)
    heard, _ = await asyncio.wait_for(words_of(client), 25)
    assert heard == "".join(words), f"{len(heard)} of {len(''.join(words))} bytes"


@case(ways=("speak",), limit=40)
async def a_service_that_falls_silent(on):
    """Before output and in the middle of an answer: `idle` is 3 s here, and then the client hears of it."""
    for moment in ("before", "middle"):

        async def service(peer):
            await peer.accept()
            await peer.next("text")
            if moment == "middle":
                for text in list(answer("a"))[:2]:
                    await peer.send(TEXT, text)
            await peer.gone(within=30)

        if on.service is None:
            await on.serve_raw(lambda peer: service(peer))
        on.connections = 0
        client = await on.client()
        await client.send(ask())
        await heard_of(client, 17)
        assert on.connections == 1, f"{moment}: {on.connections} connections"


@case(limit=30)
async def a_connection_that_stays_quiet_stays(on):
    """Longer than `idle` with no call: the service and the client are content with that."""

    async def service(connection):
        async for _ in connection:
            for text in answer(["still here"]):
                await connection.send(text)

    await on.serve(service)
    client = await on.client()
    await asyncio.sleep(5)
    await client.send(ask())
    assert (await words_of(client))[0] == "still here"
    assert on.connections == 1, on.connections


@case(ways=("speak",), limit=40)
async def a_service_that_writes_before_it_reads(on):
    """It sends a long text before it takes the request off its hands; neither waits for the other."""
    note = '{"type":"response.in_progress","note":"' + "x" * (200 << 10) + '"}'

    async def service(peer):
        await peer.accept()
        peer.reader._transport.pause_reading()
        await peer.send(TEXT, next(answer([])))
        for _ in range(100):
            await peer.send(TEXT, note)
        peer.reader._transport.resume_reading()
        await peer.next("text")
        for text in list(answer("a"))[1:]:
            await peer.send(TEXT, text)
        await peer.gone(within=20)

    await on.serve_raw(service)
    client = await on.client(max_size=None)
    await client.send(ask("x" * (20 << 20)))
    texts = []
    while not texts or not is_last(texts[-1]):
        texts.append(await asyncio.wait_for(client.recv(), 20))
    assert len(texts) > 100, len(texts)


@case(ways=("speak",), limit=40)
async def a_service_that_never_reads_a_request(on):
    """The limit on the first byte holds from the first byte that is sent, too."""

    async def service(peer):
        await peer.accept()
        peer.reader._transport.pause_reading()
        await asyncio.sleep(30)

    await on.serve_raw(service)
    client = await on.client()
    await client.send(ask("x" * (20 << 20)))
    told = await asyncio.wait_for(client.recv(), 15)
    assert '"error"' in told and on.connections == 1, told


@case(ways=("speak",), limit=60)
async def a_peer_that_asks_for_life_and_never_listens(on):
    """Answers to its pings pile up nowhere, whichever side it is."""

    async def service(peer):
        await peer.accept()
        await peer.next("binary")
        peer.reader._transport.pause_reading()
        try:
            async with asyncio.timeout(5):
                await peer.write(peer.frame(PING, b"x" * 100) * 300_000)
        except (TimeoutError, ConnectionError):
            pass
        pinged.append(True)
        await asyncio.sleep(20)

    pinged = []
    await on.serve_raw(service)
    peer = await on.raw_client()
    before = on.memory_kib()[0]
    await peer.send(BINARY, b"now")
    peer.reader._transport.pause_reading()
    try:
        async with asyncio.timeout(5):
            await peer.write(peer.frame(PING, b"x" * 100) * 300_000)
    except (TimeoutError, ConnectionError):
        pass
    assert await soon(lambda: pinged, 15)
    grown = on.memory_kib()[0] - before
    assert grown < 8 << 10, f"{grown} KiB more"


@case(ways=("speak",), more=ONE_MEBIBYTE, limit=60)
async def very_many_messages_without_a_byte(on):
    """They take memory, too: of a client that goes ahead of its answer no more of them are taken in."""

    async def service(peer):
        await peer.accept()
        await peer.next("text")
        for text in list(answer("a"))[:2]:
            await peer.send(TEXT, text)
        await asyncio.sleep(20)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.send(TEXT, ask())
    await peer.next("text")
    before = on.memory_kib()[0]
    await peer.send(TEXT, ask())
    try:
        async with asyncio.timeout(5):
            await peer.write(peer.frame(TEXT, b"") * 4_000_000)
    except (TimeoutError, ConnectionError):
        pass
    grown = on.memory_kib()[0] - before
    assert grown < 16 << 10, f"{grown} KiB more"


@case(ways=("speak",), limit=40)
async def a_client_that_leaves_while_its_message_waits_for_a_deaf_service(on):
    """No call stands behind it; the service is left all the same, and before that pings are answered."""
    left = []

    async def service(peer):
        await peer.accept()
        peer.reader._transport.pause_reading()
        await asyncio.sleep(2)
        peer.reader._transport.resume_reading()
        await peer.gone(within=10)
        left.append(True)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.send(BINARY, b"x" * (16 << 20))
    await peer.send(PING, b"there?")
    assert (await peer.hear(within=5))[0] == "pong"
    before = on.descriptors()
    peer.vanish()
    assert await soon(lambda: on.descriptors() <= before - 2, 5), "its connections are still there"
    assert await soon(lambda: left, 10), "the service was not left"


@case(ways=("speak",), more='[limits]\nmessage = "1MiB"\n[bodies]\neach = "1MiB"\ntotal = "2MiB"', limit=60)
async def what_is_thrown_away_takes_no_room(on):
    """A client that goes on after its goodbye is heard out, and nobody else lacks the room for that."""
    await on.serve(lambda connection: connection.wait_closed())
    on_and_on = await on.raw_client()
    await on_and_on.write(on_and_on.frame(TEXT, b"\xff"))
    told = await on_and_on.hear(within=5)
    assert told[:2] == ("close", 1007), told
    for _ in range(30):
        await on_and_on.write(on_and_on.frame(BINARY, b"x" * 100_000))
        await asyncio.sleep(0.02)
    client = await on.client()
    await client.send(b"x" * 900_000)
    await asyncio.sleep(0.5)
    assert client.close_code is None, client.close_code
