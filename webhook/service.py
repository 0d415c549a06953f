"""What the web server needs from everybody else: a handful of functions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.runtime.stop import Stop
from webhook.reply import Reply


def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The functions behind the routes. `webhook.wiring` builds the real one, tests build their own."""

    mutate: Callable[[bytes], Reply]
    """An AdmissionReview's bytes to its answer. Runs on the event loop: no waiting, no I/O."""

    validate: Callable[[bytes], Reply]
    """The same for our own policies. Runs on a thread."""

    ready: Callable[[], tuple[bool, str]]
    """Whether reviews should come here, and why or why not. A stop that has begun is added by us."""

    metrics: Callable[[], bytes]
    """The Prometheus text for a scrape."""

    failed: Callable[[str, Exception], None] = _nothing
    """Told of an exception that got as far as the edge: the path and the exception. To log and count."""

    observe: Callable[[str, int, float], None] = _nothing
    """Told of every review: the path, the HTTP status, and the seconds the answer took."""

    close: Callable[[], None] = _nothing
    """Called once when the process ends in good order: stop watches, flush records."""

    stop: Stop = field(default_factory=Stop)
    """Begun when the process is asked to stop; from then on `/readyz` says no."""
