"""The tests of ``requests`` itself, from its own source distribution, with our ``Session`` in place of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Where that distribution was unpacked.
SOURCE = os.environ.get("STEADY_SOURCE_OF_REQUESTS")

#: Those that make requests by a session, or are about it.
FILES = ["tests/test_requests.py", "tests/test_lowlevel.py", "tests/test_adapters.py"]

#: What does not apply, with the reason.
LEFT_OUT = {
    # What breaks HTTP ends at the relay, and a plain `ConnectionError` is told of it.
    "tests/test_lowlevel.py::test_chunked_encoding_error": "the answer breaks its framing",
    "tests/test_lowlevel.py::test_conflicting_content_lengths": "the answer has two lengths",
    "tests/test_requests.py::TestRequests::test_proxy_authorization_preserved_on_request": (
        "it is for the next proxy (RFC 9110, 11.7.1), which is the relay"
    ),
    # As they are, for other reasons than ours.
    "tests/test_requests.py::TestTimeout": "addresses beyond this machine, and many seconds; see test_session.py",
    "tests/test_lowlevel.py::test_use_proxy_from_environment": "they need a library for SOCKS",
}


@pytest.mark.skipif(
    SOURCE is None and "STEADY_NEEDS_TOOLS" not in os.environ,
    reason="STEADY_SOURCE_OF_REQUESTS names no source distribution of requests",
)
def test_the_tests_of_requests_pass(home: Path) -> None:
    assert SOURCE is not None
    command = [sys.executable, "-m", "pytest", "-q", "-p", "as_requests", "-p", "no:cacheprovider", "-W", "ignore"]
    for name in LEFT_OUT:
        command += ["--deselect", name]
    here = str(Path(__file__).parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    ran = subprocess.run([*command, *FILES], cwd=SOURCE, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    passed = int(ran.stdout.rpartition(" passed")[0].split()[-1])
    assert passed > 300, ran.stdout[-500:]
