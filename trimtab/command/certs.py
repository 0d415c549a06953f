"""`trimtab certs`: issue the webhook's certificates, and look at them."""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

import certs
from trimtab.command import output, shared_pair
from trimtab.command.main import ASKED_WRONGLY, FOUND
from trimtab.runtime import clock
from trimtab.runtime.settings import Settings

DEFAULT_NAMES = ("trimtab-webhook.trimtab-system.svc", "localhost", "127.0.0.1")
_FOLDER = click.argument("folder", type=click.Path(path_type=Path), default=Settings().certs)


class ProblemReport(msgspec.Struct, frozen=True):
    code: str
    text: str


class CertsReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Published as deploy/schemas/certs-report.schema.json."""

    api_version: str = output.API_VERSION
    kind: str = "CertsReport"
    folder: str
    names: list[str]
    not_before: str | None
    not_after: str | None
    days_left: float
    usable: bool
    """A client that trusts ca.crt would talk to a server with this pair now."""
    problems: list[ProblemReport]


@click.group("certs")
def verb() -> None:
    """Issue the webhook's certificates, look at them, rotate them."""


@verb.command("issue")
@_FOLDER
@click.option("--name", "names", multiple=True, metavar="DNS|IP", help=f"Default: {', '.join(DEFAULT_NAMES)}.")
@click.option("--force", is_flag=True, help="Issue anew although nothing is due.")
def issue(folder: Path, names: tuple[str, ...], force: bool) -> None:
    """Issue a CA and a serving pair into FOLDER; renew them where something is due."""
    try:
        click.echo(f"{folder}: {_issued(folder, names or DEFAULT_NAMES, force=force)}")
    except (certs.CertsError, ValueError) as error:
        click.echo(f"{folder}: {error}", err=True)
        sys.exit(ASKED_WRONGLY)


def _issued(folder: Path, names: tuple[str, ...], *, force: bool) -> str:
    """What was done, in words. An authority that is there stays, or hands over to its successor: clients trust it."""
    now = clock.utc()
    if not (folder / certs.CA_KEY).exists() and not (folder / certs.CERTIFICATE).exists():
        certs.write(folder, certs.issue(names, now=now))
        return "issued"
    if force or not (folder / certs.CERTIFICATE).exists():
        certs.write(folder, certs.renew(certs.read_authority(folder), names, now=now))
        return "issued anew by the authority that is here"
    found, reasons = certs.renew_if_due(certs.read(folder), names, now=now)
    if reasons:
        certs.write(folder, found)
    return "; ".join(map(str, reasons)) or "nothing was due"


@verb.command("status")
@_FOLDER
@click.option("--live", "of_cluster", is_flag=True, help="The cluster's: the replicas' Secret, and who trusts it.")
@shared_pair.options
@output.options
def status(folder: Path, of_cluster: bool, where: shared_pair.Where, output: str, output_file: str | None) -> None:
    """What stands in FOLDER, how long it lasts, and what is wrong with it. Exits 1 where something is."""
    found = shared_pair.status(where) if of_cluster else certs.status(folder, clock.utc())
    report = CertsReport(
        folder=found.folder,
        names=list(found.names),
        not_before=found.not_before.isoformat() if found.not_before else None,
        not_after=found.not_after.isoformat() if found.not_after else None,
        days_left=round(found.days_left, 1),
        usable=found.usable,
        problems=[ProblemReport(problem.code, problem.says) for problem in found.problems],
    )
    _emit(output, output_file, report)
    if found.problems:
        sys.exit(FOUND)


@verb.command("rotate")
@click.option("--authority", is_flag=True, help="A new authority too; the old one stays trusted beside it.")
@click.option("--forget-old", is_flag=True, help="Older authorities are trusted no more: after one was stolen.")
@shared_pair.options
def rotate(authority: bool, forget_old: bool, where: shared_pair.Where) -> None:
    """A new pair for the webhook in the cluster, without a review lost.

    The replicas take it over within seconds. A new authority is first told to API servers and signs half a minute
    later; the old one stays trusted until nothing it signed can be valid. Where cert-manager issues, ask it instead.
    """
    click.echo(shared_pair.rotate(where, authority=authority, forget=forget_old))


def _emit(form: str, output_file: str | None, report: CertsReport) -> None:
    output.emit(form, output_file, report, lambda console: _draw(console, report), "trimtab certs")


def _draw(console: Console, report: CertsReport) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_row("folder", report.folder)
    table.add_row("names", ", ".join(report.names) or "–")
    table.add_row("valid", f"{report.not_before} to {report.not_after}" if report.not_after else "–")
    table.add_row("days left", f"{report.days_left:g}")
    table.add_row("usable", "[green]yes[/]" if report.usable else "[red]no[/]")
    for problem in report.problems:
        table.add_row("[yellow]problem[/]", f"{problem.text} ({problem.code})")
    console.print(table)
