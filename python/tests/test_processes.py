"""What is started and what is left: forks, threads, signals, a parent that is killed, relays of others."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from upstream import Seen, Upstream, busy, drops, reply, stream

import steady_relay
from steady_relay import (
    DirectWarning,
    Relay,
    RelayError,
    RelayNotStarted,
    ResendRefused,
    Session,
    TotalTimeoutExceeded,
    report_of,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")


def until(what: Callable[[], bool], within: float = 10.0) -> bool:
    """Whether it is so, in that time."""
    by = time.monotonic() + within
    while not what():
        if time.monotonic() > by:
            return False
        time.sleep(0.01)
    return True


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def relays(parent: int | None = None) -> set[int]:
    """The relays of sessions that this process has started; one of an earlier test may still be ending."""
    ours = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            command = (stat.parent / "cmdline").read_bytes().split(b"\0")
            above = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"session" in command and above == (parent or os.getpid()):
            ours.add(int(stat.parent.name))
    return ours


@contextmanager
def serving(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A relay of this user at the usual port, which belongs to nobody's process."""
    relay = subprocess.Popen([steady_relay.program(), "serve"], stderr=subprocess.PIPE)
    assert relay.stderr is not None
    try:
        while b"listening on" not in relay.stderr.readline():
            assert relay.poll() is None
        yield relay
    finally:
        relay.kill()
        relay.wait()
        relay.stderr.close()


def program(text: str) -> subprocess.Popen[str]:
    """Another Python with this program."""
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


#: Asks once, and tells the number of its relay.
ASKS = """
import sys
from steady_relay import Relay, Session
with Session() as session:
    assert session.get(sys.argv[1] if len(sys.argv) > 1 else {url!r}).status_code == 200
    print(Relay.shared()._held._process.pid, flush=True)
    {then}
"""


def test_a_relay_is_started_once_and_ends_with_its_process() -> None:
    with Upstream() as up:
        child = program(ASKS.format(url=up.url, then=f"session.get({up.url!r})"))
        out, _ = child.communicate(timeout=30)
        assert child.returncode == 0
        assert until(lambda: not is_there(int(out)))


def test_a_process_that_is_killed_leaves_nothing() -> None:
    with Upstream(reply(), stream("data: 1\n\n", ends=False)) as up:
        then = f"next(session.get({up.url!r}, stream=True).iter_content(None)); print('streams', flush=True); input()"
        child = program(ASKS.format(url=up.url, then=then))
        assert child.stdout is not None and child.stdin is not None
        relay = int(child.stdout.readline())
        assert child.stdout.readline() == "streams\n" and is_there(relay)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert until(lambda: not is_there(relay))
        assert up.seen[1].left.wait(10)
        child.stdout.close()
        child.stdin.close()


def test_ctrl_c_is_for_the_process_and_not_for_its_relay() -> None:
    with Upstream() as up:
        then = f"""
    import os, signal
    try:
        os.killpg(0, signal.SIGINT)
    except KeyboardInterrupt:
        print("interrupted", session.get({up.url!r}).status_code, Relay.shared()._held._process.pid)
"""
        child = program(ASKS.format(url=up.url, then=then))
        out, _ = child.communicate(timeout=30)
        relay, told = out.splitlines()
        assert told == f"interrupted 200 {relay}"
        assert until(lambda: not is_there(int(relay)))


def test_a_child_has_a_relay_of_its_own_and_its_parents_goes_on() -> None:
    with Upstream() as up, Session() as session:
        assert session.get(up.url).status_code == 200
        before = relays()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                status = session.get(up.url).status_code
                held = Relay.shared()._held
                assert held is not None
                os.write(write, f"{status} {held._process.pid}".encode())
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        os.close(write)
        with os.fdopen(read) as told:
            answered, relay = told.read().split()
        os.waitpid(child, 0)
        assert answered == "200" and int(relay) not in before
        assert until(lambda: not is_there(int(relay)))
        # The parent's is the same, and works.
        assert session.get(up.url).status_code == 200 and relays() <= before


def test_a_fork_in_the_middle_of_a_question_holds_nobody_up() -> None:
    with Upstream() as up, Relay(own=True) as relay, Session(relay=relay) as session:
        # As another thread would that asks just now, and is not there in the child.
        with relay._lock:
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                status = session.get(up.url).status_code
                os.kill(os.getpid(), signal.SIGKILL if status == 200 else signal.SIGTERM)
        _, ended = os.waitpid(child, 0)
        assert os.WTERMSIG(ended) == signal.SIGKILL
        assert session.get(up.url).status_code == 200


