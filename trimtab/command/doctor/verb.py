"""`trimtab doctor`: is everything wired?"""

import sys

import click

from trimtab.cluster.mistake import Mistake
from trimtab.command import live, output
from trimtab.command.doctor.draw import draw
from trimtab.command.doctor.judge import CHECKS, judged
from trimtab.command.doctor.report import DoctorReport, report
from trimtab.command.install.values import Values
from trimtab.command.main import FOUND, Failed, Wrong


@click.command("doctor")
@click.option("--namespace", default=Values().namespace, show_default=True, help="Where we are installed.")
@click.option(
    "--ask-in", default="default", show_default=True, metavar="NAMESPACE",
    help="Where pods are asked for, none of which is stored: one whose pods are to be changed.",
)  # fmt: skip
@click.option(
    "--without", multiple=True, type=click.Choice([check.name for check in CHECKS]), metavar="CHECK",
    help="Leave a check out; the report says so. May be given several times.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Warnings count, too.")
@output.options
@live.login
def verb(
    namespace: str,
    ask_in: str,
    without: tuple[str, ...],
    strict: bool,
    output: str,
    output_file: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Is everything wired? Certificates, caBundles, the way from the API server to us, rights, Leases, autoscaler, …

    Each finding comes with what mends it. Nothing is stored: two pods and a policy are created as a dry run. What
    could not be looked at is told as unknown, with the right that is missing. Exits 1 where something is wrong or
    unknown, 3 where no API server answers.
    """
    found = _looked(live.Asked((), kubeconfig, context), namespace, ask_in, without, strict=strict)
    _emit(output, output_file, found)
    if not found.well:
        sys.exit(FOUND)


def _emit(form: str, output_file: str | None, found: DoctorReport) -> None:
    output.emit(form, output_file, found, lambda console: draw(console, found), "trimtab doctor")


def _looked(asked: live.Asked, namespace: str, ask_in: str, without: tuple[str, ...], *, strict: bool) -> DoctorReport:
    from trimtab.command.doctor.look import look
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotConfigured

    try:
        client = connect(asked.kubeconfig, asked.context)
    except NotConfigured as error:
        raise Wrong([Mistake(file=asked.kubeconfig or "kubeconfig", expected="a cluster", came=str(error))]) from None
    try:
        seen = look(client, namespace, ask_in)
    except KubeFault as error:
        raise Failed(str(error)) from None
    finally:
        client.close()
    told = judged(seen, without=without)
    at = seen.here.strftime("%Y-%m-%dT%H:%M:%SZ")
    return report(told, server=client.server, namespace=namespace, at=at, without=without, strict=strict)
