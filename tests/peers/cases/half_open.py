"""Peers that are gone without a word: no FIN, no reset, as after a power cut. Only what is sent to them tells (RFC 9293,
section 3.5.1): their machine, up again, answers it with a reset."""

import asyncio

from raw import TEXT
from stage import answer, ask, case, heard_of, refusal, soon

OFTEN = '[waiting]\ninterim = "300ms"'


@case(ways=("speak",), more=OFTEN)
async def a_client_is_lost_while_its_call_waits(on):
    """The sign of life that it gets shows it: the service is left, and not asked again."""
    asked, gone = [], []

    async def service(peer):
        await peer.accept()
        asked.append(await peer.next("text"))
        await peer.send(TEXT, refusal(headers={"retry-after": "4"}))
        await peer.gone(within=10)
        gone.append(True)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.send(TEXT, ask())
    assert await soon(lambda: asked)
    await peer.lose()
    assert await soon(lambda: gone, 3), "the service was not left"
    assert len(asked) == 1, asked


@case(ways=("speak",), more=OFTEN)
async def a_client_is_lost_before_its_answer(on):
    gone = []

    async def service(peer):
        await peer.accept()
        await peer.next("text")
        await peer.gone(within=10)
        gone.append(True)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.send(TEXT, ask())
    await peer.lose()
    assert await soon(lambda: gone, 3), "the service was not left"


@case()
async def a_client_is_lost_in_the_middle(on):
    gone = []

    async def service(peer):
        await peer.accept()
        await peer.next("text")
        texts = list(answer("a" * 100))
        try:
            for text in texts[:-1]:
                await peer.send(TEXT, text)
                await asyncio.sleep(0.05)
        except ConnectionError:
            pass
        await peer.gone(within=10)
        gone.append(True)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.send(TEXT, ask())
    await peer.next("text")
    await peer.lose()
    assert await soon(lambda: gone, 8), "the service was not left"


@case(ways=("speak",))
async def a_service_is_lost_before_its_answer(on):
    """Nothing tells but the time; it may still run, and is not asked again."""
    asked = []

    async def service(peer):
        await peer.accept()
        asked.append(await peer.next("text"))
        await peer.lose()

    await on.serve_raw(service)
    client = await on.client()
    await client.send(ask())
    texts = await heard_of(client, 8)
    assert '"error"' in texts[-1] and len(asked) == on.connections == 1, (texts, asked)


@case(ways=("speak",))
async def a_service_is_lost_in_the_middle(on):
    async def service(peer):
        await peer.accept()
        await peer.next("text")
        for text in begun:
            await peer.send(TEXT, text)
        await peer.lose()

    begun = list(answer("ab"))[:3]
    await on.serve_raw(service)
    client = await on.client()
    await client.send(ask())
    assert await heard_of(client, 8) == begun
    assert on.connections == 1, on.connections


@case(ways=("speak",))
async def a_service_is_lost_between_two_calls(on):
    """The next call shows it. It may have arrived, as far as anybody here can know."""

    async def service(peer):
        await peer.accept()
        await peer.next("text")
        for text in answer("a"):
            await peer.send(TEXT, text)
        await told.wait()
        await peer.lose()
        lost.set()

    told, lost = asyncio.Event(), asyncio.Event()
    await on.serve_raw(service)
    client = await on.client()
    await client.send(ask())
    for _ in answer("a"):
        await client.recv()
    told.set()
    await lost.wait()
    await client.send(ask())
    texts = await heard_of(client, 8)
    assert '"error"' in texts[-1] and on.connections == 1, (texts, on.connections)
