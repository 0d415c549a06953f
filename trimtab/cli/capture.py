"""The command line of `trimtab capture`: it writes a snapshot of the cluster to a file."""

import gzip
import secrets
from dataclasses import dataclass
from typing import Annotated

import click

from trimtab.cli.options import takes
from trimtab.cli.output import OUTPUT_FILE
from trimtab.cli.print_text import print_document, print_text
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.control_characters import escape_in_json
from trimtab.cluster.format_count import format_count
from trimtab.cluster.snapshot import SHAPES_BY_KIND
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.live_cluster import Login
from trimtab.inputs.option import option
from trimtab.inputs.private_file import write_private_file


class _FormatOrFile(click.Choice[str]):
    """A format. Another text is not refused here, because `-o FILE` was once the option for the file."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """The options of `trimtab capture`."""

    output_file: Annotated[
        str | None, OUTPUT_FILE.with_help("Write to this file (gzip if it ends in .gz). Default: standard output.")
    ] = None
    form: Annotated[str, option("-o", "--output", type=_FormatOrFile(["json"]), help="The format of the snapshot.")] = (
        "json"
    )
    hash_names: Annotated[
        bool, option("--hash-names", help="Replace names and label values by hashes; plans stay the same.")
    ] = False
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
    """
    output_file = _choose_file(options.form, options.output_file)
    salt = secrets.token_bytes(32) if options.hash_names else None
    kinds = live_cluster.WITH_POLICIES if salt is None else tuple(SHAPES_BY_KIND)
    capture = live_cluster.capture_cluster(options.login, kinds, salt, templates=True, pod_metrics=True)
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
