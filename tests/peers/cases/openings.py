"""The opening handshake (RFC 6455, section 4): what a client may not ask, and what a service may not answer."""

import asyncio

import websockets
from websockets.exceptions import InvalidHandshake, InvalidStatus

from raw import TEXT
from stage import SENDS, WAYS, answer, ask, case, soon, words_of


async def answering(connection):
    async for _ in connection:
        for event in answer(["yes"]):
            await connection.send(event)


@case()
async def requests_that_are_no_opening(on):
    """An answer that says no, as an HTTP server would: never 101, and never silence."""
    await on.serve(answering)
    odd = {
        "an old version": ({"sec_websocket_version": "8"}, (400, 426)),
        "no version": ({"sec_websocket_version": None}, (400, 426)),
        "no key": ({"sec_websocket_key": None}, (400,)),
        "a short key": ({"sec_websocket_key": "c2hvcnQ="}, (400,)),
        "a key that is no base64": ({"sec_websocket_key": "!!!!!!!!!!!!!!!!!!!!!!=="}, (400,)),
        "two keys": ({"sec_websocket_key": ["dGhlIHNhbXBsZSBub25jZQ==", "AAAAAAAAAAAAAAAAAAAAAA=="]}, (400,)),
        "no upgrade": ({"upgrade": None}, range(200, 600)),
        "another protocol": ({"upgrade": "tea"}, range(200, 600)),
        "no connection: upgrade": ({"connection": "keep-alive"}, range(200, 600)),
        "HTTP/1.0": ({"first": f"GET {on.path} HTTP/1.0"}, range(200, 600)),
        "POST": ({"first": f"POST {on.path} HTTP/1.1", "content_length": "0"}, range(200, 600)),
    }
    for name, (changes, statuses) in odd.items():
        peer = await on.raw_client(**changes)
        assert peer.head.status in statuses, f"{name} was answered by {peer.head.first}"
        if name == "an old version" and peer.head.status == 426:
            assert peer.head.get("sec-websocket-version") == "13", "426 does not name the version"


@case()
async def other_spellings_of_an_opening(on):
    await on.serve(answering)
    for changes in (
        {"upgrade": "WebSocket"},
        {"connection": "keep-alive, Upgrade"},
        {"connection": ["keep-alive", "UPGRADE"]},
        {"sec_websocket_extensions": ""},
        {"sec_websocket_key": "  AAAAAAAAAAAAAAAAAAAAAA==  "},
    ):
        peer = await on.raw_client(**changes)
        assert peer.head.status == 101, f"{changes} was answered by {peer.head.first}"
        await peer.send(TEXT, ask())
        assert await peer.hear() == ("text", next(answer([]))), changes


@case()
async def what_a_client_says_of_itself_arrives(on):
    await on.serve(answering)
    names = {"authorization": "Bearer test-key", "openai-beta": "responses_websockets=2026-02-06", "x-thread": "t 1"}
    client = await on.client(headers=names)
    await client.send(ask())
    await words_of(client)
    for name, value in names.items():
        assert on.heads[0].get(name) == value, f"{name} arrived as {on.heads[0].get(name)}"


@case()
async def a_subprotocol_is_chosen(on):
    await on.serve(answering, subprotocols=["two"])
    client = await on.client(subprotocols=["one", "two", "three"])
    assert client.subprotocol == "two", client.subprotocol
    offered = ", ".join(on.heads[0].get_all("sec-websocket-protocol"))
    assert [name.strip() for name in offered.split(",")] == ["one", "two", "three"], offered
    await client.send(ask())
    assert (await words_of(client))[0] == "yes"


@case()
async def no_subprotocol_is_chosen(on):
    async def service(peer):
        await peer.accept()
        await peer.gone()

    await on.serve_raw(service)
    client = await on.client(subprotocols=["one"])
    assert client.subprotocol is None


@case(ways=("speak",))
async def no_extension_is_spoken(on):
    """A client offers compression; the relay neither takes it nor passes the offer on."""
    await on.serve(answering, compression="deflate")
    peer = await on.raw_client(sec_websocket_extensions="permessage-deflate; client_max_window_bits")
    assert peer.head.status == 101 and peer.head.all("sec-websocket-extensions") == [], peer.head.fields
    assert on.heads[0].get_all("sec-websocket-extensions") == [], "the offer went on to the service"
    await peer.send(TEXT, ask())
    assert await peer.hear() == ("text", next(answer([])))
    client = await on.client(compression="deflate")
    await client.send(ask("x" * 10_000))
    assert (await words_of(client))[0] == "yes"


@case(ways=("direct", "tunnel"))
async def an_extension_is_spoken_through_the_tunnel(on):
    await on.serve(answering, compression="deflate")
    client = await on.client(compression="deflate")
    assert client.protocol.extensions, "compression was offered and not taken"
    await client.send(ask("x" * 10_000))
    assert (await words_of(client))[0] == "yes"


async def no_use(on, tries=SENDS):
    """The client gets no connection, or one that ends at once; the service is not asked over and over."""
    try:
        client = await on.client(open_timeout=12)
        await client.send(ask())
        text = await asyncio.wait_for(client.recv(), 12)
        assert '"error"' in text, f"a text from a service that broke the handshake: {text}"
    except (InvalidHandshake, websockets.ConnectionClosed, TimeoutError, EOFError) as error:
        assert not isinstance(error, TimeoutError), "the client was kept waiting"
    made = on.connections
    assert made <= tries, f"{made} connections"
    await asyncio.sleep(1)
    assert on.connections == made, "it goes on asking with nobody there"


