"""``Transport`` and ``AsyncTransport``: clients of httpx and httpx2, and the SDKs of OpenAI and Anthropic on them."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from conftest import wanted
from upstream import Upstream, busy, drops, reply, silent, stream

import steady_relay
from steady_relay import (
    AsyncTransport,
    DirectWarning,
    MaxRetriesExceeded,
    Relay,
    Transport,
    report_of,
    wishes,
)

LIBRARIES = [httpx, httpx2]


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.__name__)
def library(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def client(library: Any) -> Iterator[Any]:
    with library.Client(transport=Transport(), timeout=30) as client:
        yield client


def test_a_refusal_is_waited_for_and_the_answer_comes(client: Any, library: Any) -> None:
    with Upstream(busy(), reply(200, {"ok": 1}, {"Set-Cookie": "a=b"})) as up:
        response = client.post(f"{up.url}/v1/responses?x=%2F", json={"model": "gpt-x", "input": "hi"})
        assert isinstance(response, library.Response)
        assert (response.status_code, response.json(), response.reason_phrase) == (200, {"ok": 1}, "Told")
        assert [seen.target for seen in up.seen] == ["/v1/responses?x=%2F"] * 2
        assert up.seen[0].header("host") == f"127.0.0.1:{up.port}"
        assert str(response.url) == str(response.request.url) == f"{up.url}/v1/responses?x=%2F"
        names = [*response.request.headers, *response.headers]
        assert not [name for name in names if name.lower().startswith("x-steady")]
        report = report_of(response)
        assert report is not None and [attempt.status for attempt in report.attempts] == [503, 200]
        client.get(f"http://localhost:{up.port}/")
        assert up.seen[2].header("cookie") is None


def test_redirects_go_by_the_urls_of_the_caller(client: Any) -> None:
    with Upstream(reply(307, b"", {"Location": "/there"}), reply(200, {"ok": 1})) as up:
        response = client.post(f"{up.url}/here", content=b"body", follow_redirects=True)
        assert str(response.url) == f"{up.url}/there"
        assert [(seen.target, seen.body) for seen in up.seen] == [("/here", b"body"), ("/there", b"body")]


def test_a_stream_comes_event_by_event_and_is_left_upstream(client: Any) -> None:
    gate = threading.Event()
    with Upstream(stream("data: 1\n\n", "data: 2\n\n", gate=gate, ends=False)) as up:
        with client.stream("POST", f"{up.url}/any", json={}) as response:
            pieces = response.iter_raw()
            assert next(pieces) == b"data: 1\n\n"
            gate.set()
            assert next(pieces) == b"data: 2\n\n"
        assert up.seen[0].left.wait(10)


def test_timeouts_and_errors_are_those_of_the_library(client: Any, library: Any) -> None:
    with Upstream(silent) as up:
        with pytest.raises(library.ReadTimeout) as raised:
            client.get(f"{up.url}/slow", timeout=0.3)
        assert str(raised.value.request.url) == f"{up.url}/slow"
        assert up.seen[0].left.wait(10)


def test_what_the_relay_gives_up_is_an_answer_or_an_error(client: Any, library: Any) -> None:
    with Upstream(busy()) as up:
        answer = client.post(f"{up.url}/v1/responses", json={"model": "gpt-x"})
        assert (answer.status_code, answer.headers["x-should-retry"]) == (503, "false")
        with library.Client(transport=Transport(raises=True)) as raising:
            with pytest.raises(MaxRetriesExceeded) as raised:
                raising.post(f"{up.url}/v1/responses", json={"model": "gpt-x"})
        assert isinstance(raised.value, library.HTTPError)
        assert raised.value.response is not None and raised.value.response.status_code == 503
        assert [attempt.status for attempt in raised.value.attempts] == [503] * 4
        assert "(gpt-x) answered 503 after 4 sends" in str(raised.value)
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is type(raised.value) and again.report == raised.value.report
        assert again.response.status_code == 503 and str(again.request.url) == f"{up.url}/v1/responses"


def test_each_error_is_the_one_of_the_library_that_means_the_same(client: Any, library: Any) -> None:
    with library.Client(transport=Transport(raises=True)) as raising:
        with Upstream(busy(retry_after="2")) as up:
            with pytest.raises(library.TimeoutException) as late, wishes(patience="1s"):
                raising.get(f"{up.url}/v1/models")
            assert isinstance(late.value, steady_relay.TotalTimeoutExceeded)
        # What ended without an answer is an error without `raises` as well.
        with Upstream(drops) as up:
            for each in (client, raising):
                with pytest.raises(library.RemoteProtocolError) as cut:
                    each.post(f"{up.url}/charge", json={"cents": 1})
                assert isinstance(cut.value, steady_relay.ResendRefused) and len(cut.value.attempts) == 1


def test_wishes_are_for_the_calls_within_or_for_one(client: Any) -> None:
    with Upstream(busy(retry_after="2")) as up:
        with wishes(patience="1s"):
            assert client.get(f"{up.url}/v1/models").status_code == 503
        assert client.get(f"{up.url}/v1/models", headers={"x-steady-patience": "1s"}).status_code == 503
        assert len(up.seen) == 2
        with wishes(profile="bach"):
            answer = client.get(up.url)
        assert answer.status_code == 400 and "names no profile" in answer.text
        report = report_of(answer)
        assert report is not None and (report.outcome, report.by_relay) == ("turned_away", True)


def test_what_the_relay_cannot_carry_goes_direct_and_says_so(client: Any) -> None:
    with Upstream(reply(503)) as up:
        with pytest.warns(DirectWarning, match="as if a web page had sent it"):
            headers = {"Origin": "https://page.example", "X-Steady-Token": "T"}
            assert client.get(f"{up.url}/x", headers=headers).status_code == 503
        assert len(up.seen) == 1 and up.seen[0].header("x-steady-token") is None


def test_an_async_client_is_served_alike(library: Any) -> None:
    async def ask(up: Upstream) -> None:
        async with library.AsyncClient(transport=AsyncTransport(patience="9s"), timeout=30) as client:
            url = f"{up.url}/v1/responses"
            calls = [client.post(url, json={"model": "gpt-x", "input": str(n)}) for n in range(10)]
            answers = await asyncio.gather(*calls)
            assert [answer.json() for answer in answers] == [{"ok": 1}] * 10
            assert {str(answer.url) for answer in answers} == {url}

    with Upstream(busy(), reply(200, {"ok": 1})) as up:
        asyncio.run(ask(up))
        assert len(up.seen) == 11


def test_a_task_that_is_cancelled_ends_its_call_upstream(library: Any) -> None:
    async def ask(up: Upstream) -> None:
        async with library.AsyncClient(transport=AsyncTransport()) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get(f"{up.url}/slow", timeout=30), 0.3)
            assert await asyncio.to_thread(up.seen[0].left.wait, 10)

    with Upstream(silent) as up:
        asyncio.run(ask(up))


def test_a_loop_is_not_held_up_while_a_relay_starts(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_on = []

    class Watched(Relay):
        def base(self, url: str) -> str | None:
            asked_on.append((self.knows(url), threading.current_thread() is threading.main_thread()))
            return super().base(url)

    async def ask(up: Upstream) -> None:
        with Watched(own=True) as relay:
            async with library.AsyncClient(transport=AsyncTransport(relay=relay)) as client:
                for _ in range(2):
                    assert (await client.get(f"{up.url}/x")).status_code == 200

    with Upstream() as up:
        asyncio.run(ask(up))
    # Only what is answered at once is asked on the loop's own thread.
    assert asked_on == [(False, False), (True, True)]


# The SDKs. They use httpx2, and take a client of it.

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-x",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "the word", "annotations": []}],
        }
    ],
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "text", "text": "the word"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
OVERLOADED = reply(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def event(data: dict[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


OPENAI_EVENTS = (
    event({"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress"}}),
    event(
        {
            "type": "response.output_text.delta",
            "sequence_number": 1,
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
            "delta": "the word",
        }
    ),
    event({"type": "response.completed", "sequence_number": 2, "response": RESPONSE}),
)
ANTHROPIC_EVENTS = (
    event({"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}),
    event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "the word"}}),
    event({"type": "content_block_stop", "index": 0}),
    event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
    event({"type": "message_stop"}),
)


def openai_client(up: Upstream) -> Any:
    http = httpx2.Client(transport=Transport())
    return wanted("openai").OpenAI(api_key="sk-1", base_url=f"{up.url}/v1", http_client=http, max_retries=0)


def anthropic_client(up: Upstream) -> Any:
    http = httpx2.Client(transport=Transport())
    return wanted("anthropic").Anthropic(api_key="k", base_url=up.url, http_client=http, max_retries=0)


def test_openai_answers_streams_and_errors() -> None:
    openai = wanted("openai")
    with Upstream(busy(), reply(200, RESPONSE), busy(), stream(*OPENAI_EVENTS), reply(401, {"error": {}})) as up:
        with openai_client(up) as client:
            ask = {"model": "gpt-x", "input": "hi"}
            assert client.responses.create(**ask).output_text == "the word"
            kinds = [told.type for told in client.responses.create(**ask, stream=True)]
            assert kinds == ["response.created", "response.output_text.delta", "response.completed"]
            with pytest.raises(openai.AuthenticationError):
                client.responses.create(**ask)
        assert len(up.seen) == 5
        assert up.seen[0].header("authorization") == "Bearer sk-1"


def test_openai_is_told_what_was_given_up_and_does_not_storm() -> None:
    openai = wanted("openai")
    with Upstream(busy()) as up:
        http = httpx2.Client(transport=Transport())
        with openai.OpenAI(api_key="sk-1", base_url=f"{up.url}/v1", http_client=http) as client:
            with pytest.raises(openai.APIStatusError, match="overloaded"):
                client.responses.create(model="gpt-x", input="hi")
        assert len(up.seen) == 4


def test_openai_streams_live_and_a_stream_that_is_left_is_left_upstream() -> None:
    gate = threading.Event()
    with Upstream(stream(*OPENAI_EVENTS, gate=gate, ends=False)) as up, openai_client(up) as client:
        # The relay holds what comes before the first word of an answer.
        threading.Timer(0.1, gate.set).start()
        with client.responses.create(model="gpt-x", input="hi", stream=True) as told:
            assert next(iter(told)).type == "response.created"
        assert up.seen[0].left.wait(10)


def test_openai_async() -> None:
    openai = wanted("openai")

    async def ask(up: Upstream) -> None:
        http = httpx2.AsyncClient(transport=AsyncTransport())
        async with openai.AsyncOpenAI(
            api_key="sk-1", base_url=f"{up.url}/v1", http_client=http, max_retries=0
        ) as client:
            ask = {"model": "gpt-x", "input": "hi"}
            assert (await client.responses.create(**ask)).output_text == "the word"
            kinds = [told.type async for told in await client.responses.create(**ask, stream=True)]
            assert kinds[-1] == "response.completed"
            left = await client.responses.create(**ask, stream=True)
            async with left:
                await left.__anext__()
            assert await asyncio.to_thread(up.seen[-1].left.wait, 10)

    answers = [busy(), reply(200, RESPONSE), busy(), stream(*OPENAI_EVENTS), stream(*OPENAI_EVENTS[:2], ends=False)]
    with Upstream(*answers) as up:
        asyncio.run(ask(up))


def test_anthropic_answers_streams_and_errors() -> None:
    anthropic = wanted("anthropic")
    answers = [OVERLOADED, reply(200, MESSAGE), OVERLOADED, stream(*ANTHROPIC_EVENTS), OVERLOADED]
    with Upstream(*answers) as up, anthropic_client(up) as client:
        ask: dict[str, Any] = {
            "model": "claude-x",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hi"}],
        }
        assert client.messages.create(**ask).content[0].text == "the word"
        kinds = [told.type for told in client.messages.create(**ask, stream=True)]
        assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            client.messages.create(**ask)
        assert len(up.seen) == 8


def test_anthropic_async() -> None:
    anthropic = wanted("anthropic")

    async def ask(up: Upstream) -> None:
        http = httpx2.AsyncClient(transport=AsyncTransport())
        async with anthropic.AsyncAnthropic(api_key="k", base_url=up.url, http_client=http, max_retries=0) as client:
            ask: dict[str, Any] = {
                "model": "claude-x",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "hi"}],
            }
            assert (await client.messages.create(**ask)).content[0].text == "the word"
            kinds = [told.type async for told in await client.messages.create(**ask, stream=True)]
            assert kinds[-1] == "message_stop"

    with Upstream(OVERLOADED, reply(200, MESSAGE), OVERLOADED, stream(*ANTHROPIC_EVENTS)) as up:
        asyncio.run(ask(up))