def test_forks_while_other_threads_ask_hold_nobody_up() -> None:
    with Upstream() as up, Relay(own=True) as relay, Session(relay=relay) as session:
        session.get(up.url)
        stop = threading.Event()

        def asks() -> None:
            while not stop.is_set():
                relay.stats()

        threads = [threading.Thread(target=asks) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(30):
                child = os.fork()
                if child == 0:
                    signal.alarm(20)
                    os.kill(os.getpid(), signal.SIGKILL)
                _, ended = os.waitpid(child, 0)
                assert os.WTERMSIG(ended) == signal.SIGKILL
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def slow(tmp_path: Path, first: str = "") -> Path:
    """The program, which begins only once there is a file `go`; or with these words first."""
    program = tmp_path / "slow program"
    go = f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.01; done"
    program.write_text(f"#!/bin/sh\n{go}\n{first}\nexec '{steady_relay.program()}' \"$@\"\n")
    program.chmod(0o755)
    return program


def test_a_child_that_is_forked_while_a_relay_starts_does_not_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADY_RELAY_PROGRAM", str(slow(tmp_path)))
    relay = Relay(own=True)
    starts = threading.Thread(target=relay.__enter__)
    starts.start()
    assert until(lambda: relay._held is not None)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        (tmp_path / "go").touch()
        starts.join(20)
        held = relay._held
        assert held is not None and held.url
        began = time.monotonic()
        relay.close()
        # Its input ended, since nobody else has that.
        assert held._process.returncode == 0 and time.monotonic() - began < 4
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_children_of_a_process_that_has_joined_have_connections_of_their_own(home: Path) -> None:
    def echo(seen: Seen) -> None:
        reply(200, {"path": seen.target})(seen)

    with serving(home), Upstream(echo) as up, Relay() as relay, Session(relay=relay) as session:
        assert session.get(f"{up.url}/parent").json() == {"path": "/parent"}
        children = []
        for name in "abc":
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                answers = [session.get(f"{up.url}/{name}{n}").json()["path"] for n in range(10)]
                right = answers == [f"/{name}{n}" for n in range(10)]
                os.kill(os.getpid(), signal.SIGKILL if right else signal.SIGTERM)
            children.append(child)
        assert session.get(f"{up.url}/parent").json() == {"path": "/parent"}
        assert [os.WTERMSIG(os.waitpid(child, 0)[1]) for child in children] == [signal.SIGKILL] * 3


def test_a_program_that_hangs_holds_nobody_up_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant in ("_STARTS", "_ANSWERS", "_ENDS"):
        monkeypatch.setattr(steady_relay._relay, constant, 0.3)
    with Relay(own=True) as relay:
        assert relay._held is not None
        os.kill(relay._held._process.pid, signal.SIGSTOP)
        # Another takes its place.
        first = relay._held
        assert relay.stats().open == 0 and relay._held is not first and first._process.returncode == -signal.SIGKILL
    monkeypatch.setenv("STEADY_RELAY_PROGRAM", str(slow(tmp_path)))
    with pytest.raises(RelayNotStarted, match="said nothing within"), Relay():
        pass


def test_a_handler_of_a_signal_may_ask_in_the_middle_of_a_question() -> None:
    with Relay(own=True) as relay:
        asked = []

        def handler(*_: object) -> None:
            asked.append(relay.stats().open)

        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            for _ in range(200):
                relay.stats()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert asked


def test_where_a_relay_was_nobody_else_is_sent_anything() -> None:
    with Upstream() as up, Relay(own=True) as relay, Session(relay=relay) as session:
        assert session.get(up.url).status_code == 200
        held = relay._held
        assert held is not None
        port = int(held.url.split(":")[2].split("/")[0])
        os.kill(held._process.pid, signal.SIGKILL)
        held._process.wait()
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.bind(("127.0.0.1", port))
            thief.listen()
            assert until(lambda: not held.lives)
            assert session.get(up.url, headers={"authorization": "Bearer k"}, timeout=20).status_code == 200
            thief.settimeout(0.1)
            with pytest.raises(socket.timeout):
                thief.accept()


@pytest.mark.parametrize("name", ["-x.py", b"b\xff.py".decode("utf-8", "surrogateescape")])
def test_a_program_may_be_called_anything(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [f"/tmp/{name}"])
    with Relay(own=True) as relay:
        assert relay.stats().open == 0


def test_a_child_that_outlives_its_parent_does_not_keep_the_parents_relay() -> None:
    with Upstream() as up:
        then = """
    import os, time
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    os._exit(0)
"""
        child = program(ASKS.format(url=up.url, then=then))
        assert child.stdout is not None and child.stdin is not None
        relay = int(child.stdout.readline())
        child.wait()
        assert until(lambda: not is_there(relay), within=5)
        os.killpg(child.pid, signal.SIGKILL)
        child.stdout.close()
        child.stdin.close()


def _ask(url: str) -> tuple[int, int]:
    with Session() as session:
        status = session.get(url).status_code
    held = Relay.shared()._held
    assert held is not None
    return status, held._process.pid


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_workers_of_multiprocessing_leave_nothing(method: str) -> None:
    with Upstream() as up:
        Relay.shared().stats()
        with multiprocessing.get_context(method).Pool(2) as pool:
            told = pool.map(_ask, [up.url] * 4)
            pool.close()
            pool.join()
        assert [status for status, _ in told] == [200] * 4
        assert all(until(lambda pid=pid: not is_there(pid)) for _, pid in told)  # type: ignore[misc]


def test_threads_that_begin_at_once_start_one_relay() -> None:
    with Upstream() as up, Relay(own=True) as relay:
        relay.close()
        before = relays()
        fresh = Relay(own=True)
        barrier = threading.Barrier(8)
        told: list[object] = []

        def ask() -> None:
            barrier.wait()
            with Session(relay=fresh) as session:
                told.append(session.get(up.url).status_code)
                told.append(fresh.url)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(told)) == 2 and 200 in told
        assert len(relays() - before) == 1
        fresh.close()
        assert relays() <= before


