"""What an option of the command line is: a field of a frozen dataclass, with its names and its help.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class SavingsOptions:
        cluster: ClusterOptions                     # a dataclass of options that several verbs share
        since: Annotated[Duration, SINCE] = 7 * DAY

The dataclass is the declaration of the options, and its instance is the argument of the verb. `trimtab.cli.options`
makes the options of click from it. This module knows nothing of click, because the readers of inputs take options too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """One option. The type of its field says what it takes: a flag (bool), one of some words (Literal or StrEnum), a
    number, a text, or several of them (tuple). The field's default is that of the option."""

    names: tuple[str, ...]
    """The short name and the long name; `--yes/--no` for a pair of flags."""
    help: str
    metavar: str | None = None
    repeats: bool | None = None
    """Whether the command line may have the option several times. None: if the field is a tuple. A field that is no
    tuple, of an option that may be repeated, takes it once: more is a mistake of the user."""
    minimum: float | None = None
    maximum: float | None = None
    type: Any = None
    """A type of click, where the type of the field does not say enough."""
    convert: Callable[[Any], Any] | None = None
    """Makes the value of the field from what the user wrote. May raise UsageError."""
    variable: str | None = None
    """An environment variable that is read if the option is not given."""
    is_required: bool = False
    is_hidden: bool = False
    former: tuple[str, ...] = ()
    """The names that the option had before. A command line with one of them is refused with the present name, unless
    another option of the command has that name now."""

    def with_help(self, text: str) -> Option:
        """Returns the same option with the help of a verb for which it means something narrower."""
        return replace(self, help=text)


def option(*names: str, help: str, **more: Any) -> Option:  # noqa: A002 - the word of click
    """Returns an option with these names."""
    return Option(names, help, **more)


def file_option(name: str, *, help: str, **more: Any) -> Option:  # noqa: A002 - the word of click
    """Returns an option that takes the path of a file."""
    return Option((name,), help, metavar="FILE", **more)


def quantity_option(name: str, *, help: str) -> Option:  # noqa: A002 - the word of click
    """Returns an option that takes an amount in the notation of Kubernetes, such as 500m or 32Gi."""
    return Option((name,), help, metavar="QUANTITY")


def duration_option(name: str, *, help: str, **more: Any) -> Option:  # noqa: A002 - the word of click
    """Returns an option that takes a time, such as 30m or 7d."""
    return Option((name,), help, metavar="DURATION", **more)


@dataclass(frozen=True, slots=True)
class Argument:
    """What stands in the command line without a name. A field of the type tuple takes any number of them."""

    metavar: str
    is_required: bool = True
    """For a tuple: at least one."""
    type: Any = None
    convert: Callable[[Any], Any] | None = None
    complete: Callable[..., Any] | None = None
    """Names the values for the completion of a shell. For options, `trimtab.cli.options` has a table."""
