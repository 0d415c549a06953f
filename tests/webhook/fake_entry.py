"""An application for tests that start the real server: everything is admitted, nothing is decided."""

import time

from tests.webhook.worlds import admitted, service
from webhook.asgi import Entry
from webhook.reply import Reply


def slowly(body: bytes) -> Reply:
    """A policy check that takes a moment, so that a stop can come in the middle of it."""
    time.sleep(1.0)
    return admitted(body)


application = Entry(service(validate=slowly))
