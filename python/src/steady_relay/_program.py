"""Where the program ``steady-relay`` is. The wheel brings it; nothing is ever downloaded."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from .errors import RelayNotStarted

NAME = "steady-relay.exe" if os.name == "nt" else "steady-relay"


def program() -> str:
    """The path of the program: what ``STEADY_RELAY_PROGRAM`` names, the one of this package, or the one on the PATH."""
    named = os.environ.get("STEADY_RELAY_PROGRAM")
    if named:
        return named
    for folder in _folders():
        path = folder / NAME
        if path.is_file():
            return str(path)
    found = shutil.which("steady-relay")
    if found:
        return found
    raise RelayNotStarted(
        "the program steady-relay is not there\n"
        "hint: install the wheel of steady-relay, or name the program in STEADY_RELAY_PROGRAM"
    )


def _folders() -> Iterator[Path]:
    """Where an installer puts the programs of this package."""
    yield Path(sysconfig.get_path("scripts"))
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        yield Path(sysconfig.get_path("scripts", scheme=user))
    # `pip install --target`, and virtual environments laid over others.
    here = Path(__file__).resolve().parent.parent
    yield here / "bin"
    for above in here.parents:
        if above.name in ("lib", "lib64", "Lib"):
            yield above.parent / ("Scripts" if os.name == "nt" else "bin")
            break
    yield Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin")
