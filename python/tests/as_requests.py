"""A plugin of pytest: whoever makes a session of ``requests`` gets one of ours."""

from __future__ import annotations

import requests
import requests.sessions

import steady_relay

requests.Session = requests.sessions.Session = steady_relay.Session  # type: ignore[misc]
