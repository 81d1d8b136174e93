"""Peers that were not written here, as clients of the relay and as the service behind it, over WebSocket.

`websockets` and `wsproto` play both; the relay is the release program, a new one for each case. One line per case, and
exit code 1 where one failed. `cargo xtask test --only peers` starts it.

usage: websocket_peers.py RELAY [--way direct|tunnel|speak] [--only REGEX] [-v]

`direct` leaves the relay out: it shows that a case is sound.
"""

import argparse
import asyncio
import logging
import os
import re
import sys
import time

import stage
from cases import broken, calls, closes, frames, half_open, limits, openings  # noqa: F401, each adds its cases


async def play(case, way, program):
    """Plays one case; what was wrong with it, if anything, and what the relay told."""
    on = stage.Stage(way, program, case["relay"], case["more"])
    try:
        async with asyncio.timeout(case["limit"]):
            await case["play"](on)
    except TimeoutError as error:
        on.failed.append(error if str(error) else TimeoutError("it took too long"))
    except Exception as error:
        on.failed.append(error)
    told = await on.end()
    return on.failed, told


def words(error):
    text = f"{type(error).__name__}: {error}" if not isinstance(error, AssertionError) else str(error)
    at = error.__traceback__
    lines = []
    while at is not None:
        if "/cases/" in at.tb_frame.f_code.co_filename:
            lines.append(str(at.tb_lineno))
        at = at.tb_next
    return f"{text[:600]}" + (f" (line {', '.join(lines)})" if lines else "")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("relay")
    parser.add_argument("--way", action="append", choices=stage.WAYS)
    parser.add_argument("--only", default="")
    parser.add_argument("-v", action="store_true", help="show what the relay told in a case that failed")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = passed = 0
    for way in options.way or ("tunnel", "speak"):
        for case in stage.CASES:
            if way not in case["ways"] or not re.search(options.only, case["name"]):
                continue
            start = time.monotonic()
            wrong, told = await play(case, way, os.path.abspath(options.relay))
            took = f"{time.monotonic() - start:.1f} s"
            if not wrong:
                passed += 1
                print(f"PASS {way} {case['name']} ({took})", flush=True)
                continue
            failed += 1
            print(f"FAIL {way} {case['name']} ({took}): {' | '.join(map(words, wrong))}", flush=True)
            if options.v and told:
                print("     " + told.replace("\n", "\n     "), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(asyncio.run(main()))
