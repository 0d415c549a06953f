"""Runs a process from the command line: reads its settings, and says why it does not start."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from trimtab.cli.main import EXIT_USAGE
from trimtab.cli.options import given_settings
from trimtab.cli.print_text import print_text
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.runtime import environment, log
from trimtab.runtime.files import InvalidInput, MissingKeyPair, RuntimeFault
from trimtab.runtime.log import Logger

ISSUE_PAIR = "Issue a pair with: trimtab certs issue"
"""What to do if the serving certificate cannot be used."""

S = TypeVar("S")
T = TypeVar("T")


def run_process(kind: type[S], options: Any, run: Callable[[S, Logger], T]) -> T:
    """Returns what `run` returns for the settings of the class `kind`, from the environment and the options."""
    settings: Any = environment.read_with_options(os.environ, kind, options.listen, given_settings(options))
    return run(settings, log.build_logger(settings.log_level, settings.log_format))


@contextmanager
def report_start_faults(
    *,
    faults: tuple[type[Exception], ...] = (RuntimeFault, ValueError),
    listed: tuple[type[InvalidInput], ...] = (),
    hints: Mapping[type[Exception], str] | None = None,
) -> Iterator[None]:
    """A context manager that says why a process does not start, and ends the command.

    `faults`: the errors whose text says what to change; ValueError stands for settings that contradict each other.
    `listed`: the errors whose mistakes are printed one by one, as other commands print them. `hints`: further errors,
    with what to do about each."""
    hints = hints or {}
    try:
        yield
    except listed as error:
        raise UsageError(error.mistakes) from None
    except MissingKeyPair as error:
        raise RuntimeFailure(str(error)) from None
    except faults as error:
        _exit_with_usage_error(str(error))
    except tuple(hints) as error:
        hint = next(text for kind, text in hints.items() if isinstance(error, kind))
        _exit_with_usage_error(f"{error}\n{hint}")


def _exit_with_usage_error(text: str) -> None:
    print_text(text, err=True)
    sys.exit(EXIT_USAGE)
