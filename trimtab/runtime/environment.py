"""Reads settings from environment variables, and writes settings as environment variables. All mistakes are reported
together."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from trimtab.cluster.config_error import ConfigError, quote_value
from trimtab.cluster.processes import PROCESSES
from trimtab.runtime.files import SettingsError
from trimtab.runtime.settings import COMMON_SETTINGS, ListenAddress, Settings

PREFIX = "TRIMTAB_"
_MAX_COMPARED = 64
"""How many characters of an unknown variable name are compared with the known names."""
_MAX_NUMBER = 1_000_000

# The kubelet sets these variables in every pod for a Service called `trimtab-…`: they are not settings.
_SERVICE_LINK = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$")


S = TypeVar("S")


def variable_name(process: str, field: str) -> str:
    """Returns the environment variable of a process' setting, such as `TRIMTAB_COMPACTOR_PLAN_INTERVAL_SECONDS`.

    Settings on which all processes of one installation must agree do not have the process in their name:
    `TRIMTAB_NAMESPACE`.
    """
    return PREFIX + field.upper() if field in COMMON_SETTINGS else _own_prefix(process) + field.upper()


def _own_prefix(process: str) -> str:
    """Returns the beginning of the variables that only this process reads."""
    return f"{PREFIX}{process.replace('-', '_').upper()}_"


def fields_by_variable(kind: Any) -> dict[str, str]:
    """Returns environment variable → field name, for the settings class or settings object `kind`."""
    return {variable_name(kind.process, field.name): field.name for field in fields(kind)}


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Returns the webhook's settings. A setting whose variable is absent has its default.

    Raises `SettingsError` with every mistake: values that are not valid, variables that do not exist, and shutdown
    times that contradict each other.
    """
    settings = read_as(environ, Settings)
    _check_shutdown_times(settings)
    return settings


def read_as(environ: Mapping[str, str], kind: type[S]) -> S:
    """Returns the settings of the class `kind`, each from its environment variable.

    Variables of other processes are ignored, so that all processes can share one ConfigMap of settings.
    """
    hints = get_type_hints(kind)
    names = fields_by_variable(kind)
    values: dict[str, Any] = {}
    mistakes = _unknown_variables(environ, tuple(names), kind)
    for name, field in names.items():
        if (text := environ.get(name)) is None:
            continue
        expected, parse = _parser_of(hints[field], field)
        try:
            # Values that come from a file often end with a line break.
            values[field] = parse(text.strip())
        except ValueError:
            mistakes.append(_variable_error(name, expected, quote_value(text)))
    if mistakes:
        raise SettingsError(tuple(mistakes))
    return kind(**values)


def read_with_options(environ: Mapping[str, str], kind: type[S], listen: str | None, options: Mapping[str, Any]) -> S:
    """Returns the settings of a process. They are read from the environment; options of the command line replace some
    of them.

    `listen` is HOST:PORT as text, parsed like the variable. `options`: field → value, or None if the option is absent.
    Raises SettingsError.
    """
    name = variable_name(kind.process, "listen")  # type: ignore[attr-defined]
    environment = {**environ, name: listen} if listen is not None else environ
    settings = read_as(environment, kind)
    overrides = {name: value for name, value in options.items() if value is not None}
    return replace(settings, **overrides)  # type: ignore[type-var]


def write_environment(settings: Any) -> dict[str, str]:
    """Returns the environment variables for these settings; reading them gives the same settings. A field that is None
    is left out."""
    values = ((name, getattr(settings, field)) for name, field in fields_by_variable(settings).items())
    return {name: _format_value(value) for name, value in values if value is not None}


def _unknown_variables(environ: Mapping[str, str], names: tuple[str, ...], kind: Any) -> list[ConfigError]:
    # A variable of another process is no mistake: all may share one ConfigMap.
    process = kind.process
    others = tuple(_own_prefix(other.name) for other in PROCESSES if other.name != process)
    common = {variable_name(process, field) for field in COMMON_SETTINGS}
    unknown = (
        name
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in names and name not in common and not name.startswith(others)
    )
    return [
        _renamed_variable(name, kind)
        or _variable_error(name, "the name of a setting", quote_value(name), _suggest_variable(name, names, process))
        for name in unknown
        if not _SERVICE_LINK.match(name.removeprefix(PREFIX))
    ]


