"""The names of codex-retry, for programs that were written for it: see :mod:`steady_relay`."""

from steady_relay import (
    CodexRetrySession,
    MaxRetriesExceeded,
    ResendRefused,
    TotalTimeoutExceeded,
)

__all__ = ["CodexRetrySession", "MaxRetriesExceeded", "ResendRefused", "TotalTimeoutExceeded"]
