"""Every example of `docs/python.md` does what it says, with a service of this machine in place of the one it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import wanted
from test_httpx import RESPONSE
from upstream import Upstream, reply

MANUAL = Path(__file__).parents[2] / "docs/python.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", MANUAL.read_text(), re.DOTALL | re.MULTILINE)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_manual_run(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "openai" in example:
        wanted("openai")
    with Upstream(reply(200, RESPONSE)) as up:
        exec(compile(example.replace("https://llm.example.com", up.url), str(MANUAL), "exec"), {})
        assert up.seen
    assert "Traceback" not in capsys.readouterr().err