def test_a_relay_of_this_user_is_joined_and_lives_on(home: Path) -> None:
    with serving(home) as served, Upstream(busy(), reply(), busy(), reply()) as up:
        for _ in range(2):
            with Relay() as relay:
                assert relay.joined and "joined" in repr(relay)
                with Session(relay=relay) as session:
                    assert session.get(f"{up.url}/v1/models").status_code == 200
                stats = relay.stats()
                assert (stats.calls, stats.recovered, stats.sends, stats.lost) == (1, 1, 2, 0)
                assert relay.url.startswith("http://127.0.0.1:") and relay.base_url(up.url).startswith(relay.url)
        assert served.poll() is None
        with Relay(own=True) as own:
            assert not own.joined and repr(own) == "<Relay own>"


def test_a_relay_that_others_stop_is_replaced(home: Path) -> None:
    with Upstream() as up, Relay() as relay, Session(relay=relay) as session:
        relay.close()
    with Upstream() as up, serving(home) as served, Relay() as relay, Session(relay=relay) as session:
        assert relay.joined and session.get(up.url).status_code == 200
        served.kill()
        served.wait()
        assert session.get(up.url).status_code == 200
        assert not relay.joined and session.get(up.url).status_code == 200


def held_while_its_relay_is_stopped(relay: Relay, stop: Callable[[], None], url: str, data: Any) -> list[Any]:
    """What a call comes to that is held while its relay is stopped."""
    ends: list[Any] = []

    def asks() -> None:
        with Session(relay=relay) as session:
            try:
                ends.append(session.post(f"{url}/v1/responses", data=data))
            except RelayError as error:
                ends.append(error)

    caller = threading.Thread(target=asks)
    caller.start()
    assert until(lambda: bool(relay.stats().held))
    stop()
    caller.join(30)
    assert not caller.is_alive()
    return ends


TURN = b'{"model":"gpt-x","input":"hi"}'


@pytest.mark.parametrize("own", [False, True])
def test_a_call_that_is_held_survives_the_end_of_its_relay(home: Path, own: bool) -> None:
    with Upstream(busy(retry_after="2"), reply(200, {"ok": 1})) as up, serving(home) as served:
        with Relay(own=own) as relay:
            held = relay._held
            assert held is not None and relay.joined is not own
            stops = held._process.terminate if own else served.terminate
            began = time.monotonic()
            (answer,) = held_while_its_relay_is_stopped(relay, stops, up.url, TURN)
            assert answer.json() == {"ok": 1} and [seen.body for seen in up.seen] == [TURN] * 2
            # The service is asked when it said, and the report is that of the whole call.
            report = report_of(answer)
            assert report is not None and time.monotonic() - began >= 1.9 and 1.9 <= report.waited < 10
            assert [(each.number, each.status) for each in report.attempts] == [(1, 503), (2, 200)]
            assert relay._held is not held if own else not relay.joined


