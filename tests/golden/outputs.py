"""Runs commands on a snapshot in this process, with the clock, the version and the terminal fixed, as stored text."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path

import click
import yaml
from click.testing import CliRunner, Result

from tests.golden.broken_words import find_broken_words
from tests.golden.commands import (
    ARGUMENTS,
    RUNS_WITHOUT_CLUSTER,
    WITHOUT_CLUSTER,
    Form,
    iter_commands,
    list_brief_forms,
    list_forms,
)
from tests.golden.recorded_api import serve_objects
from tests.golden.snapshots import NOW, SNAPSHOTS, load_snapshot
from trimtab.cli.main import cli
from trimtab.diagnosis import cluster_reader
from trimtab.runtime import clock

FOLDER = Path(__file__).resolve().parent / "outputs"
LONG_RUNS = frozenset({("large", "autoscaler propose")})
"""Runs of seconds: two formats of them are stored."""
VERSION = "0.0.0"
"""The version that outputs name, whatever is installed."""
MAX_LINES, FIRST_LINES, LAST_LINES = 120, 40, 12
"""A longer output is stored as its first and last lines with a digest of all."""
_STYLE = re.compile(r"<(style|script)>.*?</\1>", re.DOTALL)
_ESCAPES = re.compile(r"\x1b(\[[0-9;]*m|\]8;.*?\x1b\\\\)")
_ANIMATION = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h(\s*\x1b\[1A\x1b\[2K)?", re.DOTALL)
"""A spinner or a progress bar, from hiding the cursor to the removal of its line."""
_URL = re.compile(r"http://127\.0\.0\.1:\d{5}")


class GoldenRuns:
    """A folder with the files of one snapshot, its API server, and the runs in it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.snapshot = load_snapshot(name)
        self.folder = folder
        self.broken_words: list[str] = []
        """The pieces of words on terminals of 80 columns, of all commands that were run."""

    def render_command(
        self, words: str, command: click.Command, is_whole: bool = False, has_brief_runs: bool = False
    ) -> str:
        """Returns the outputs of all runs and forms of a command, as the text that is stored; of brief runs, the narrow
        table and JSON."""
        return "".join(self._iter_parts(words, command, is_whole, has_brief_runs))

    def _iter_parts(self, words: str, command: click.Command, is_whole: bool, has_brief_runs: bool) -> Iterator[str]:
        runs = ARGUMENTS[words][:1] if self.snapshot.name == "large" else ARGUMENTS[words]
        runs += RUNS_WITHOUT_CLUSTER.get(words, ()) if self.snapshot.name == next(iter(SNAPSHOTS)) else ()
        for number, arguments in enumerate(runs):
            line = [word.format_map(self.snapshot.names) if "{" in word else word for word in arguments]
            yield f"$ trimtab {' '.join([words, *line])}\n"
            earlier: dict[str, Form] = {}
            texts: dict[Form, str] = {}
            is_brief = has_brief_runs or number > 0 or (self.snapshot.name, words) in LONG_RUNS
            for form in list_brief_forms(command) if is_brief else list_forms(command):
                text = self._run([*words.split(), *line], form)
                if text in earlier:
                    yield f"── {form}: the same as {earlier[text]}\n"
                    continue
                earlier[text] = form
                texts[form] = text
                yield f"── {form}\n{text if is_whole else shorten_text(text)}"
            yield "\n"
            elsewhere = [texts[form] for form in (Form("table", 200), Form("table")) if form in texts]
            if elsewhere and (narrow := texts.get(Form("table", 80))) is not None:
                self.broken_words += [f"{words}: {one}" for one in find_broken_words(narrow, elsewhere)]

    def _run(self, line: list[str], form: Form) -> str:
        if form.name != "table":
            line = [*line, "-o", form.name]
        # FORCE_COLOR says that standard output is a terminal; styles are removed from what is stored.
        environment: dict[str, str | None] = {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(form.columns)}
        if not form.columns:
            environment = {"FORCE_COLOR": None, "COLUMNS": None, "TERM": None}
        result = CliRunner(env=environment).invoke(cli, line, prog_name="trimtab")
        return _describe_result(result).replace(str(self.folder), "/golden")


