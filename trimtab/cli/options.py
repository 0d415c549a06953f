"""Makes the options of a command from a frozen dataclass, and the dataclass from what the user wrote."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click

from trimtab.cli import complete_names
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.command_faults import CommandFault, UsageError
from trimtab.inputs.option import Argument, Option


def takes(options: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates the function of a command: it is called with one value of the dataclass `options`, after the context
    of click below `click.pass_context`."""
    fields = _read_fields(options)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def command(*context: click.Context, **values: Any) -> None:
            function(*context, _build(options, values))

        decorated: Any = command
        present = [one for _, _, _, one in _iterate_parameters(fields) if isinstance(one, Option)]
        names = {name for one in present for name in one.names}
        vars(command)[_FORMER_NAMES] = {
            former: one.names[-1] for one in present for former in one.former if former not in names
        }
        for field in reversed(list(_iterate_parameters(fields))):
            decorated = _make_parameter(*field)(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


_FORMER_NAMES = "former_names"


def refuse_former_options(command: click.Command, words: list[str]) -> None:
    """Raises CommandFault with the present name of the first option that the words of a command line call by a former
    name."""
    former_names: Mapping[str, str] = getattr(command.callback, _FORMER_NAMES, {})
    for word in words[: words.index("--") if "--" in words else len(words)]:
        # The value of a short option may follow without a blank, as in -nshop.
        flag = word.partition("=")[0] if word.startswith("--") else word[:2]
        if flag in former_names:
            raise CommandFault(f"{flag} is now called {former_names[flag]}; nothing was done.")


def given_settings(options: Any) -> dict[str, Any]:
    """Returns field → value for the options of a process that the command line has, without the address to listen on,
    which is read like its variable. The fields are those of the settings."""
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return {name: value for name, value in values.items() if name != "listen" and value not in (None, ())}


COMPLETIONS = {
    "--namespace": complete_names.complete_namespaces,
    "--system-namespace": complete_names.complete_namespaces,
    "--node": complete_names.complete_nodes,
    "--pool": complete_names.complete_pools,
}
"""The long name of an option → what names its values for a shell."""

_Field = tuple[str, Any, Any, Option | Argument | None]
"""The name of a field, its type, its default, and its declaration; None for a dataclass of options."""


def _read_fields(options: type[Any]) -> list[_Field]:
    hints = get_type_hints(options, include_extras=True)
    result: list[_Field] = []
    for field in dataclasses.fields(options):
        hint, declared = hints[field.name], None
        if declarations := [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, (Option, Argument))]:
            hint, declared = get_args(hint)[0], declarations[-1]
        result.append((field.name, hint, field.default, declared))
    return result


def _iterate_parameters(fields: list[_Field]) -> Iterator[tuple[str, Any, Any, Option | Argument]]:
    for name, hint, default, declared in fields:
        if declared is not None:
            yield name, hint, default, declared
        elif dataclasses.is_dataclass(hint):
            yield from _iterate_parameters(_read_fields(hint))  # type: ignore[arg-type]


def _build(options: type[Any], values: Mapping[str, Any]) -> Any:
    built = {}
    for name, hint, default, declared in _read_fields(options):
        if declared is not None:
            built[name] = _read_value(values[_key(name, declared)], hint, default, declared)
        elif dataclasses.is_dataclass(hint):
            built[name] = _build(hint, values)  # type: ignore[arg-type]
    return options(**built)


def _read_value(value: Any, hint: Any, default: Any, declared: Option | Argument) -> Any:
    """Returns the value of the field for that of click."""
    if declared.convert is not None:
        is_absent = value is None or value == ()
        return default if is_absent and default is not dataclasses.MISSING else declared.convert(value)
    if isinstance(value, tuple) and get_origin(hint) is not tuple:
        if len(value) > 1:
            flag = declared.metavar if isinstance(declared, Argument) else declared.names[-1]
            got = " and ".join(map(str, value))
            raise UsageError([ConfigError(file=flag or "", expected="the option at most once", got=got)])
        value = value[0] if value else None
    # The text as a path, if that is what the field holds.
    if _is_many(hint):
        return tuple(map(Path, value)) if get_args(hint)[0] is Path else value
    return Path(value) if isinstance(value, str) and _without_none(hint) is Path else value


def _is_many(hint: Any) -> bool:
    return get_origin(hint) is tuple and get_args(hint)[-1] is Ellipsis


def _key(name: str, declared: Option | Argument) -> str:
    """Returns the name of the option among click's parameters. Two options of a command differ in it, but the fields
    of two dataclasses may have the same name."""
    if isinstance(declared, Argument):
        return name
    return declared.names[-1].partition("/")[0].lstrip("-").replace("-", "_")


def _make_parameter(name: str, hint: Any, default: Any, declared: Option | Argument) -> Callable[[Any], Any]:
    """Returns the decorator that adds the option to a command."""
    is_many = _is_many(hint)
    of_one = get_args(hint)[0] if is_many else _without_none(hint)
    is_text = declared.convert is not None and of_one is not bool
    type_ = declared.type or (None if is_text else _find_type(of_one, declared))
    if isinstance(declared, Argument):
        return click.argument(
            name,
            metavar=declared.metavar,
            type=type_,
            nargs=-1 if is_many else 1,
            required=declared.is_required,
            shell_complete=declared.complete,
            **({} if default is dataclasses.MISSING else {"default": default}),
        )
    is_flag = of_one is bool and declared.type is None
    is_pair = "/" in declared.names[-1]
    has_default = default is not dataclasses.MISSING
    if isinstance(default, StrEnum):
        default = default.value
    if is_text and not isinstance(default, str):
        default = None  # the field has its default, which is no text, if the option is absent
    repeats = is_many if declared.repeats is None else declared.repeats
    if repeats and has_default and not is_many:
        default = () if default is None else (default,)
    return click.option(
        *declared.names,
        _key(name, declared),
        help=declared.help,
        metavar=declared.metavar,
        multiple=repeats,
        is_flag=is_flag or None,
        type=None if is_flag else type_,
        shell_complete=COMPLETIONS.get(declared.names[-1]),
        envvar=declared.variable,
        hidden=declared.is_hidden,
        required=declared.is_required or not has_default,
        show_default=has_default and ((is_pair and default is True) or _is_worth_showing(default)),
        **({"default": default} if has_default and default != () else {}),
    )


def _is_worth_showing(default: Any) -> bool:
    return not isinstance(default, (bool, NoneType)) and default not in ("", ())


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return next(one for one in get_args(hint) if one is not NoneType)
    return hint


def _find_type(hint: Any, declared: Option | Argument) -> click.ParamType[Any] | type | None:
    """Returns the type of click for one value of the option."""
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    if get_origin(hint) is tuple:
        return click.Tuple([_find_type(one, declared) or str for one in get_args(hint)])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _Words(hint)
    if isinstance(declared, Option) and (declared.minimum is not None or declared.maximum is not None):
        least, most = declared.minimum, declared.maximum
        if hint is float:
            return click.FloatRange(least, most)
        return click.IntRange(None if least is None else int(least), None if most is None else int(most))
    return hint if hint in (int, float) else None


class _Words(click.Choice[str]):
    """One of the values of an enumeration."""

    def __init__(self, words: type[StrEnum]) -> None:
        super().__init__([word.value for word in words])
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._words(super().convert(value, param, ctx))
