"""The command line of `trimtab capture`: it writes a snapshot of the cluster to a file."""

import gzip
import secrets
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import click

from trimtab.cli.options import takes
from trimtab.cli.output import OUTPUT_FILE
from trimtab.cli.print_text import print_document, print_text
from trimtab.cli.since import parse_age
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.control_characters import escape_in_json
from trimtab.cluster.format_count import format_count
from trimtab.cluster.snapshot import SHAPES_BY_KIND
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.live_cluster import Login
from trimtab.inputs.option import duration_option, option
from trimtab.inputs.private_file import write_private_file
from trimtab.runtime import clock


class _FormatOrFile(click.Choice[str]):
    """A format. Another text is not refused here, because `-o FILE` was once the option for the file."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value


class _FileOrFolder(click.Path):
    """A file, as for every other command; but a folder is not refused here, because with --every there is one after
    the first start."""

    def __init__(self) -> None:
        super().__init__(writable=True)
        self.name = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """The options of `trimtab capture`."""

    output_file: Annotated[
        str | None,
        replace(
            OUTPUT_FILE,
            type=_FileOrFolder(),
            help="Write to this file (gzip if it ends in .gz); with --every, to this folder. Default: standard output.",
        ),
    ] = None
    form: Annotated[str, option("-o", "--output", type=_FormatOrFile(["json"]), help="The format of the snapshot.")] = (
        "json"
    )
    hash_names: Annotated[
        bool, option("--hash-names", help="Replace names and label values by hashes; plans stay the same.")
    ] = False
    every: Annotated[
        str | None,
        duration_option(
            "--every",
            help="Capture again and again, such as every 5m: -O names a folder, to which only what changed is written. "
            "`trimtab replay` reads it.",
        ),
    ] = None
    duration: Annotated[
        str | None,
        duration_option("--for", help="With --every: how long, such as 7d. Default: until it is stopped."),
    ] = None
    delete_after: Annotated[
        str | None,
        duration_option(
            "--delete-after",
            help="With --every: delete files of the folder that were begun longer ago, such as 14d. Default: never.",
        ),
    ] = None
    config_maps_in: Annotated[
        str | None,
        option(
            "--config-maps-in",
            metavar="NAMESPACE",
            help="Read only the ConfigMaps of this namespace, that of Trimtab: for a login that may list no others.",
        ),
    ] = None
    login: Login


@click.command("capture")
@takes(CaptureOptions)
def verb(options: CaptureOptions) -> None:
    """Write a snapshot of the cluster to a file: read-only, for --cluster and for bug reports.

    Secrets, environments, command lines, and ConfigMaps other than Trimtab's are not in the snapshot. The user needs
    permission to list, and no other. An object that cannot be decoded is included only by its name; commands that read
    the file then stop with an error, as they do with `--cluster live`. Kinds that a plan can do without
    (CapacityBuffers, PodTemplates, and those of devices) are named in the snapshot if the user may not list them. What
    pods use now (PodMetrics) is included if the cluster has a metrics API that the user may read.
    Hashed names are the same everywhere in a snapshot, but differ between captures; PodPolicies, which contain names,
    are then left out, so a plan counts pods with their present requests.
    With --every, the command writes a folder: a file for each day and each start, of rounds that are complete or not
    there at all. A round that could not be read is left out, and the next one is tried.
    """
    if options.every is not None or options.duration is not None or options.delete_after is not None:
        _capture_series(options)
        return
    output_file = _choose_file(options.form, options.output_file)
    salt = secrets.token_bytes(32) if options.hash_names else None
    kinds = live_cluster.WITH_POLICIES if salt is None else tuple(SHAPES_BY_KIND)
    capture = live_cluster.capture_cluster(
        options.login, kinds, salt, templates=True, pod_metrics=True, config_maps_in=options.config_maps_in or ""
    )
    if output_file is None:
        print_document(escape_in_json(capture.content.decode()))
    else:
        # mtime=0: the same snapshot gives the same file.
        is_packed = output_file.endswith(".gz")
        write_private_file(output_file, gzip.compress(capture.content, mtime=0) if is_packed else capture.content)
        lines = capture.content.count(b"\n") - 2
        print_text(f"{output_file}: {format_count(lines, 'object')}", err=True)
    if capture.forbidden:
        print_text(
            "The snapshot does not contain these kinds of objects, because you may not list them: "
            f"{', '.join(capture.forbidden)}",
            err=True,
        )
    if capture.metrics_problem:
        print_text(capture.metrics_problem, err=True)
    for problem in capture.unreadable:
        print_text(f"The snapshot contains only the name of an object that cannot be read: {problem}", err=True)


def _choose_file(output: str, output_file: str | None) -> str | None:
    """Returns the file to write, or None for standard output.

    `-o FILE` was once the option for the file; it still works if FILE is not the name of a format. Raises UsageError
    for another format than json.
    """
    if output == "json":
        return output_file
    if output_file is None and ("." in output or "/" in output):
        print_text("-o sets a format; the option for the file is -O", err=True)
        return output
    todo = "the option for the file is -O"
    raise UsageError([ConfigError(file="--output", expected="json", got=repr(output), todo=todo)])


def _capture_series(options: CaptureOptions) -> None:
    """Captures until the time is over. Raises UsageError for options that do not go together, and RuntimeFailure if
    no round at all could be read."""
    every, seconds, max_age_seconds = _read_durations(options)
    if options.output_file is None or options.hash_names:
        expected = "-O FOLDER" if options.output_file is None else "real names, which are the same in every round"
        got = "none" if options.output_file is None else "--hash-names"
        raise UsageError([ConfigError(file="--every", expected=expected, got=got)])
    # Imported here: a single capture needs no files of a series.
    from trimtab.inputs.capture_series import SeriesFolder

    folder = SeriesFolder(Path(options.output_file), every)
    begin, rounds = clock.elapsed_seconds(), 0
    due = begin
    while True:
        try:
            capture = live_cluster.capture_cluster(
                options.login,
                live_cluster.WITH_POLICIES,
                templates=True,
                config_maps_in=options.config_maps_in or "",
            )
        except RuntimeFailure as error:
            if not rounds:
                raise
            print_text(f"A round is left out: {error}", err=True)
        else:
            now = int(clock.utc_now().timestamp())
            changed = folder.append_round(now, capture.content)
            rounds += 1
            if max_age_seconds is not None:
                for name in folder.delete_files(now - max_age_seconds):
                    print_text(f"Deleted {name}: it was begun more than {options.delete_after} ago", err=True)
            print_text(f"{folder.file}: {format_count(changed, 'object')}", err=True)
        due = max(due + every, clock.elapsed_seconds())
        if seconds is not None and due - begin >= seconds:
            return
        time.sleep(max(0.0, due - clock.elapsed_seconds()))


def _read_durations(options: CaptureOptions) -> tuple[int, int | None, int | None]:
    """Returns the seconds between two rounds, those of the whole series (None: without an end), and those for which
    files stay (None: for ever)."""
    mistakes = []
    every = parse_age(options.every) if options.every is not None else None
    if not every:
        got = "none" if options.every is None else options.every
        mistakes.append(ConfigError(file="--every", expected="a duration such as 5m", got=got))
    seconds = parse_age(options.duration) if options.duration is not None else None
    if options.duration is not None and not seconds:
        mistakes.append(ConfigError(file="--for", expected="a duration such as 7d", got=options.duration))
    max_age_seconds = parse_age(options.delete_after) if options.delete_after is not None else None
    if options.delete_after is not None and not max_age_seconds:
        mistakes.append(ConfigError(file="--delete-after", expected="a duration such as 14d", got=options.delete_after))
    if mistakes or every is None:
        raise UsageError(mistakes)
    return every, seconds, max_age_seconds