def _describe_result(result: Result) -> str:
    """Returns both streams and the exit code, without what differs from run to run."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    text = result.stdout if result.stdout.endswith("\n") or not result.stdout else result.stdout + "\n"
    messages = _ANIMATION.sub("", result.stderr)
    if messages:
        text += f"── standard error\n{messages}"
    if result.exit_code:
        text += f"── exit code {result.exit_code}\n"
    text = _STYLE.sub(r"<\1>…</\1>", _ESCAPES.sub("", text))
    return _URL.sub("http://127.0.0.1:16443", text)


def shorten_text(text: str) -> str:
    """Returns the text; of a long one the first and last lines, and a digest of the whole."""
    lines = [line if len(line) <= 600 else f"{line[:400]}… {len(line)} characters" for line in text.splitlines()]
    if len(lines) <= MAX_LINES and sum(map(len, lines)) == len(text) - text.count("\n"):
        return text
    if len(lines) > MAX_LINES:
        lines = [*lines[:FIRST_LINES], f"… {len(lines)} lines", *lines[-LAST_LINES:]]
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return "\n".join([*lines, f"── sha256 of the whole output: {digest}", ""])


def select_brief_forms(text: str, command: click.Command) -> str:
    """Returns what is stored of the narrow table and of JSON, of all that is stored of one run."""
    brief = list_brief_forms(command)
    is_brief_form = {f"── {form}": form in brief for form in list_forms(command)}
    selected, is_selected = [], True
    for line in text.splitlines(keepends=True):
        is_selected = is_brief_form.get(line.rstrip("\n").partition(": the same as ")[0], is_selected)
        if is_selected:
            selected.append(line)
    return "".join(selected)


@cache
def list_cases() -> tuple[tuple[str, str], ...]:
    """Returns each snapshot with each command that has a stored output for it."""
    first, commands = next(iter(SNAPSHOTS)), [words for words, _ in iter_commands() if words in ARGUMENTS]
    return tuple(
        (name, words) for name in SNAPSHOTS for words in commands if name == first or words not in WITHOUT_CLUSTER
    )


def output_file(name: str, words: str, folder: Path = FOLDER) -> Path:
    """Returns the file with the stored outputs of a command on a snapshot."""
    return folder / name / f"{words.replace(' ', '-')}.txt"


@contextmanager
def open_runs() -> Iterator[Callable[[str], GoldenRuns]]:
    """Yields a function that returns the runs of a snapshot. While it is open, the clock, the version, the time zone
    and the current folder are those of the runs."""
    with ExitStack() as stack:
        stack.enter_context(_fixed_process())
        runs: dict[str, GoldenRuns] = {}

        def enter_snapshot(name: str) -> GoldenRuns:
            if name not in runs:
                # Its length is always the same, so lines are broken at the same places.
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="golden-", dir="/tmp")))
                runs[name] = GoldenRuns(name, folder)
                _fill_folder(runs[name], stack)
            os.chdir(runs[name].folder)
            return runs[name]

        yield enter_snapshot


def _fill_folder(runs: GoldenRuns, stack: ExitStack) -> None:
    runs.snapshot.write(runs.folder)
    os.chdir(runs.folder)
    url = stack.enter_context(serve_objects((*runs.snapshot.objects, *runs.snapshot.policies)))
    context = {"name": "east", "context": {"cluster": "east", "user": "operator"}}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "east",
        "contexts": [context],
        "clusters": [{"name": "east", "cluster": {"server": url}}],
        "users": [{"name": "operator", "user": {}}],
    }
    Path("kubeconfig").write_text(yaml.safe_dump(document))
    for line in (
        ["certs", "issue", "certificates"],
        ["fleet", "ingest", "--samples", "usage.csv", "--usage", "history", "--cluster-name", "east", "--now", NOW],
        ["plan", "--cluster", "cluster.json", "--now", NOW, "-o", "json", "-O", "plan.json"],
        ["recommend", "--cluster", "cluster.json", "--usage", "usage.csv", "-o", "json", "-O", "recommend.json"],
        ["lint", "--cluster", "cluster.json", "-o", "json", "-O", "lint.json"],
    ):
        result = CliRunner().invoke(cli, line)
        assert result.exit_code in (0, 1), result.output


@contextmanager
def _fixed_process() -> Iterator[None]:
    """Fixes the clock, the version, the time zone and what the environment says of terminals and clusters."""
    before, elapsed, environment, here = clock.utc_now, cluster_reader.elapsed_seconds, dict(os.environ), Path.cwd()
    metadata = Path(tempfile.mkdtemp(prefix="golden-version-"))
    information = metadata / f"trimtab-{VERSION}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trimtab\nVersion: {VERSION}\n")
    for variable in ("KUBECONFIG", "NO_COLOR", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PAGER"):
        os.environ.pop(variable, None)
    os.environ |= {"TZ": "UTC", "HOME": "/nonexistent"}
    time.tzset()
    sys.path.insert(0, str(metadata))
    clock.utc_now = lambda: datetime.fromisoformat(NOW)
    cluster_reader.elapsed_seconds = lambda: 0.0  # doctor prints how long a request took
    try:
        yield
    finally:
        clock.utc_now, cluster_reader.elapsed_seconds = before, elapsed
        sys.path.remove(str(metadata))
        shutil.rmtree(metadata)
        os.environ.clear()
        os.environ |= environment
        time.tzset()
        os.chdir(here)
