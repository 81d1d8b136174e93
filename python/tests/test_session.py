"""``Session``: a ``requests.Session`` whose requests go through a relay."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import requests
import requests.cookies
from requests.adapters import HTTPAdapter
from upstream import Seen, Upstream, busy, drops, reply, silent, stream

import steady_relay
from codex_retry import CodexRetrySession
from codex_retry import MaxRetriesExceeded as OldName
from steady_relay import (
    Adapter,
    CertificateRefused,
    DirectWarning,
    MaxRetriesExceeded,
    Relay,
    ResendRefused,
    Session,
    TotalTimeoutExceeded,
    WishRefused,
    report_of,
    wishes,
)

TURN = {"model": "gpt-x", "input": "hi"}


@pytest.fixture
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


def test_a_refusal_is_waited_for_and_the_answer_comes(session: Session) -> None:
    with Upstream(busy(), busy(), reply(200, {"ok": 1})) as up:
        response = session.post(f"{up.url}/v1/responses?x=1", json=TURN)
        assert (response.status_code, response.json()) == (200, {"ok": 1})
        assert [seen.target for seen in up.seen] == ["/v1/responses?x=1"] * 3
        assert up.seen[0].body == up.seen[2].body == response.request.body
        assert up.seen[0].header("host") == f"127.0.0.1:{up.port}"
        # Everything is as if nothing had been in between.
        assert response.url == response.request.url == f"{up.url}/v1/responses?x=1"
        assert not [name for name in response.request.headers if name.lower().startswith("x-steady")]
        assert "x-steady-report" not in response.headers and "x-steady-report" not in response.raw.headers
        report = report_of(response)
        assert report is not None and not report.by_relay
        assert [attempt.status for attempt in report.attempts] == [503, 503, 200]
        assert [attempt.fault for attempt in report.attempts] == ["at_capacity", "at_capacity", None]
        assert report.waited > 0


def test_a_definite_error_comes_back_untouched_and_at_once(session: Session) -> None:
    with Upstream(reply(404, b"\x00nothing\xff", {"X-Mark": "1"})) as up:
        response = session.get(f"{up.url}/v1/models")
        assert (response.status_code, response.content) == (404, b"\x00nothing\xff")
        assert (response.headers["X-Mark"], response.reason) == ("1", "Told")
        assert len(up.seen) == 1
        with pytest.raises(requests.HTTPError, match=f"404 Client Error: Told for url: {up.url}/v1/models"):
            response.raise_for_status()


def test_a_stream_comes_event_by_event(session: Session) -> None:
    gate = threading.Event()
    with Upstream(stream("data: 1\n\n", "data: [DONE]\n\n", gate=gate)) as up:
        response = session.post(f"{up.url}/any", json={}, stream=True)
        pieces = response.iter_content(None)
        assert next(pieces) == b"data: 1\n\n"
        # The second is not even sent before the first was read.
        gate.set()
        assert b"".join(pieces) == b"data: [DONE]\n\n"


def test_a_stream_that_is_left_is_left_upstream(session: Session) -> None:
    with Upstream(stream("data: 1\n\n", ends=False)) as up:
        response = session.post(f"{up.url}/any", json={}, stream=True)
        next(response.iter_content(None))
        response.close()
        assert up.seen[0].left.wait(10)


def test_a_timeout_is_one_of_requests_and_ends_the_call_upstream(session: Session) -> None:
    with Upstream(silent) as up:
        with pytest.raises(requests.exceptions.ReadTimeout) as raised:
            session.get(f"{up.url}/slow", timeout=(5, 0.3))
        assert raised.value.request is not None and raised.value.request.url == f"{up.url}/slow"
        assert up.seen[0].left.wait(10)


def test_a_timeout_bounds_the_waits_and_the_services_own_answer_comes_in_time(session: Session) -> None:
    with Upstream(busy(retry_after="20")) as up:
        response = session.get(f"{up.url}/v1/models", timeout=10)
        assert (response.status_code, response.headers["Retry-After"]) == (503, "20")
        report = report_of(response)
        assert report is not None and (report.outcome, report.why) == ("gave_up", "told_to_wait_longer")


def test_redirects_cookies_and_credentials_go_by_the_urls_of_the_caller(session: Session) -> None:
    with Upstream(reply(200, {"here": 1})) as other:

        def moves(seen: Seen) -> None:
            place = f"http://localhost:{other.port}/there" if seen.target == "/again" else "/again"
            reply(302, b"", {"Location": place, "Set-Cookie": "taste=sweet; Path=/"})(seen)

        with Upstream(moves) as up:
            session.auth = ("me", "hush")
            response = session.get(f"{up.url}/first#top")
            assert response.url == f"http://localhost:{other.port}/there#top"
            assert [step.url for step in response.history] == [f"{up.url}/first#top", f"{up.url}/again#top"]
            assert up.seen[1].header("cookie") == "taste=sweet"
            assert up.seen[1].header("authorization") is not None
            # Another origin gets neither.
            assert other.seen[0].header("cookie") is None and other.seen[0].header("authorization") is None
            assert [cookie.domain for cookie in session.cookies] == ["127.0.0.1"]
            assert session.get(f"{up.url}/first", allow_redirects=False).next.url == f"{up.url}/again"  # type: ignore[union-attr]


def test_a_name_of_the_url_is_that_of_the_cookie(session: Session) -> None:
    with Upstream(reply(200, {}, {"Set-Cookie": "a=b"})) as up:
        response = session.get(f"http://localhost:{up.port}/")
        assert [(cookie.name, cookie.domain) for cookie in response.cookies] == [("a", "localhost.local")]
        session.get(f"http://127.0.0.1:{up.port}/")
        assert up.seen[1].header("cookie") is None


def test_hooks_see_the_request_as_it_was_made(session: Session) -> None:
    seen = []
    session.hooks["response"].append(lambda response, **given: seen.append((response.url, given["timeout"])))
    with Upstream() as up:
        session.get(f"{up.url}/a", timeout=7)
        assert seen == [(f"{up.url}/a", 7)]


def test_bodies_of_every_kind_arrive_whole(session: Session) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a" * 70_000
        yield b"b"

    with Upstream(busy(), reply(200, {"ok": 1})) as up:
        session.post(f"{up.url}/v1/responses", data=pieces())
        assert [seen.body for seen in up.seen] == [b"a" * 70_000 + b"b"] * 2
        session.post(f"{up.url}/x", files={"file": ("name", b"content")}, data={"field": "1"})
        assert b"content" in up.seen[2].body and b'name="field"' in up.seen[2].body
        session.put(f"{up.url}/x", data=b"")
        assert (up.seen[3].method, up.seen[3].body) == ("PUT", b"")


def test_paths_arrive_as_they_were_written(session: Session) -> None:
    with Upstream() as up:
        paths = ["/", "/?x=%2F&y=a%20b", "/to/other/~0a", "/__steady/status", "/healthz", "/%7Ea/b%2Fc", "/v1/v1/x"]
        for path in paths:
            session.get(up.url + path)
        prepared = requests.Request("GET", up.url).prepare()
        prepared.url = f"{up.url}/a/../b//c"
        session.send(prepared)
        session.get(up.url.replace("http://", "http://me:hush@"))
        as_requests_has_them = [requests.Request("GET", up.url + path).prepare().path_url for path in paths]
        assert [seen.target for seen in up.seen] == [*as_requests_has_them, "/a/../b//c", "/"]
        assert up.seen[-1].header("authorization") is not None
        assert session.head(up.url).headers["Content-Length"] == "12"


def test_patience_and_profile_are_wishes_for_one_call_or_for_all(session: Session) -> None:
    with Upstream(busy(retry_after="2")) as up:
        for patience in ("1s", 1, timedelta(seconds=1)):
            response = session.get(f"{up.url}/v1/models", patience=patience)
            assert response.status_code == 503
        assert len(up.seen) == 3
        with Session(patience="1s", profile="strict") as short:
            assert short.get(f"{up.url}/v1/models").status_code == 503
            # What a call says comes before what all have; and nobody asks while a pause lasts that was asked for.
            with pytest.raises(TotalTimeoutExceeded, match="the 2ms that it may wait") as unsent:
                short.get(f"{up.url}/v1/models", headers={"X-Steady-Patience": "2ms"})
            assert unsent.value.attempts == ()
        assert len(up.seen) == 4
        assert not [seen for seen in up.seen if seen.header("x-steady-patience")]
        with pytest.raises(WishRefused, match="names no profile") as raised:
            session.get(up.url, profile="bach")
        assert isinstance(raised.value, requests.exceptions.InvalidHeader)
        assert len(up.seen) == 4


def test_where_no_service_answered_the_call_is_an_error(session: Session) -> None:
    with Upstream() as gone:
        url = gone.url
    with pytest.raises(MaxRetriesExceeded) as spent:
        session.get(f"{url}/v1/models")
    error = spent.value
    # What catches the errors of requests catches these.
    assert isinstance(error, requests.ConnectionError) and isinstance(error, requests.exceptions.RetryError)
    assert error.request is not None and error.request.url == f"{url}/v1/models"
    assert [attempt.fault for attempt in error.attempts] == ["never_sent"] * 4
    assert error.attempts[1].waited > 0 and error.report.call is not None
    assert "gave up after 4 sends" in str(error)
    with pytest.raises(TotalTimeoutExceeded) as late:
        session.get(f"{url}/v1/models", patience="10ms")
    assert isinstance(late.value, requests.ConnectionError) and isinstance(late.value, requests.Timeout)
    assert isinstance(late.value, TimeoutError)


def test_what_may_have_run_is_not_sent_again_without_a_grant_and_says_so(session: Session) -> None:
    with Upstream(drops) as up:
        # Of this nobody knows whether it may be repeated, nor of a turn that was repeated once.
        for path, body, sends in (("/charge", {"cents": 1}, 1), ("/v1/responses", TURN, 2)):
            up.seen.clear()
            with pytest.raises(ResendRefused, match="may have run") as cut:
                session.post(f"{up.url}{path}", json=body)
            assert isinstance(cut.value, requests.ConnectionError)
            assert len(up.seen) == len(cut.value.attempts) == sends
            assert cut.value.attempts[-1].may_run_twice is (sends == 2)
            assert cut.value.response is not None and cut.value.response.status_code == 502
        up.seen.clear()
        with pytest.raises(ResendRefused) as refused:
            session.post(f"{up.url}/v1/responses", json=TURN, profile="strict")
        assert (len(up.seen), len(refused.value.attempts)) == (1, 1)


def test_an_answer_that_the_relay_gave_up_on_comes_back_or_is_an_error(session: Session) -> None:
    with Upstream(busy()) as up:
        response = session.post(f"{up.url}/v1/responses", json=TURN)
        assert (response.status_code, response.json()["error"]["code"]) == (503, "server_is_overloaded")
        assert len(up.seen) == 4
        with Session(raises=True) as raising, pytest.raises(MaxRetriesExceeded) as raised:
            raising.post(f"{up.url}/v1/responses", json=TURN)
        assert raised.value.response is not None
        assert raised.value.response.json()["error"]["code"] == "server_is_overloaded"
        assert [attempt.status for attempt in raised.value.attempts] == [503] * 4
        said = str(raised.value)
        assert f"127.0.0.1:{up.port} (gpt-x) answered 503 after 4 sends and 0." in said and "overloaded" in said


def test_an_error_crosses_to_another_process_with_all_that_it_has(session: Session) -> None:
    with Upstream(busy()) as up, pytest.raises(MaxRetriesExceeded) as raised, Session(raises=True) as raising:
        raising.post(f"{up.url}/v1/responses", json=TURN)
    for again in (pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value), copy.deepcopy(raised.value)):
        assert type(again) is MaxRetriesExceeded and str(again) == str(raised.value)
        assert again.report == raised.value.report
        assert again.response is not None and again.response.status_code == 503
        assert again.request is not None and again.request.url == f"{up.url}/v1/responses"


@pytest.mark.parametrize("time", [float("inf"), float("nan"), -1, 1e9, b"5s", True, "", [5]])
def test_a_patience_that_is_no_time_is_said_before_anything_is_sent(session: Session, time: Any) -> None:
    with Upstream() as up:
        with pytest.raises((TypeError, ValueError), match="patience is a time"):
            session.get(up.url, patience=time)
        with pytest.raises((TypeError, ValueError), match="patience is a time"):
            Session(patience=time)
        assert not up.seen


def test_wishes_are_laid_one_over_the_other(session: Session) -> None:
    with Upstream(busy(retry_after="2")) as up, wishes(patience="1s"), wishes(profile="strict"):
        assert session.get(f"{up.url}/v1/models").status_code == 503
        request = session.prepare_request(requests.Request("GET", f"{up.url}/v1/models"))
        with pytest.raises(TotalTimeoutExceeded):
            session.send(request, patience="2ms")
        assert len(up.seen) == 1


def test_the_session_of_codex_retry_has_its_name_its_profile_and_its_errors() -> None:
    assert CodexRetrySession is steady_relay.CodexRetrySession and OldName is MaxRetriesExceeded
    with Upstream(busy(), reply()) as up, CodexRetrySession() as session:
        # Its curve begins at 1.5 s.
        assert session.get(f"{up.url}/v1/models", patience="3s").status_code == 200
        up.answers = [busy(retry_after="9")]
        with pytest.raises(TotalTimeoutExceeded):
            session.get(f"{up.url}/v1/models", patience="1s")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"headers": {"Host": "other.example"}}, "`Host` names another place"),
        ({"headers": {"Origin": "https://page.example"}}, "`origin`"),
        ({"proxies": {"http": "PROXY"}}, "proxies="),
    ],
)
def test_what_the_relay_cannot_carry_goes_direct_and_says_so(
    session: Session, arguments: dict[str, Any], why: str
) -> None:
    with Upstream(reply(503)) as up:
        if "proxies" in arguments:
            arguments = {"proxies": {"http": up.url}}
        with pytest.warns(DirectWarning, match=why):
            response = session.get(f"{up.url}/x", **arguments)
        assert response.status_code == 503 and report_of(response) is None
        assert len(up.seen) == 1 and up.seen[0].header("x-steady-hop") is None
        # As an error, nothing is sent.
        with pytest.raises(DirectWarning):
            session.get(f"{up.url}/x", **arguments)
        assert len(up.seen) == 1


def test_what_is_said_to_the_relay_no_service_hears(session: Session) -> None:
    headers = {"Origin": "https://page.example", "x-steady-token": "T", "X-Steady-Patience": "3s"}
    with Upstream(reply(200, {"ok": 1})) as up, pytest.warns(DirectWarning):
        assert session.get(up.url, headers=headers).status_code == 200
        assert not [name for name in ("x-steady-token", "x-steady-patience") if up.seen[0].header(name)]


def test_a_redirect_to_a_place_that_cannot_be_ends_that_call_alone(session: Session) -> None:
    there = {"location": f"http://{'a.' * 32_700}example/"}
    gate = threading.Event()
    with Upstream(reply(302, headers=there)) as up, Upstream(stream("data: 1", "data: 2", gate=gate)) as other:
        going = session.get(f"{other.url}/stream", stream=True)
        with pytest.raises(requests.exceptions.RequestException), warnings.catch_warnings():
            warnings.simplefilter("ignore", DirectWarning)
            session.get(up.url)
        gate.set()
        assert b"data: 2" in going.content


def test_a_host_that_is_that_of_the_url_is_no_reason_to_go_direct(session: Session) -> None:
    with Upstream() as up:
        response = session.get(f"{up.url}/x", headers={"Host": f"127.0.0.1:{up.port}"})
        assert report_of(response) is not None


@pytest.mark.parametrize("arguments", [{"verify": False}, {"cert": "/nowhere.pem"}, {"verify": "/nowhere.pem"}])
def test_how_tls_is_to_be_is_for_the_caller_or_the_relay_and_never_overheard(
    session: Session, arguments: dict[str, Any]
) -> None:
    with pytest.raises(DirectWarning, match=r"is asked without the relay: (verify|cert)="):
        session.get("https://127.0.0.1:1/", **arguments)


def test_what_the_environment_names_is_for_a_relay_that_begins_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    import trustme

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with authority.cert_pem.tempfile() as bundle, Upstream(busy(), reply(200, {})) as up:
        up.wrap(context)
        url = f"https://127.0.0.1:{up.port}/v1/models"
        with Relay(own=True) as before, Session(relay=before) as session:
            before.stats()
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
            # The relay that runs knows nothing of it.
            with pytest.raises(DirectWarning, match="verify="):
                session.get(url)
        with Relay(own=True) as relay, Session(relay=relay) as session:
            assert session.get(url).status_code == 200
    with Upstream(reply(200, {"by": "proxy"})) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with Relay(own=True) as relay, Session(relay=relay) as session:
            assert session.get("http://service.example/v1/models").json() == {"by": "proxy"}
            assert proxy.seen[0].target == "http://service.example/v1/models"
            monkeypatch.setenv("NO_PROXY", "service.example")
            with pytest.raises(DirectWarning, match="proxies="):
                session.get("http://service.example/v1/models")


def test_a_certificate_that_nobody_vouches_for_is_an_error_of_tls(session: Session) -> None:
    import ssl

    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with Upstream() as up:
        up.wrap(context)
        with pytest.raises(CertificateRefused) as raised:
            session.get(up.url.replace("http", "https", 1))
        assert isinstance(raised.value, requests.exceptions.SSLError) and not up.seen


def test_an_adapter_of_ones_own_is_used_and_that_is_said(session: Session) -> None:
    with Upstream(reply(503)) as up:
        for prefix in ("http://", up.url):
            with pytest.warns(DirectWarning, match="go without the relay") as said:
                session.mount(prefix, HTTPAdapter())
            assert said[0].filename == __file__
        assert session.get(up.url).status_code == 503
        for prefix in ("http://", up.url):
            session.mount(prefix, Adapter(pool_maxsize=3))
        up.answers = [busy(), reply()]
        up.seen.clear()
        assert session.get(f"{up.url}/v1/models").status_code == 200


def test_the_adapter_does_for_any_session() -> None:
    with Upstream(busy(), reply()) as up, requests.Session() as session:
        session.mount(up.url, Adapter())
        assert session.get(f"{up.url}/v1/models").status_code == 200


def test_a_session_can_be_pickled() -> None:
    with Session(patience="1s") as session:
        again = pickle.loads(pickle.dumps(session))
    with Upstream(busy(retry_after="2")) as up, again:
        assert again.get(f"{up.url}/v1/models").status_code == 503
        assert len(up.seen) == 1


def test_many_threads_share_a_session(session: Session) -> None:
    with Upstream(reply(200, {"ok": 1})) as up:
        statuses: list[int] = []

        def ask() -> None:
            for _ in range(5):
                statuses.append(session.post(f"{up.url}/x", json=TURN).status_code)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 40
