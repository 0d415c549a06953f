"""What gunicorn imports in its worker, after the fork: `webhook.entry:application`."""

import os

from trimtab.runtime import environment
from webhook.asgi import Entry
from webhook.wiring import build

application = Entry(build(environment.read(os.environ)))
