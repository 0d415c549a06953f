"""Starts gunicorn for an application that is given as a string, and logs the address on which it listens."""

import importlib.util
import os
import socket
import ssl
from pathlib import Path
from typing import Any, NoReturn

from gunicorn import util
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger as GunicornLogger

from trimtab.runtime import environment, gunicorn_patches, http_pages
from trimtab.runtime.files import CannotServe
from trimtab.runtime.graceful_shutdown import drain_on_term
from trimtab.runtime.log import Forward, Logger, forward_logging
from trimtab.runtime.settings import ListenAddress, ServerSettings

WORKER_TIMEOUT_SECONDS = 30
"""A worker that sends no heartbeat for this many seconds is replaced. It is also the longest pause within a body."""

BACKLOG = 2048
"""The number of connections that wait in the kernel during a burst of handshakes."""


RECEIVE_BUFFER_BYTES = 32 * 1024
"""The size in bytes of the kernel's receive buffer for one connection (the kernel doubles this number). It limits how
much one read can return.

uvloop has a buffer of 256 kB per connection, and of that as much stays in memory as the largest read has filled."""


def launch_gunicorn(application: str, settings: ServerSettings, log: Logger, tls: ssl.SSLContext | None) -> NoReturn:
    """Serves `application` (`module:name`, an ASGI callable) until a signal arrives; then exits the process.

    The settings are written to the environment first, so that the worker, which imports the application after the fork,
    reads the same ones. `tls` is None for plain HTTP. The function does not return: it raises `SystemExit`, in the
    worker too, so a caller must not clean up after it. Raises `CannotServe` if it cannot listen on the address.
    """
    os.environ.update(environment.write_environment(settings))
    if settings.ready_file:
        # A program that waits for the file must not read the address of an earlier process.
        settings.ready_file.unlink(missing_ok=True)
    # Detached: gunicorn takes the descriptor over and closes it when it stops.
    _Gunicorn(application, settings, log, tls, open_listener(settings.listen).detach()).run()
    raise SystemExit(0)


def open_listener(address: ListenAddress) -> socket.socket:
    """Returns a listening socket. It is opened before anything else is started. Raises `CannotServe` with the reason.

    gunicorn itself would retry for five seconds, and then exit with the reason spread over several log lines.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CannotServe(f"cannot listen on {address}: {reason}") from error
    # Accepted connections inherit it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    return listener


class _Gunicorn(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """A gunicorn server that reads no command line, no configuration file and no environment variables."""

    def __init__(
        self, application: str, settings: ServerSettings, log: Logger, tls: ssl.SSLContext | None, listener: int
    ) -> None:
        self._application = application
        self._options = {
            "bind": f"fd://{listener}",
            **_gunicorn_options(settings),
            **_tls_options(settings, tls),
            **_logging_options(forward_logging(log)),
        }
        self._options["post_worker_init"] = _post_worker_init(settings, log, tls is not None)
        super().__init__()

    def load_config(self) -> None:
        """Sets gunicorn's options."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Returns the application."""
        return util.import_app(self._application)


def _gunicorn_options(settings: ServerSettings) -> dict[str, Any]:
    # `uvloop`, with which Trimtab is measured, if it is installed, and otherwise `asyncio`.
    return {
        # One worker: it holds the watches and the metrics. More load is more replicas.
        "workers": 1,
        "worker_class": "asgi",
        "asgi_loop": "uvloop" if importlib.util.find_spec("uvloop") else "asyncio",
        "asgi_lifespan": "on",
        "http_parser": gunicorn_patches.choose_parser(),
        "keepalive": settings.keepalive_seconds,
        "timeout": WORKER_TIMEOUT_SECONDS,
        "graceful_timeout": int(settings.graceful_timeout_seconds),
        # Trimtab does no work for a client that has disconnected; a grace period would only hold memory.
        "asgi_disconnect_grace_period": 0,
        # Recycling a worker would make every API server open its connections again at once.
        "max_requests": 0,
        "control_socket_disable": True,
        "proc_name": "trimtab",
        **_heartbeat_options(),
    }


def _heartbeat_options() -> dict[str, str]:
    # The worker's heartbeat is a file's modification time; on a slow disk, writing it could look like a hang.
    shared = Path("/dev/shm")  # noqa: S108
    return {"worker_tmp_dir": str(shared)} if os.access(shared, os.W_OK) else {}


def _tls_options(settings: ServerSettings, context: ssl.SSLContext | None) -> dict[str, Any]:
    if context is None:
        return {}
    gunicorn_patches.collect_after_handshakes(context)
    # gunicorn enables TLS if a certificate file is named, then gets the context from the hook. The hook returns one
    # that exists already: if a hook fails, gunicorn serves plain HTTP.
    return {"certfile": str(settings.certs_folder / "tls.crt"), "ssl_context": lambda config, default: context}


def _logging_options(handler: Forward) -> dict[str, Any]:
    class Forwarding(GunicornLogger):  # type: ignore[misc]  # gunicorn has no types
        def setup(self, cfg: Any) -> None:
            super().setup(cfg)
            self.error_log.handlers[:] = [handler]

    return {"logger_class": Forwarding, "loglevel": "warning"}


def _post_worker_init(settings: ServerSettings, log: Logger, secure: bool) -> Any:
    def post_worker_init(worker: Any) -> None:
        gunicorn_patches.reduce_memory()
        gunicorn_patches.apply_patches(
            worker,
            max_connections=settings.max_connections,
            max_by_address=settings.max_connections_per_address,
            tells_clients=settings.client_ca_file is not None,
            log=log,
        )
        drain_on_term(worker, settings)
        host, port = worker.sockets[0].sock.getsockname()[:2]
        url = f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        log.info("ready", url=url, pid=worker.ppid)
        http_pages.write_ready_file(settings.ready_file, {"url": url, "host": host, "port": port, "pid": worker.ppid})

    return post_worker_init
