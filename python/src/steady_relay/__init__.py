"""Lets programs survive model services that run out of capacity.

>>> from steady_relay import Session
>>> session = Session()                       # a requests.Session
>>> session.post("https://api.openai.com/v1/responses", json=..., headers=...)

For the SDKs of OpenAI and Anthropic, which use httpx:

>>> import httpx2, openai, steady_relay
>>> openai.OpenAI(http_client=httpx2.Client(transport=steady_relay.Transport()))

The relay itself is a program, which comes with this package; all that is decided is decided there.
"""

from ._httpx import AsyncTransport, Transport
from ._program import program
from ._relay import Relay, Statistics
from ._report import Attempt, CallReport
from ._requests import Adapter, CodexRetrySession, Session, report_of
from ._wishes import wishes
from .errors import (
    CallFailed,
    CertificateRefused,
    DirectWarning,
    MaxRetriesExceeded,
    NotCarried,
    ProxyRefused,
    RelayError,
    RelayNotStarted,
    ResendRefused,
    TotalTimeoutExceeded,
    TurnedAway,
    WishRefused,
)

__all__ = [
    "Adapter",
    "AsyncTransport",
    "Attempt",
    "CallFailed",
    "CallReport",
    "CertificateRefused",
    "CodexRetrySession",
    "DirectWarning",
    "MaxRetriesExceeded",
    "NotCarried",
    "ProxyRefused",
    "Relay",
    "RelayError",
    "RelayNotStarted",
    "ResendRefused",
    "Session",
    "Statistics",
    "TotalTimeoutExceeded",
    "Transport",
    "TurnedAway",
    "WishRefused",
    "program",
    "report_of",
    "wishes",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("steady-relay")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
