"""An application for tests that start the real server: everything is admitted, nothing is decided."""

import sys
import time

from tests.webhook.worlds import admitted, service
from webhook.asgi import Entry
from webhook.reply import Reply


def slowly(body: bytes) -> Reply:
    """A policy check that takes a moment, so that a stop can come in the middle of it."""
    time.sleep(1.0)
    return admitted(body)


def closed() -> None:
    """Leave a line in the log, so that a test sees that the end was an orderly one."""
    print('{"event": "closed", "level": "info"}', file=sys.stderr, flush=True)


application = Entry(service(validate=slowly, close=closed))
