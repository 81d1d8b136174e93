"""A home of its own for all tests, in which a relay waits for milliseconds only, and what every test must leave behind:
no process, no socket."""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: A relay that sends again at once, nearly, on the port that no relay listens on.
_SETTINGS = """
[relay]
port = {port}
profile = "quick"

[profile.quick]
based_on = "interactive"
base = "20ms"
cap = "40ms"
jitter = "0s"
overloaded_base = "20ms"
overloaded_cap = "40ms"
useless_floor = "20ms"
never_sent_base = "20ms"
sends = 4
"""


def _at_home() -> Path:
    """The environment is that of nobody: no relay of whoever runs the tests is found."""
    home = Path(tempfile.mkdtemp(prefix="steady-relay-"))
    for name in list(os.environ):
        known = ("STEADY_RELAY_", "OPENAI_", "ANTHROPIC_", "REQUESTS_", "CURL_", "SSL_", "XDG_")
        if (name.startswith(known) and name != "STEADY_RELAY_PROGRAM") or name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ["HOME"] = str(home)
    os.environ["STEADY_RELAY_CONFIG"] = str(home / "config.toml")
    (home / "config.toml").write_text(_SETTINGS.format(port=_free_port()))
    return home


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


HOME = _at_home()


def wanted(module: str) -> Any:
    """A module that a test cannot do without: where all that the tests need was installed, it has to be there."""
    if os.environ.get("STEADY_NEEDS_TOOLS"):
        return importlib.import_module(module)
    return pytest.importorskip(module)


@pytest.fixture(scope="session", autouse=True)
def _home() -> Iterator[Path]:
    yield HOME
    from steady_relay._relay import _relays

    started = [held._process for relay in list(_relays) if (held := relay._held) is not None]
    for relay in list(_relays):
        relay.close()
    assert all(process.returncode == 0 for process in started)
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def home() -> Path:
    return HOME
