"""What gunicorn imports in its worker, after the fork: `webhook.entry:application`."""

import os

from trimtab.runtime import environment, log
from webhook.asgi import entry
from webhook.keeping import keep
from webhook.wiring import build

_settings = environment.read(os.environ)
_service = build(_settings)
keep(_settings, _service.stop, log.build(_settings.log_level, _settings.log_format))

application = entry(_service, _settings)