def badly(**changes):
    """A service whose answer to the upgrade is not what RFC 6455, section 4.1, asks for."""

    async def play(on):
        async def service(peer):
            await peer.accept(**changes)
            heard = await peer.ending(within=15)
            peer.writer.close()
            left.append(True)
            assert all(kind != "text" for kind, *_ in heard), "a call was sent on a connection that was not agreed on"

        left = []
        await on.serve_raw(service)
        await no_use(on)
        assert await soon(lambda: len(left) == on.connections), "the service was not left"

    return play


def add(name, ways=WAYS, **changes):
    play = badly(**changes)
    play.__name__ = name
    case(ways=ways)(play)


add("a_wrong_accept", sec_websocket_accept="AAAAAAAAAAAAAAAAAAAAAAAAAAA=")
add("no_accept", sec_websocket_accept=None)
add("a_101_without_upgrade", upgrade=None)
add("a_101_to_another_protocol", upgrade="tea")
# The tunnel writes that header anew, and has it right.
add("a_101_without_connection", ways=("direct", "speak"), connection=None)
add("a_subprotocol_nobody_offered", sec_websocket_protocol="tea")
add("an_extension_nobody_offered", sec_websocket_extensions="permessage-deflate")


@case(ways=("speak",))
async def a_refused_opening_is_waited_out(on):
    body = b'{"error":{"code":"server_is_overloaded","message":"busy"}}'

    async def service(peer):
        if on.connections == 1:
            await peer.refuse("503 Service Unavailable", body, content_type="application/json")
            return
        await peer.accept()
        await peer.next("text")
        for text in answer(["in the end"]):
            await peer.send(TEXT, text)
        await peer.gone()

    await on.serve_raw(service)
    client = await on.client(open_timeout=12)
    await client.send(ask())
    assert (await words_of(client))[0] == "in the end"
    assert on.connections == 2, on.connections


@case()
async def a_refusal_that_stands_arrives(on):
    """It is news for the client, with status, body and headers."""
    for status, reason in ((401, "Unauthorized"), (407, "Proxy Authentication Required")):
        body = b'{"error":{"code":"invalid_api_key","message":"who are you"}}'

        async def service(peer):
            await peer.refuse(f"{status} {reason}", body, content_type="application/json", x_request_id="r1")
            peer.writer.close()

        if on.service is None:
            await on.serve_raw(lambda peer: service(peer))
        try:
            await on.client()
            raise AssertionError("the client was let in")
        except InvalidStatus as error:
            said = error.response
            assert (said.status_code, said.headers.get("x-request-id")) == (status, "r1"), said
            assert said.body == body, said.body


@case(ways=("speak",))
async def a_426_of_the_service_sends_the_client_to_http(on):
    await to_http(on, "426 Upgrade Required")


@case(ways=("speak",))
async def a_404_of_the_service_sends_the_client_to_http(on):
    await to_http(on, "404 Not Found")


@case(ways=("speak",))
async def a_403_of_the_service_sends_the_client_to_http(on):
    """Firewalls refuse upgrades with it; where the client itself is not let in, HTTP tells it so."""
    await to_http(on, "403 Forbidden")


async def to_http(on, refusal):
    """A service without WebSocket is asked once; Codex goes on over HTTP at a 426 and at nothing else."""

    async def service(peer):
        await peer.refuse(refusal)
        peer.writer.close()

    await on.serve_raw(service)
    for _ in range(3):
        peer = await on.raw_client()
        assert peer.head.status == 426, peer.head.first
    assert on.connections == 1, f"{on.connections} connections"


@case(ways=("tunnel", "speak"))
async def a_service_that_never_answers_the_upgrade(on):
    """The client hears of it in the time the settings allow for each send, and the wait of its patience at most."""

    async def service(peer):
        await peer.gone(within=24)

    await on.serve_raw(service)
    peer = await on.dial()
    await peer.write(on.upgrade())
    async with asyncio.timeout(20):
        await peer.read_head()
    assert peer.head.status >= 400 or on.way == "speak", peer.head.first
    assert on.connections <= SENDS, on.connections


@case(ways=("tunnel", "speak"))
async def nobody_at_home(on):
    await on.serve(answering)
    on.service.close()
    await on.service.wait_closed()
    peer = await on.dial()
    await peer.write(on.upgrade())
    async with asyncio.timeout(20):
        await peer.read_head()
    if peer.head.status == 101:
        await peer.send(TEXT, ask())
        last = (await honest_end(peer))[0]
        assert last[0] in ("text", "close", "end"), last
        return
    assert peer.head.status in (502, 503, 504), peer.head.first


async def honest_end(peer):
    """What a raw client hears of a call that cannot be served, the last of it first."""
    heard = []
    while not heard or heard[0][0] in ("ping", "pong") or (heard[0][0] == "text" and '"error"' not in heard[0][1]):
        heard.insert(0, await peer.hear(within=15))
    return heard