def test_what_may_have_run_is_not_sent_again_by_the_next_relay(home: Path) -> None:
    settings = home / "config.toml"
    before = settings.read_text()
    settings.write_text(before.replace('\nbase = "20ms"\ncap = "40ms"', '\nbase = "30s"\ncap = "30s"'))
    try:
        with Upstream(drops) as up, serving(home) as served, Relay() as relay:
            (error,) = held_while_its_relay_is_stopped(relay, served.terminate, up.url, TURN)
            assert isinstance(error, ResendRefused) and "may have run" in str(error)
            assert len(up.seen) == len(error.attempts) == 1 and error.attempts[0].evidence == "maybe_ran"
        # A body that cannot be read twice is not sent twice either.
        with Upstream(busy(retry_after="60")) as up, serving(home) as served, Relay() as relay:
            (error,) = held_while_its_relay_is_stopped(relay, served.terminate, up.url, iter([TURN]))
            assert isinstance(error, TotalTimeoutExceeded) and "nothing of it runs" in str(error)
            assert len(up.seen) == 1
    finally:
        settings.write_text(before)


def test_answers_come_to_their_end_where_their_relay_is_stopped() -> None:
    gate = threading.Event()
    with Upstream(stream("data: 1\n\n", "data: 2\n\n", gate=gate)) as up, Relay(own=True) as relay:
        with Session(relay=relay) as session:
            going = session.get(f"{up.url}/stream", stream=True)
            held = relay._held
            assert held is not None
            held._process.terminate()
            assert until(lambda: not held.lives)
            assert relay.stats().open == 0 and relay._held is not held
            gate.set()
            assert b"data: 2" in going.content
            assert until(lambda: held.is_over)


def test_where_a_relay_knows_the_process_no_more_another_is_found(home: Path) -> None:
    with serving(home), Upstream() as up, Relay() as relay, Session(relay=relay) as session:
        assert session.get(up.url).status_code == 200
        held = relay._held
        assert held is not None
        # As after a restart in which somebody else was first.
        relay._bases = {url: base.replace("/~", "/~0") for url, base in relay._bases.items() if base}
        del relay._bases[up.url]
        relay._bases[up.url] = f"{held.url.rpartition('~')[0]}~{'0' * 32}/to/u0"
        held._process.kill()
        assert until(lambda: not held.lives)
        assert session.get(up.url).status_code == 200


def test_one_that_is_closed_while_it_starts_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADY_RELAY_PROGRAM", str(slow(tmp_path)))
    monkeypatch.setattr(steady_relay._relay, "_ENDS", 0.1)
    relay, said = Relay(own=True), []

    def starts() -> None:
        with pytest.raises(RelayError) as raised:
            relay.environment()
        said.append(str(raised.value))

    thread = threading.Thread(target=starts)
    thread.start()
    assert until(lambda: relay._held is not None)
    relay.close()
    thread.join(20)
    assert not thread.is_alive() and said


def test_one_that_nobody_has_any_more_leaves_nothing() -> None:
    before, threads = relays(), threading.active_count()
    for _ in range(3):
        Relay(own=True).stats()
    gc.collect()
    assert until(lambda: relays() <= before and threading.active_count() <= threads)


