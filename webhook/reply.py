"""What goes back over HTTP."""

from dataclasses import dataclass

import msgspec

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """A status code, a body, and what the body is. The same for Flask and for the direct route."""

    status: int
    body: bytes
    content_type: str = JSON


def problem(status: int, error: str, expected: str) -> Reply:
    """A refusal in two sentences: what is wrong, and what would have been right."""
    return Reply(status, msgspec.json.encode({"error": error, "expected": expected}))


def text(status: int, says: str, reason: str) -> Reply:
    """A short state for probes and people: `{"status": …, "reason": …}`."""
    return Reply(status, msgspec.json.encode({"status": says, "reason": reason}))
