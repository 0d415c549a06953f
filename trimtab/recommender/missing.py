"""Of which containers too little is known, and what is missing: for whoever asks why there is no recommendation."""

import msgspec

from trimtab.cluster.reason import NotYet
from trimtab.recommender.publishing import Verdicts
from trimtab.sketch.book import Container


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of one container."""

    container: str
    """NAMESPACE/KIND/NAME/CONTAINER."""
    resource: str
    reason: str
    text: str
    have: str
    need: str


def page(found: Verdicts | None) -> bytes:
    """JSON; `leading` is false in a replica that waits, which knows nothing."""
    held = found.missing.items() if found else ()
    lines = [_line(container, resource, one) for container, lacking in held for resource, one in lacking.items()]
    return msgspec.json.encode({"leading": found is not None, "missing": lines}) + b"\n"


def _line(container: Container, resource: str, found: NotYet) -> Missing:
    return Missing(
        container=str(container), resource=resource, reason=found.reason.code.name, text=str(found.reason),
        have=found.have, need=found.need,
    )  # fmt: skip
