"""An application for tests that start the real server: everything is admitted, nothing is decided."""

import os
import sys
import time

from tests.webhook.worlds import admitted, service
from trimtab.runtime import environment
from webhook.asgi import build_application
from webhook.handlers import HttpReply


def slowly(body: bytes) -> HttpReply:
    """A policy check that takes a moment, and says so, so that a stop can come in the middle of it."""
    print('{"event": "checking", "level": "info"}', file=sys.stderr, flush=True)
    time.sleep(1.0)
    return admitted(body)


def closed() -> None:
    """Leave a line in the log, so that a test sees that the end was an orderly one."""
    print('{"event": "closed", "level": "info"}', file=sys.stderr, flush=True)


application = build_application(service(validate=slowly, close=closed), environment.read_settings(os.environ))