def _suggest_variable(name: str, names: tuple[str, ...], process: str) -> str:
    """Returns advice that names the most similar variable, or an empty string.

    The prefix is not compared, because with it all names would seem similar.
    """
    prefix = _own_prefix(process)
    by_ending = {each.removeprefix(prefix).removeprefix(PREFIX): each for each in names}
    ending = name.removeprefix(prefix).removeprefix(PREFIX)
    matches = get_close_matches(ending[:_MAX_COMPARED], list(by_ending), n=1, cutoff=0.6)
    return f"did you mean {by_ending[matches[0]]!r}?" if matches else ""


def _renamed_variable(name: str, kind: Any) -> ConfigError | None:
    """Returns the mistake for a variable that an earlier version used for a setting, or None for any other name."""
    new = kind.renamed.get(name.removeprefix(PREFIX))
    if new is None:
        return None
    return _variable_error(
        name,
        "the name of a setting",
        "the former name of a setting, which was renamed",
        f"use {variable_name(kind.process, new)} instead",
    )


def _variable_error(variable: str, expected: str, got: str, todo: str = "") -> ConfigError:
    return ConfigError(file="environment", entry=variable, expected=expected, got=got, todo=todo)


def _check_shutdown_times(settings: Settings) -> None:
    # gunicorn's own steps need a few seconds after the delay (`graceful_shutdown.MARGIN_SECONDS`).
    minimum = settings.shutdown_delay_seconds + 5
    if settings.graceful_timeout_seconds >= minimum:
        return
    got = f"{settings.graceful_timeout_seconds:g}"
    expected = f"at least {minimum:g} (five more than {variable_name(settings.process, 'shutdown_delay_seconds')})"
    raise SettingsError(
        (_variable_error(variable_name(settings.process, "graceful_timeout_seconds"), expected, quote_value(got)),)
    )


def _parser_of(hint: Any, field: str) -> tuple[str, Callable[[str], Any]]:
    if get_origin(hint) is Literal:
        words = get_args(hint)
        return "one of " + ", ".join(words), lambda text: words[words.index(text)]
    if hint in (int, float) and not field.endswith("_seconds"):
        return _NUMBER_PARSERS[hint]
    return _PARSERS[hint]


def _parse_address(text: str) -> ListenAddress:
    host, _, port = text.rpartition(":")
    number = int(port)
    if not host or not 0 <= number <= 65535:
        raise ValueError(text)
    return ListenAddress(host.strip("[]"), number)


def _parse_bool(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    return words[text.lower()] if text.lower() in words else _raise_invalid(text)


def _raise_invalid(text: str) -> NoReturn:
    raise ValueError(text)


def _parse_seconds(text: str) -> float:
    seconds = float(text.removesuffix("s"))
    return seconds if 0 <= seconds <= 86400 else _raise_invalid(text)


def _parse_whole_seconds(text: str) -> int:
    seconds = int(text.removesuffix("s"))
    return seconds if 0 <= seconds <= 86400 else _raise_invalid(text)


def _parse_number(text: str) -> float:
    number = float(text)
    return number if 0 <= number <= _MAX_NUMBER else _raise_invalid(text)


def _parse_whole_number(text: str) -> int:
    number = int(text)
    return number if 0 <= number <= _MAX_NUMBER else _raise_invalid(text)


def _parse_path(text: str) -> Path:
    return Path(text) if text else _raise_invalid(text)


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return os.pathsep.join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_NUMBER_PARSERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    float: (f"a number from 0 to {_MAX_NUMBER}", _parse_number),
    int: (f"a whole number from 0 to {_MAX_NUMBER}", _parse_whole_number),
}

_PARSERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    ListenAddress: ("HOST:PORT, port 0 to 65535", _parse_address),
    bool: ("true or false", _parse_bool),
    float: ("seconds from 0 to 86400", _parse_seconds),
    int: ("whole seconds from 0 to 86400", _parse_whole_seconds),
    Path: ("a path", _parse_path),
    int | None: ("whole seconds from 0 to 86400", _parse_whole_seconds),
    str: ("a name", lambda text: text or _raise_invalid(text)),
    str | None: ("a name", lambda text: text or _raise_invalid(text)),
    Path | None: ("a path", _parse_path),
    tuple[Path, ...]: (
        f"paths separated by {os.pathsep!r}",
        lambda text: tuple(Path(part) for part in text.split(os.pathsep) if part),
    ),
    tuple[str, ...]: (
        f"names separated by {os.pathsep!r}",
        lambda text: tuple(part for part in text.split(os.pathsep) if part),
    ),
}
