"""The environment as settings, and settings as an environment; all mistakes at once."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from trimtab.cluster.config_error import ConfigError, nearest, shown
from trimtab.runtime.files import SettingsError
from trimtab.runtime.settings import ListenAddress, Settings

PREFIX = "TRIMTAB_"

_SERVICE_LINK = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$")
"""What the kubelet puts into every pod for a Service called `trimtab-…`: no words of ours."""


S = TypeVar("S")


def read(environ: Mapping[str, str]) -> Settings:
    """The settings an environment asks for; what it does not name has its default.

    Raises `SettingsError` with every mistake: values that cannot be read, names that do not exist,
    and a stop that would be cut short.
    """
    made = read_as(environ, Settings)
    _coherent(made)
    return made


def read_as(environ: Mapping[str, str], kind: type[S]) -> S:
    """The same for another process's class of settings: each field's name in capitals, after `TRIMTAB_`."""
    hints = get_type_hints(kind)
    names = {PREFIX + field.name.upper(): field.name for field in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    mistakes = _unknown(environ, tuple(names))
    for variable, name in names.items():
        if (text := environ.get(variable)) is None:
            continue
        expected, parse = _reader(hints[name])
        try:
            values[name] = parse(text.strip())
        except ValueError:
            mistakes.append(_wrong(variable, expected, shown(text)))
    if mistakes:
        raise SettingsError(tuple(mistakes))
    return kind(**values)


def read_with_options(environ: Mapping[str, str], kind: type[S], listen: str | None, options: Mapping[str, Any]) -> S:
    """The settings of a process: those of the environment, and over them what its command line says.

    listen: HOST:PORT as text, read as the variable is. options: field to value; None where the option is not given.
    Raises SettingsError.
    """
    variables = {**environ, "TRIMTAB_LISTEN": listen} if listen is not None else environ
    settings = read_as(variables, kind)
    given = {name: value for name, value in options.items() if value is not None}
    return replace(settings, **given)  # type: ignore[type-var]


def write(settings: Any) -> dict[str, str]:
    """The variables that `read` turns into exactly these settings; what is None is left out."""
    held = ((field.name, getattr(settings, field.name)) for field in fields(settings))
    return {PREFIX + name.upper(): _text(value) for name, value in held if value is not None}


def _unknown(environ: Mapping[str, str], names: tuple[str, ...]) -> list[ConfigError]:
    ours = (name for name in sorted(environ) if name.startswith(PREFIX) and name not in names)
    return [
        _wrong(name, "a setting's name", shown(name), nearest(name, names))
        for name in ours
        if not _SERVICE_LINK.match(name.removeprefix(PREFIX))
    ]


def _wrong(variable: str, expected: str, got: str, todo: str = "") -> ConfigError:
    return ConfigError(file="environment", entry=variable, expected=expected, got=got, todo=todo)


def _coherent(settings: Settings) -> None:
    least = settings.drain + 5
    if settings.graceful_timeout >= least:
        return
    got = f"{settings.graceful_timeout:g}"
    expected = f"at least {least:g} seconds (TRIMTAB_DRAIN and five more), or the stop is cut short"
    raise SettingsError((_wrong(PREFIX + "GRACEFUL_TIMEOUT", expected, shown(got)),))


def _reader(hint: Any) -> tuple[str, Callable[[str], Any]]:
    if get_origin(hint) is Literal:
        words = get_args(hint)
        return "one of " + ", ".join(words), lambda text: words[words.index(text)]
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


def _path(text: str) -> Path:
    return Path(text) if text else _refuse(text)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return os.pathsep.join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


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
