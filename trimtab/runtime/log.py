"""One line per event: JSON for machines, colours for a terminal, and no secret in either."""

import logging
import re
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO, cast

import msgspec
import structlog

Logger = structlog.typing.FilteringBoundLogger
"""What everybody logs with: `log.info("event", name=value)`. Passed in, never looked up."""

_SECRET_NAME = re.compile(r"token|password|secret|authorization|private|credential", re.IGNORECASE)
_names_a_secret = lru_cache(maxsize=1024)(_SECRET_NAME.search)
"""Names of fields are words of ours: few, and asked on every line."""
_SECRET_VALUE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|^Bearer ", re.IGNORECASE)
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def build(level: str = "info", style: str = "auto", stream: TextIO | None = None) -> Logger:
    """A logger that writes to `stream` (standard error when None).

    `style` is `json`, `console` or `auto`: console on a terminal, JSON elsewhere. What was written is
    out at once; a value that looks like key material or is named like a secret is replaced by `***`.
    """
    out = stream if stream is not None else sys.stderr
    console = style == "console" or (style == "auto" and out.isatty())
    filtering = structlog.make_filtering_bound_logger(_LEVELS[level])
    wrapped = structlog.wrap_logger(
        structlog.WriteLogger(out),
        processors=_console() if console else _json(),
        wrapper_class=filtering if console or _LEVELS[level] > _LEVELS["info"] else _direct(filtering),
        cache_logger_on_first_use=True,
    )
    return cast("Logger", wrapped)


def _direct(filtering: type) -> type:
    """The same logger, whose plain lines go straight to their bytes: one is written for every changed pod."""

    class Direct(filtering):  # type: ignore[misc]  # made at run time
        def info(self, event: str, *args: Any, **fields: Any) -> Any:
            if args or self._context or "exc_info" in fields or "stack_info" in fields:
                return super().info(event, *args, **fields)
            stamp = datetime.now(UTC).isoformat().replace("+00:00", "Z")
            told = redact(None, "info", {**fields, "event": event, "level": "info", "timestamp": stamp})
            return self._logger.msg(_json_line(told))

    return Direct


class Forward(logging.Handler):
    """Takes what libraries say through `logging` and writes it as lines of ours."""

    def __init__(self, to: Logger) -> None:
        super().__init__()
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        """One line with the logger's name as `source`. Never raises into the library."""
        try:
            level = max(lvl for lvl in (10, 20, 30, 40) if lvl <= max(record.levelno, 10))
            self._to.log(level, record.getMessage(), source=record.name, exc_info=record.exc_info)
        except Exception:  # noqa: BLE001  logging itself must never take a process down
            self.handleError(record)


def forward(to: Logger) -> Forward:
    """Make every library's warnings lines of ours; returns the handler, for loggers that don't propagate."""
    handler = Forward(to)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    return handler


def redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The same event with secrets replaced by `***`."""
    for name, value in event.items():
        if _names_a_secret(name) or (isinstance(value, str) and _is_a_secret(value)):
            event[name] = "***"
    return event


def _is_a_secret(value: str) -> bool:
    # Nearly no value has either mark, and the expression costs ten times as much as looking for them.
    return ("-----" in value or value[:7].lower() == "bearer ") and _SECRET_VALUE.search(value) is not None


def _common() -> list[structlog.typing.Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _json() -> list[structlog.typing.Processor]:
    written = structlog.processors.JSONRenderer(serializer=_json_line)
    return [*_common(), structlog.processors.format_exc_info, redact, written]


_ENCODER = msgspec.json.Encoder(enc_hook=repr)


def _json_line(event: Any, **_: Any) -> str:
    return _ENCODER.encode(event).decode()


def _console() -> list[structlog.typing.Processor]:
    return [*_common(), redact, structlog.dev.ConsoleRenderer()]
