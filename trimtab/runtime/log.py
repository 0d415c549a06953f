"""Structured logs: one line per event, as JSON for machines or in colours for a terminal, without secrets."""

import logging
import re
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TextIO, cast

import msgspec
import structlog

from trimtab.cluster.control_characters import escape_in_json, replace_control_characters
from trimtab.runtime.line_batches import LineBatches

Logger = structlog.typing.FilteringBoundLogger
"""The type of the logger that all modules get as a parameter: `log.info("event", name=value)`."""

_SECRET_NAME = re.compile(r"token|password|secret|authorization|private|credential", re.IGNORECASE)
# Field names are constants of Trimtab's code: few, and checked on every line.
_names_a_secret = lru_cache(maxsize=1024)(_SECRET_NAME.search)
# The fields of an event are the same each time.
_are_plain_names = lru_cache(maxsize=256)(lambda names: not any(map(_SECRET_NAME.search, names)))
_SECRET_VALUE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|^Bearer ", re.IGNORECASE)
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def build_logger(
    level: str = "info", style: str = "auto", stream: TextIO | None = None, *, info_delay_seconds: float = 0.0
) -> Logger:
    """Returns a logger that writes to `stream` (standard error if None).

    `style` is `json`, `console` or `auto`: console on a terminal, JSON elsewhere. A value that looks like key material,
    or whose name is that of a secret, is replaced by `***`. Each line is written at once, without a buffer; with
    `info_delay_seconds`, JSON lines of the level `info` wait so long for others. A process that is killed loses them.
    """
    stream_or_stderr: Any = stream if stream is not None else sys.stderr
    if info_delay_seconds:
        stream_or_stderr = LineBatches(stream_or_stderr, info_delay_seconds)
    is_console = style == "console" or (style == "auto" and stream_or_stderr.isatty())
    filtering_class = structlog.make_filtering_bound_logger(_LEVELS[level])
    logger = structlog.wrap_logger(
        structlog.WriteLogger(stream_or_stderr),
        processors=_console_processors() if is_console else _json_processors(),
        wrapper_class=filtering_class
        if is_console or _LEVELS[level] > _LEVELS["info"]
        else _direct_class(filtering_class, stream_or_stderr if info_delay_seconds else None),
        cache_logger_on_first_use=True,
    )
    return cast("Logger", logger)


def _direct_class(filtering: type, batches: LineBatches | None) -> type:
    """Returns the same logger class with a faster path for plain info lines, because one is written for every changed
    pod: to `batches`, if there are."""

    class Direct(filtering):  # type: ignore[misc]  # made at run time
        def info(self, event: str, *args: Any, **fields: Any) -> Any:
            if args or self._context or "exc_info" in fields or "stack_info" in fields:
                return super().info(event, *args, **fields)
            stamp = datetime.now(UTC).isoformat().replace("+00:00", "Z")
            event_dict = {**fields, "event": event, "level": "info", "timestamp": stamp}
            line = _json_line(event_dict)
            # Mostly no field is a secret: then one look at the whole line is enough.
            if "-----" in line or "bearer " in line.lower() or not _are_plain_names(tuple(fields)):
                line = _json_line(redact_secrets(None, "info", event_dict))
            return self._logger.msg(line) if batches is None else batches.add_line(line)

    return Direct


class Forward(logging.Handler):
    """A handler for Python's `logging` that writes the records of libraries as structured lines."""

    def __init__(self, to: Logger) -> None:
        super().__init__()
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line, with the name of the library's logger as `source`. Raises nothing."""
        try:
            level = max(lvl for lvl in (10, 20, 30, 40) if lvl <= max(record.levelno, 10))
            self._to.log(level, record.getMessage(), source=record.name, exc_info=record.exc_info)
        except Exception:  # noqa: BLE001  logging itself must never take a process down
            self.handleError(record)


def forward_logging(to: Logger) -> Forward:
    """Sends the warnings of all libraries to this logger. Returns the handler, for loggers that do not propagate."""
    handler = Forward(to)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    return handler


def redact_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Returns the same event with secrets replaced by `***`."""
    for name, value in event.items():
        if _names_a_secret(name) or (
            isinstance(value, str)
            and (("-----" in value or value[:7].lower() == "bearer ") and _SECRET_VALUE.search(value) is not None)
        ):
            event[name] = "***"
    return event


def _common_processors() -> list[structlog.typing.Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact_secrets,
    ]


def _json_processors() -> list[structlog.typing.Processor]:
    renderer = structlog.processors.JSONRenderer(serializer=_json_line)
    return [*_common_processors(), renderer]


_ENCODER = msgspec.json.Encoder(enc_hook=repr)


def _json_line(event: Any, **_: Any) -> str:
    return escape_in_json(_ENCODER.encode(event).decode())


def _console_processors() -> list[structlog.typing.Processor]:
    return [
        *_common_processors(),
        _replace_control_characters,
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]


def _replace_control_characters(_logger: Any, _method: str, event: Any) -> Any:
    """Replaces the characters that a terminal would obey: values may be names and messages of others."""
    return {
        key: value if isinstance(value, bool | int | float | None) else replace_control_characters(str(value))
        for key, value in event.items()
    }
