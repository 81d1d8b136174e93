"""The end of a connection: code and reason go through both ways, and what no peer may send goes through neither."""

import asyncio

from raw import BINARY, CLOSE, TEXT, close_payload
from stage import answer, ask, case, soon

LEGAL = [
    (1000, ""),
    (1000, "done"),
    (1001, "going away"),
    (1011, "ein Fehler: äöü 🚀"),
    (3000, "x" * 123),
    (4999, "last of all"),
]

# Codes that stand for something which never crosses the wire, that nobody may use, and payloads that are no code.
ILLEGAL = {
    "1005": close_payload(1005),
    "1006": close_payload(1006, "lost"),
    "1015": close_payload(1015),
    "999": close_payload(999, "low"),
    "0": close_payload(0),
    "half a code": b"\x03",
}


@case(limit=40)
async def codes_of_the_client(on):
    """The service hears them; the client gets an answer to its close, with the same code."""
    heard = []

    async def service(peer):
        await peer.accept()
        (_, *what), *_ = await peer.ending()
        heard.append(tuple(what))
        await peer.close(*(what[:1] if what != [1005, ""] else []))
        peer.writer.close()

    await on.serve_raw(service)
    for code, reason in [*LEGAL, (1005, "")]:
        peer = await on.raw_client()
        await peer.close(*((code, reason) if code != 1005 else ()))
        last = (await peer.ending())[0]
        assert last[:2] == ("close", code), f"{code} was answered by {last}"
        await peer.gone()
        assert await soon(lambda: heard), f"{code} did not reach the service"
        assert heard.pop() == (code, reason), f"{code} {reason} reached the service as something else"


@case(limit=40)
async def codes_of_the_service(on):
    """The client hears them, with no call under way; the service gets an answer."""
    answered = []

    async def service(peer):
        await peer.accept()
        await peer.next("binary")
        code, reason = orders.pop(0)
        await peer.close(*((code, reason) if code != 1005 else ()))
        answered.append((await peer.ending())[0])
        peer.writer.close()

    orders = [*LEGAL, (1005, "")]
    await on.serve_raw(service)
    for code, reason in list(orders):
        peer = await on.raw_client()
        await peer.send(BINARY, b"now")
        last = (await peer.ending())[0]
        assert last == ("close", code, reason), f"{code} {reason} reached the client as {last}"
        await peer.close(*((code,) if code != 1005 else ()))
        await peer.gone()
        assert await soon(lambda: answered), f"{code}: nobody answered the service"
        last = answered.pop()
        assert last[:2] in (("close", code), ("close", 1000)), f"the close {code} of the service was answered by {last}"


@case()
async def codes_of_the_client_that_nobody_may_send(on):
    heard = []

    async def service(connection):
        await connection.wait_closed()
        heard.append(connection.close_code)

    await on.serve(service)
    for name, payload in ILLEGAL.items():
        peer = await on.raw_client()
        await peer.send(CLOSE, payload)
        last = (await peer.ending())[0]
        assert last[:2] == ("close", 1002), f"{name} was answered by {last}, not by 1002"
        peer.writer.close()
        assert await soon(lambda: heard), f"{name}: the service was not left"
        # `websockets` has 1006 for a connection that ends without a close frame.
        assert heard.pop() in (1000, 1001, 1002, 1006, 1011), name


@case()
async def a_reason_that_is_no_utf8(on):
    await on.serve(lambda connection: connection.wait_closed())
    peer = await on.raw_client()
    await peer.send(CLOSE, close_payload(1000, b"\xff\xfe"))
    last = (await peer.ending())[0]
    assert last[:2] in (("close", 1007), ("close", 1002)), last


@case(ways=("speak",), limit=40)
async def codes_of_the_service_that_nobody_may_send(on):
    """wsproto, which the client is here, takes none of them from the relay; it hears of the end all the same."""

    async def service(peer):
        await peer.accept()
        await peer.next("binary")
        await peer.send(CLOSE, orders.pop(0))
        await peer.leave()
        left.append(True)

    orders, left = [*ILLEGAL.values(), close_payload(1000, b"\xff\xfe")], []
    await on.serve_raw(service)
    for name in [*ILLEGAL, "a reason that is no UTF-8"]:
        peer = await on.raw_client()
        await peer.send(BINARY, b"now")
        last = (await peer.ending())[0]
        assert last[0] != "close" or last[1] not in (1005, 1006, 1015, 999, 0), f"{name} reached the client as {last}"
        peer.writer.close()
        assert await soon(lambda: left), f"{name}: the service was not left"
        left.clear()


@case()
async def nothing_counts_after_a_close(on):
    """What a client sends behind its close frame never arrives."""
    heard = []

    async def service(peer):
        await peer.accept()
        heard.extend(await peer.ending())
        # Whatever comes now would be judged by nobody else.
        await peer.close(1000)
        peer.writer.close()

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.write(peer.frame(CLOSE, close_payload(1000)) + peer.frame(TEXT, ask()) + peer.frame(BINARY, b"x"))
    assert (await peer.ending())[0][:2] == ("close", 1000)
    await peer.gone()
    assert await soon(lambda: heard), "the service heard nothing"
    assert [what[0] for what in heard] == ["close"], heard


@case()
async def a_close_in_the_middle_of_an_answer(on):
    """The client goes by the rules while its call runs; the service hears of it at once."""
    heard = []

    async def service(peer):
        await peer.accept()
        await peer.next("text")
        for text in list(answer("ab"))[:2]:
            await peer.send(TEXT, text)
        heard.extend(await peer.ending(within=5))
        if heard[0][0] == "close":
            await peer.close(heard[0][1])
        await peer.gone()

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.send(TEXT, ask())
    await peer.next("text")
    await peer.close(1000, "enough")
    assert (await peer.ending())[0][:2] == ("close", 1000)
    assert await soon(lambda: heard, 3), "the service was not told within 3 s"


@case()
async def both_close_at_once(on):
    async def service(peer):
        await peer.accept()
        await peer.next("binary")
        await peer.close(1000, "me")
        await peer.leave()

    await on.serve_raw(service)
    for _ in range(10):
        peer = await on.raw_client()
        await peer.write(peer.frame(BINARY, b"now") + peer.frame(CLOSE, close_payload(1000, "you")))
        assert (await peer.ending())[0][:2] == ("close", 1000)
        await peer.gone()


@case(limit=30)
async def a_service_that_never_answers_a_close(on):
    """The client is not kept waiting for ever, nor is the service's connection open for ever."""
    gone = []

    async def service(peer):
        await peer.accept()
        await peer.gone(within=25)
        gone.append(True)

    await on.serve_raw(service)
    peer = await on.raw_client()
    await peer.close(1000)
    if on.way == "speak":
        last = (await peer.ending(within=15))[0]
        assert last[0] in ("close", "end"), last
    await asyncio.sleep(0.1)
    peer.writer.close()
    assert await soon(lambda: gone, 15), "the service's connection stays open"