def test_who_waited_for_a_start_that_fails_does_not_wait_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADY_RELAY_PROGRAM", str(slow(tmp_path)))
    for constant in ("_STARTS", "_ENDS"):
        monkeypatch.setattr(steady_relay._relay, constant, 1.0)
    relay, said = Relay(own=True), []

    def asks() -> None:
        with pytest.raises(RelayNotStarted) as raised:
            relay.stats()
        said.append(str(raised.value))

    threads = [threading.Thread(target=asks) for _ in range(6)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    # One start and its end take two seconds; six would take twelve.
    assert len(said) == 6 and time.monotonic() - began < 8
    relay.close()


@pytest.mark.parametrize("when", ["atexit", "del"])
def test_a_process_that_ends_starts_no_relay(when: str) -> None:
    text = f"""
import atexit, sys
def late():
    # What is registered first is called last, after what this package has to end.
    ask()
if {when!r} == "atexit":
    atexit.register(late)
import steady_relay
def ask(steady_relay=steady_relay, out=sys.stdout):
    try:
        steady_relay.Session().get("http://127.0.0.1:1/")
    except steady_relay.RelayError as error:
        out.write(f"refused: {{error}}\\n")
        out.flush()
class Last:
    def __del__(self, ask=ask):
        ask()
if {when!r} == "del":
    last = Last()
"""
    process = program(text)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and "this process is ending" in out


def test_a_relay_that_is_killed_is_started_again() -> None:
    with Upstream() as up, Relay(own=True) as relay, Session(relay=relay) as session:
        assert session.get(up.url).status_code == 200
        assert relay._held is not None
        os.kill(relay._held._process.pid, signal.SIGKILL)
        relay._held._process.wait()
        assert session.get(up.url).status_code == 200


@pytest.mark.parametrize("joined", [False, True])
def test_many_services_are_reached_and_streams_go_on_meanwhile(home: Path, joined: bool) -> None:
    gate = threading.Event()
    with Upstream(stream("data: 1\n\n", "data: 2\n\n", gate=gate), reply()) as up, serving(home):
        with Relay(own=not joined) as relay, Session(relay=relay) as session:
            assert relay.joined == joined
            pieces = session.get(up.url, stream=True).iter_content(None)
            assert next(pieces) == b"data: 1\n\n"
            bases = {relay.base_url(f"http://127.0.0.1:{port}") for port in range(1, 40)}
            assert len(bases) == 39
            gate.set()
            assert b"".join(pieces) == b"data: 2\n\n"
            assert session.get(up.url).status_code == 200


def test_what_cannot_be_a_service_is_said(home: Path) -> None:
    with Relay(own=True) as relay, Session(relay=relay) as session:
        with pytest.raises(DirectWarning, match="asked without the relay: the URL has no IPv6 address"):
            session.get("http://[fe80::1%25nowhere]:80/")
        # The relay itself needs none in between.
        with serving(home) as served:
            assert relay.base(f"http://127.0.0.1:{_port(home)}") is None
            assert session.get(f"http://127.0.0.1:{_port(home)}/healthz").text.strip() == "ok"
            assert served.poll() is None


def _port(home: Path) -> int:
    line = next(line for line in (home / "config.toml").read_text().splitlines() if line.startswith("port"))
    return int(line.partition("=")[2])


def test_why_there_is_no_relay_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[relay]\nprot = 1\n")
    with pytest.raises(RelayNotStarted, match="prot"), Relay(config=wrong):
        pass
    monkeypatch.setenv("STEADY_RELAY_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(RelayNotStarted, match="cannot be started"), Relay():
        pass
    monkeypatch.setenv("STEADY_RELAY_PROGRAM", "/bin/true")
    with pytest.raises(RelayNotStarted, match="ended before it said anything"), Relay():
        pass
    # What speaks otherwise is named, and nothing of it is left.
    before = relays()
    for said in ("hello", "[1]", '{"v":1}', '{"v":2,"url":"http://x","joined":true}', r"\xff\xfe", '{"id":"x"}'):
        other = tmp_path / "other"
        other.write_text(f"#!/bin/sh\nprintf '{said}\\n'\nexec sleep 60\n")
        other.chmod(0o755)
        monkeypatch.setenv("STEADY_RELAY_PROGRAM", str(other))
        monkeypatch.setattr(steady_relay._relay, "_ENDS", 0.1)
        with pytest.raises(RelayNotStarted, match="no steady-relay that this package knows"), Relay():
            pass
    assert relays() <= before
    closed = Relay()
    closed.close()
    with pytest.raises(RelayError, match="closed"):
        closed.stats()


def test_nothing_is_left_open() -> None:
    def opened() -> set[str]:
        gc.collect()
        links = set()
        for descriptor in Path("/proc/self/fd").iterdir():
            try:
                links.add(os.readlink(descriptor))
            except OSError:
                continue
        return {link for link in links if link.startswith(("socket:", "pipe:"))}

    with Upstream() as up:
        before, running = opened(), relays()
        for _ in range(3):
            with Relay(own=True) as relay, Session(relay=relay) as session:
                for _ in range(5):
                    session.post(up.url, json={}).raise_for_status()
        assert until(lambda: len(opened() - before) <= 0), opened() - before
        assert relays() <= running
    assert socket.getdefaulttimeout() is None
