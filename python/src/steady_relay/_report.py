"""What a relay tells of one call, in a header that it was asked for and that goes no further than here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

#: Asks for the report, and carries it.
HEADER = "x-steady-report"


@dataclass(frozen=True)
class Attempt:
    """One send of a call to a service."""

    #: Its number, from 1.
    number: int
    #: When it began, in seconds since the call did; ``None`` where it never did.
    began: float | None
    #: How long the call waited before it, in seconds.
    waited: float
    #: The status that the service answered with.
    status: int | None
    #: What went wrong, in one of the words of `docs/faults.md`; ``None`` where nothing did.
    fault: str | None
    #: The code that the service gave, or how the connection ended.
    code: str | None
    #: What that proves, in a word of `docs/faults.md`; ``None`` where it is definite, or nothing went wrong.
    evidence: str | None
    #: Whether the send before may have run as well.
    may_run_twice: bool


@dataclass(frozen=True)
class CallReport:
    """How a call went, up to the head of its answer."""

    #: ``served``, ``passed``, ``returned``, ``refused``, ``gave_up``, or ``turned_away``.
    outcome: str
    #: Why the relay ended it, where it did.
    why: str | None
    #: Whether the answer is the relay's own, in place of one of the service.
    by_relay: bool
    #: The name of the call in the relay's log, and in its history (``steady-relay why``) where it keeps one: that of a
    #: process, which is not joined, keeps none.
    call: str | None
    #: How long it waited between sends, in seconds.
    waited: float
    #: Its sends, in their order; of a call with more than sixteen the last ones.
    attempts: tuple[Attempt, ...]
    #: The model and the service, as the relay knows them.
    model: str | None
    upstream: str | None

    #: How much longer it would have waited before its next send, in seconds, where it was ended before.
    left: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the relay gave it up, or refused to send it again."""
        return self.outcome in ("gave_up", "refused")

    @property
    def may_have_run(self) -> bool:
        """Whether a send that failed may have run at the service all the same."""
        proof = ("never_sent", "refused")
        return any(attempt.evidence is not None and attempt.evidence not in proof for attempt in self.attempts)

    def after(self, before: CallReport | None) -> CallReport:
        """The same, of a call that went on from that one."""
        if before is None:
            return self
        many, spent = len(before.attempts), before.waited + before.left
        attempts = tuple(
            replace(
                attempt,
                number=attempt.number + many,
                began=None if attempt.began is None else attempt.began + spent,
            )
            for attempt in self.attempts
        )
        return replace(self, attempts=before.attempts + attempts, waited=spent + self.waited)


def read(line: str | None) -> CallReport | None:
    """The report that a header carries; ``None`` where it is none."""
    try:
        told = json.loads(line or "")
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get("v") != 1:
        return None
    call = told.get("call") or {}
    return CallReport(
        outcome=str(told.get("outcome")),
        why=told.get("why"),
        by_relay=told.get("by") == "relay",
        call=f"c{call['call']}" if "call" in call else None,
        waited=_seconds(told.get("waited_ms")) or 0.0,
        attempts=tuple(_attempt(send) for send in call.get("sends", []) if "began" in send),
        model=call.get("model"),
        upstream=call.get("upstream"),
        left=_left(call.get("sends", [])),
    )


def _left(sends: Sequence[Mapping[str, Any]]) -> float:
    """What is left of the wait for a send that did not begin."""
    wait = (sends[-1].get("wait") or {}) if sends and "began" not in sends[-1] else {}
    return max(0.0, (_seconds(wait.get("planned")) or 0.0) - (_seconds(wait.get("took")) or 0.0))


def _attempt(send: Mapping[str, Any]) -> Attempt:
    failed = send.get("failed") or {}
    wait = send.get("wait") or {}
    return Attempt(
        number=send["send"],
        began=_seconds(send.get("began")),
        waited=_seconds(wait.get("took")) or 0.0,
        status=send.get("status"),
        fault=failed.get("fault"),
        code=failed.get("code"),
        evidence=failed.get("evidence"),
        may_run_twice=bool(send.get("may_run_twice")),
    )


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
