"""Start the webhook: the pair first, then the server."""

from typing import NoReturn

import certs
from trimtab.runtime import clock
from trimtab.runtime.log import Logger
from trimtab.runtime.serve import launch
from trimtab.runtime.settings import Settings
from webhook.keeping import first_pair

APPLICATION = "webhook.entry:application"


def run(settings: Settings, log: Logger, application: str = APPLICATION) -> NoReturn:
    """Serve over TLS from the settings' certificate folder until a signal; ends in `SystemExit`.

    Raises `certs.CertsError` when the folder holds no whole pair, `CannotServe` when the address
    cannot be had or the Secret gives no pair: all before anything listens.
    """

    def told(problem: certs.Problem | None) -> None:
        if problem is None:
            log.info("certificate reloaded", folder=str(settings.certs))
            _judge(settings, log)
        else:
            log.warning("certificate files refused, what was good is kept", code=problem.code, why=problem.says)

    first_pair(settings, log)
    _judge(settings, log)
    launch(application, settings, log, certs.Loader(settings.certs, told, settings.client_ca).front)


def _judge(settings: Settings, log: Logger) -> None:
    """Tell what is wrong with the pair. It is served all the same: API servers judge it, and the next one may come."""
    for problem in certs.status(settings.certs, clock.utc()).problems:
        log.warning("certificate", code=problem.code, why=problem.says)
