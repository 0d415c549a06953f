"""When was that? Kubernetes' times as whole seconds."""

from datetime import UTC, datetime
from functools import lru_cache

Seconds = int
"""Since 1970-01-01T00:00:00Z."""


@lru_cache(maxsize=65536)
def seconds(written: str | None) -> Seconds | None:
    """RFC 3339 as whole seconds, fractions cut; None where nothing, or nothing readable, is written."""
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def written(moment: Seconds) -> str:
    """The other way, as the API server writes it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
