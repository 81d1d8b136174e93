"""Calls: many, one after the other, refused, cut off, and left by their clients."""

import asyncio
import json

import websockets

from raw import PING, TEXT
from stage import SENDS, answer, ask, case, is_last, refusal, soon, words_of


async def answering(connection):
    async for text in connection:
        for event in answer([json.loads(text)["input"][0]["content"][0]["text"], "!"]):
            await connection.send(event)


@case(limit=40)
async def fifty_connections_at_once(on):
    await on.serve(answering)

    async def one(number):
        client = await on.client()
        await client.send(ask(f"this is {number} " * 100))
        words, _ = await words_of(client)
        assert words == f"this is {number} " * 100 + "!", f"connection {number} got {words[:40]}"
        await client.close()

    await asyncio.gather(*map(one, range(50)))
    assert on.connections == 50, on.connections


@case()
async def one_call_after_the_other(on):
    await on.serve(answering)
    client = await on.client()
    for number in range(30):
        await client.send(ask(f"turn {number}", previous_response_id="resp_1"))
        assert (await words_of(client))[0] == f"turn {number}!"
    assert on.connections == 1, f"{on.connections} connections for one client"


@case()
async def two_calls_sent_at_once(on):
    await on.serve(answering)
    client = await on.client()
    await client.send(ask("first"))
    await client.send(ask("second"))
    assert [(await words_of(client))[0] for _ in range(2)] == ["first!", "second!"]


@case(ways=("speak",))
async def a_refusal_is_waited_out(on):
    """In each of the forms it comes in; each time the same text is sent again, and the client sees the answer alone."""
    failed = '{"type":"response.failed","response":{"status":"failed","error":{"code":"server_is_overloaded","message":"busy"}}}'
    created = next(answer([]))
    refusals = [[refusal()], [failed], [created, failed], [refusal(headers={"retry-after": "1"})]]
    asked = []

    async def service(connection):
        async for text in connection:
            asked.append(text)
            said = refusals.pop(0) if len(asked) % 2 else answer(["good"])
            for event in said:
                await connection.send(event)

    await on.serve(service)
    client = await on.client()
    for number in range(4):
        call = ask(f"call {number}")
        await client.send(call)
        heard = []
        while not heard or not is_last(heard[-1]):
            heard.append(await client.recv())
        assert heard == list(answer(["good"])), f"call {number} heard {heard}"
        assert asked[-2:] == [call, call], f"call {number} was sent as {asked[2 * number:]}"


@case(ways=("speak",))
async def a_refusal_for_ever_ends(on):
    """An honest last word, and no more sends than allowed."""
    asked = []

    async def service(connection):
        async for text in connection:
            asked.append(text)
            await connection.send(refusal())

    await on.serve(service)
    client = await on.client()
    await client.send(ask())
    try:
        text = await asyncio.wait_for(client.recv(), 15)
        assert is_last(text) and "completed" not in text, text
    except websockets.ConnectionClosed:
        pass
    assert asked == [ask()] * SENDS, f"{len(asked)} sends"


@case(ways=("speak",))
async def a_service_that_leaves_before_output(on):
    """It may have run: no resend is granted here, so the client hears so, in words or by a close."""

    async def service(connection):
        await connection.recv()
        await connection.send(next(answer([])))
        await connection.close(1011, "restarting")

    await on.serve(service)
    client = await on.client()
    await client.send(ask())
    await honest_end(client)
    assert on.connections == 1, f"{on.connections} connections"


@case()
async def a_service_that_leaves_in_the_middle(on):
    """After output nothing is sent again; what came before arrives."""
    asked, said = [], list(answer("abc"))[:3]

    async def service(peer):
        await peer.accept()
        asked.append(await peer.next("text"))
        for text in said:
            await peer.send(TEXT, text)
        await asyncio.sleep(0.2)
        peer.vanish()

    await on.serve_raw(service)
    client = await on.client()
    await client.send(ask())
    heard = await honest_end(client)
    assert heard[: len(said)] == said or heard == said[: len(heard)], heard
    assert len(asked) == 1, f"sent {len(asked)} times"


async def honest_end(client):
    """What a client hears until its connection or its call ends; never a completed answer."""
    heard = []
    try:
        while not heard or not is_last(heard[-1]):
            heard.append(await asyncio.wait_for(client.recv(), 15))
    except websockets.ConnectionClosed:
        return heard
    assert "response.completed" not in heard[-1], heard[-1]
    return heard


@case()
async def a_client_that_resets(on):
    await leaves(on, lambda peer: peer.vanish())


@case()
async def a_client_that_hangs_up(on):
    """The end of its bytes, and no close frame. Nothing comes from it any more, so nobody is there."""
    await leaves(on, lambda peer: peer.writer.close())


async def leaves(on, leave):
    """While nothing goes on, in the middle of an answer, and before it: the service is left at once."""
    for moment in ("idle", "before", "middle"):
        gone = []

        async def service(peer):
            await peer.accept()
            if moment != "idle":
                await peer.next("text")
            if moment == "middle":
                for text in list(answer("ab"))[:2]:
                    await peer.send(TEXT, text)
            await peer.send(PING, b"ready")
            await peer.gone(within=6)
            gone.append(moment)

        if on.service is None:
            await on.serve_raw(lambda peer: service(peer))
        peer = await on.raw_client()
        if moment != "idle":
            await peer.send(TEXT, ask())
        if moment == "middle":
            await peer.next("text")
        else:
            await asyncio.sleep(0.2)
        leave(peer)
        assert await soon(lambda: gone, 3), f"{moment}: the service was not left within 3 s"


@case(ways=("speak",))
async def a_client_that_leaves_while_it_waits(on):
    asked = []

    async def service(connection):
        async for text in connection:
            asked.append(text)
            await connection.send(refusal(headers={"retry-after": "2"}))

    await on.serve(service)
    peer = await on.raw_client()
    await peer.send(TEXT, ask())
    assert await soon(lambda: asked)
    peer.vanish()
    await asyncio.sleep(3)
    assert len(asked) == 1, "it was sent again for a client that had gone"


@case(limit=40)
async def nothing_is_left_behind(on):
    """A hundred and fifty connections, each ended in another way: no descriptor stays open."""
    await on.serve(answering)
    before = on.descriptors()

    async def one(number):
        peer = await on.raw_client()
        if number % 2:
            await peer.send(TEXT, ask())
        if number % 3 == 0:
            peer.vanish()
        elif number % 3 == 1:
            peer.writer.close()
        else:
            await peer.close(1000)
            await peer.ending()
            peer.writer.close()

    for round in range(15):
        await asyncio.gather(*(one(round * 10 + number) for number in range(10)))
    assert await soon(lambda: on.descriptors() <= before + 2), f"{before} descriptors grew to {on.descriptors()}"


@case(ways=("speak",))
async def a_stop_of_the_relay_is_told(on):
    await on.serve(answering)
    client = await on.client()
    on.process.terminate()
    try:
        await asyncio.wait_for(client.recv(), 5)
        raise AssertionError("a text out of nowhere")
    except websockets.ConnectionClosed:
        assert client.close_code == 1001, client.close_code
    await on.process.wait()
    on.process = None
