"""Shows progress on standard error, if that is a terminal. Nothing that draws is imported before there is work."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from trimtab.cli.print_text import print_progress


class TerminalProgress:
    """Where a command shows the progress of its inputs (`trimtab.inputs.progress`)."""

    def show_object(self, name: str) -> None:
        if sys.stderr.isatty():
            print_progress(name)

    def show_work(self, doing: str) -> AbstractContextManager[None]:
        from trimtab.cli.output import show_spinner

        return show_spinner(doing)

    def show_parts(self, total: int, doing: str) -> AbstractContextManager[Callable[[int], None]]:
        from trimtab.cli.output import show_counted_progress

        return show_counted_progress(total, doing)
