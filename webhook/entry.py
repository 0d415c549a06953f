"""The module that gunicorn imports in its worker, after the fork: `webhook.entry:application`."""

import os

from trimtab.runtime import environment, log
from webhook.asgi import build_application
from webhook.cert_manager import start_certificate_rotation
from webhook.main import build_service

_settings = environment.read_settings(os.environ)
_service = build_service(_settings)
start_certificate_rotation(_settings, _service.stop, log.build_logger(_settings.log_level, _settings.log_format))

application = build_application(_service, _settings)
