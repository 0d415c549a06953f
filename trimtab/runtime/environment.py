"""The environment as settings, and settings as an environment; all mistakes at once."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from trimtab.cluster.config_error import ConfigError, nearest, shown
from trimtab.runtime.files import SettingsError
from trimtab.runtime.renamed_settings import RENAMED
from trimtab.runtime.settings import COMMON_SETTINGS, PROCESSES, ListenAddress, Settings

PREFIX = "TRIMTAB_"
_MAX_NUMBER = 1_000_000

_SERVICE_LINK = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$")
"""What the kubelet puts into every pod for a Service called `trimtab-…`: no words of ours."""


S = TypeVar("S")


def variable(process: str, field: str) -> str:
    """The variable of a process's setting, such as `TRIMTAB_COMPACTOR_PLAN_INTERVAL_SECONDS`.

    What all processes of one installation have to agree on has no process in its name: `TRIMTAB_NAMESPACE`.
    """
    return PREFIX + (field if field in COMMON_SETTINGS else f"{process}_{field}").upper()


def variables(kind: Any) -> dict[str, str]:
    """Variable to field of a class of settings, or of one of its values."""
    return {variable(kind.process, field.name): field.name for field in fields(kind)}


def read(environ: Mapping[str, str]) -> Settings:
    """The settings an environment asks for; what it does not name has its default.

    Raises `SettingsError` with every mistake: values that cannot be read, names that do not exist,
    and a stop that would be cut short.
    """
    made = read_as(environ, Settings)
    _coherent(made)
    return made


def read_as(environ: Mapping[str, str], kind: type[S]) -> S:
    """The settings of the class `kind`, each from the variable that `variable` names.

    Variables of the other processes are left alone, so that all processes can share one ConfigMap of settings.
    """
    hints = get_type_hints(kind)
    names = variables(kind)
    values: dict[str, Any] = {}
    mistakes = _unknown(environ, tuple(names), kind.process)  # type: ignore[attr-defined]
    for name, field in names.items():
        if (text := environ.get(name)) is None:
            continue
        expected, parse = _reader(hints[field], field)
        try:
            values[field] = parse(text.strip())
        except ValueError:
            mistakes.append(_wrong(name, expected, shown(text)))
    if mistakes:
        raise SettingsError(tuple(mistakes))
    return kind(**values)


def read_with_options(environ: Mapping[str, str], kind: type[S], listen: str | None, options: Mapping[str, Any]) -> S:
    """The settings of a process: those of the environment, and over them what its command line says.

    listen: HOST:PORT as text, read as the variable is. options: field to value; None where the option is not given.
    Raises SettingsError.
    """
    name = variable(kind.process, "listen")  # type: ignore[attr-defined]
    environment = {**environ, name: listen} if listen is not None else environ
    settings = read_as(environment, kind)
    given = {name: value for name, value in options.items() if value is not None}
    return replace(settings, **given)  # type: ignore[type-var]


def write(settings: Any) -> dict[str, str]:
    """The variables that `read` turns into exactly these settings; what is None is left out."""
    values = ((name, getattr(settings, field)) for name, field in variables(settings).items())
    return {name: _text(value) for name, value in values if value is not None}


def _unknown(environ: Mapping[str, str], names: tuple[str, ...], process: str) -> list[ConfigError]:
    others = tuple(f"{PREFIX}{other.upper()}_" for other in PROCESSES if other != process)
    common = {variable(process, field) for field in COMMON_SETTINGS}
    unknown = (
        name for name in sorted(environ)
        if name.startswith(PREFIX) and name not in names and name not in common and not name.startswith(others)
    )  # fmt: skip
    return [
        _renamed(name, process) or _wrong(name, "a setting's name", shown(name), nearest(name, names))
        for name in unknown
        if not _SERVICE_LINK.match(name.removeprefix(PREFIX))
    ]


def _renamed(name: str, process: str) -> ConfigError | None:
    new = RENAMED[process].get(name.removeprefix(PREFIX))
    if new is None:
        return None
    return _wrong(name, "a setting's name", "one that was renamed", f"use {variable(process, new)}")


def _wrong(variable: str, expected: str, got: str, todo: str = "") -> ConfigError:
    return ConfigError(file="environment", entry=variable, expected=expected, got=got, todo=todo)


def _coherent(settings: Settings) -> None:
    least = settings.shutdown_delay_seconds + 5
    if settings.graceful_timeout_seconds >= least:
        return
    got = f"{settings.graceful_timeout_seconds:g}"
    expected = f"at least {least:g} (five more than {variable('webhook', 'shutdown_delay_seconds')})"
    raise SettingsError((_wrong(variable("webhook", "graceful_timeout_seconds"), expected, shown(got)),))


def _reader(hint: Any, field: str) -> tuple[str, Callable[[str], Any]]:
    if get_origin(hint) is Literal:
        words = get_args(hint)
        return "one of " + ", ".join(words), lambda text: words[words.index(text)]
    if hint in (int, float) and not field.endswith("_seconds"):
        return _NUMBERS[hint]
    return _READERS[hint]


def _address(text: str) -> ListenAddress:
    host, _, port = text.rpartition(":")
    number = int(port)
    if not host or not 0 <= number <= 65535:
        raise ValueError(text)
    return ListenAddress(host.strip("[]"), number)


def _switch(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    return words[text.lower()] if text.lower() in words else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _seconds(text: str) -> float:
    found = float(text.removesuffix("s"))
    return found if 0 <= found <= 86400 else _refuse(text)


def _whole_seconds(text: str) -> int:
    found = int(text.removesuffix("s"))
    return found if 0 <= found <= 86400 else _refuse(text)


def _number(text: str) -> float:
    number = float(text)
    return number if 0 <= number <= _MAX_NUMBER else _refuse(text)


def _whole_number(text: str) -> int:
    number = int(text)
    return number if 0 <= number <= _MAX_NUMBER else _refuse(text)


def _path(text: str) -> Path:
    return Path(text) if text else _refuse(text)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return os.pathsep.join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_NUMBERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    float: (f"a number from 0 to {_MAX_NUMBER}", _number),
    int: (f"a whole number from 0 to {_MAX_NUMBER}", _whole_number),
}

_READERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    ListenAddress: ("HOST:PORT, port 0 to 65535", _address),
    bool: ("true or false", _switch),
    float: ("seconds from 0 to 86400", _seconds),
    int: ("whole seconds from 0 to 86400", _whole_seconds),
    Path: ("a path", _path),
    int | None: ("whole seconds from 0 to 86400", _whole_seconds),
    str: ("a name", lambda text: text or _refuse(text)),
    str | None: ("a name", lambda text: text or _refuse(text)),
    Path | None: ("a path", _path),
    tuple[Path, ...]: (
        f"paths separated by {os.pathsep!r}",
        lambda text: tuple(Path(part) for part in text.split(os.pathsep) if part),
    ),
    tuple[str, ...]: (
        f"names separated by {os.pathsep!r}",
        lambda text: tuple(part for part in text.split(os.pathsep) if part),
    ),
}
