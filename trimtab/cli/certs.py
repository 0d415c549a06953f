"""`trimtab certs`: issues the webhook's certificates into a folder, and shows and rotates those of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import click
from rich.text import Text

import certs
from trimtab.cli.main import EXIT_FOUND, EXIT_USAGE, SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import flags, signing_key
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.live_cluster import Login
from trimtab.inputs.option import Argument, option
from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, WEBHOOK_NAME, InstallValues
from trimtab.runtime import clock
from trimtab.runtime.settings import Settings

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.kube.objects import Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationLogin:
    """The login to a cluster, and Trimtab's namespace in that cluster."""

    namespace: Annotated[str, flags.SYSTEM_NAMESPACE] = InstallValues().namespace
    login: Login

    @property
    def secret_ref(self) -> str:
        """The namespace and name of the certificate's Secret, as messages write them."""
        return f"Secret {self.namespace}/{CERTIFICATE_SECRET}"


def read_cluster_certificate_status(where: InstallationLogin) -> certs.CertificateStatus:
    """Returns the status of the certificate in the Secret. Each webhook configuration that does not trust the
    certificate is a problem."""
    from trimtab.kube import certificate_rotation as shared
    from webhook import cert_manager

    with connect_client(where) as client:
        places = {kind: _get_object(client, kind, CONFIGURATION_NAME) for kind in cert_manager.CONFIGURATIONS}
        folder = shared.files_in_secret(_get_object(client, "Secret", CERTIFICATE_SECRET, where.namespace) or {})
    if folder is None:
        return certs.CertificateStatus(
            folder=where.secret_ref, problems=(certs.Problem("missing", f"{where.secret_ref} contains no certificate"),)
        )
    status = certs.certificate_status(where.secret_ref, folder, clock.utc_now())
    return replace(status, problems=(*status.problems, *_find_untrusting_configurations(folder, places)))


def _find_untrusting_configurations(
    files: certs.CertificateFiles, places: dict[str, Whole | None]
) -> Iterator[certs.Problem]:
    from trimtab.kube import certificate_rotation as shared

    for kind, place in places.items():
        if place is None:
            yield certs.Problem(
                "not-called", f"there is no {kind} {CONFIGURATION_NAME}: API servers do not call the webhook"
            )
        elif not certs.may_serve(files, shared.ca_bundles(place)):
            yield certs.Problem(
                "not-trusted", f"the caBundle of {kind} {CONFIGURATION_NAME} does not trust this certificate"
            )


def rotate_cluster_certificate(options: CertsRotateOptions) -> str:
    """Rotate the certificate of the cluster, and return the outcome as text.

    Raises UsageError if the replicas did not issue the certificate, RuntimeFailure if the cluster refuses.
    """
    from trimtab.kube import certificate_rotation as shared
    from trimtab.kube import objects as kube_objects
    from trimtab.kube.objects import Writer

    where = options.where
    with connect_client(where) as client:
        secret = _get_object(client, "Secret", CERTIFICATE_SECRET, where.namespace)
        folder = shared.files_in_secret(secret or {})
        if secret is None or folder is None or folder.authority_key is None:
            got = "none" if folder is None else "a pair of certificate and key that another issuer signed"
            raise UsageError(
                [
                    ConfigError(
                        file=where.secret_ref,
                        expected="a pair of certificate and key that the webhook's replicas issue",
                        got=got,
                    )
                ]
            )
        new_files, outcome = _rotate_files(options, folder)
        kube_objects.replace_plain(Writer(client=client), shared.with_files(secret, new_files))
    return f"{where.secret_ref}: {outcome}"


def _rotate_files(
    options: CertsRotateOptions, certificates: certs.CertificateFiles
) -> tuple[certs.CertificateFiles, str]:
    from trimtab.kube.certificate_rotation import certificate_names

    where, now = options.where, clock.utc_now()
    if options.forgets_old:
        files = certs.sole_authority(certificates)
        # After this, clients trust the newest authority alone, so it must have signed the certificate that is served.
        if not certs.is_usable(files, now):
            got = "a certificate that an older authority signed"
            raise UsageError(
                [ConfigError(file=where.secret_ref, expected="a certificate that the newest authority signed", got=got)]
            )
        return files, "older authorities are no longer trusted"
    if options.authority:
        return certs.next_pair(
            certificates, now=now
        ), "a new authority was created; it signs certificates as soon as both webhook configurations trust it"
    return certs.reissued_pair(
        certificates, certificate_names(WEBHOOK_NAME, where.namespace), now=now
    ), "a new certificate and key were issued"


def _get_object(client: Client, kind: str, name: str, namespace: str = "") -> Whole | None:
    from trimtab.kube import objects as kube_objects

    return kube_objects.get_plain(client, kind, name, namespace)


@contextmanager
def connect_client(where: InstallationLogin) -> Iterator[Client]:
    """Yields a client of the cluster; its errors are raised as UsageError or RuntimeFailure."""
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured

    try:
        client = connect_to_cluster(where.login.kubeconfig, where.login.context)
        try:
            yield client
        finally:
            client.close()
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    except certs.CertsError as error:
        raise RuntimeFailure(f"{where.secret_ref}: {error}") from None


DEFAULT_NAMES = ("trimtab-webhook.trimtab-system.svc", "localhost", "127.0.0.1")
FOLDER = Argument("[FOLDER]", is_required=False, type=click.Path(path_type=Path))
DEFAULT_FOLDER = Settings().certs_folder


class ProblemReport(ReportPart, frozen=True):
    """A problem of a certificate."""

    code: str
    """The code of the problem, such as key-mismatch."""
    text: str
    """The problem as a sentence."""


class CertsReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab certs status`. Published as deploy/schemas/certs-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab certs status"
    api_version: str = API_VERSION
    kind: str = "CertsReport"
    folder: str
    """Where the certificate was read: a folder, or the Secret as NAMESPACE/NAME."""
    names: list[str]
    """The host names and addresses that the certificate is valid for."""
    not_before: str | None
    """When the certificate becomes valid, as RFC 3339; null if it cannot be read."""
    not_after: str | None
    """When the certificate expires, as RFC 3339; null if it cannot be read."""
    days_left: float
    """The days until the certificate expires; negative if it has expired, 0 if it cannot be read."""
    usable: bool
    """Whether a client that trusts ca.crt would now accept a server with this certificate."""
    problems: list[ProblemReport]
    """What is wrong with the certificate; empty if nothing is."""


@click.group("certs", cls=SuggestingGroup)
def verb() -> None:
    """Issue, rotate and check the webhook's certificates; rotate the signing keys of the processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertsIssueOptions:
    """The options of `trimtab certs issue`."""

    folder: Annotated[Path, FOLDER] = DEFAULT_FOLDER
    names: Annotated[
        tuple[str, ...], option("--name", metavar="DNS|IP", help=f"Default: {', '.join(DEFAULT_NAMES)}.")
    ] = ()
    force: Annotated[
        bool, flags.FORCE.with_help("Issue a new certificate even if the present one is not due for renewal.")
    ] = False


@verb.command("issue")
@takes(CertsIssueOptions)
def issue_certificate(options: CertsIssueOptions) -> None:
    """Issue a CA and a serving certificate into FOLDER, or renew those that are due."""
    folder = options.folder
    try:
        print_text(f"{folder}: {_issue_or_renew(folder, options.names or DEFAULT_NAMES, force=options.force)}")
    except (certs.CertsError, ValueError) as error:
        print_text(f"{folder}: {error}", err=True)
        sys.exit(EXIT_USAGE)


def _issue_or_renew(folder: Path, names: tuple[str, ...], *, force: bool) -> str:
    """Issue or renew the certificate in the folder, and return the outcome as text.

    The existing authority signs the new certificate, because clients trust it. Only an authority that is itself due for
    renewal is replaced, by a successor.
    """
    now = clock.utc_now()
    if not (folder / certs.CA_KEY).exists() and not (folder / certs.CERTIFICATE).exists():
        certs.write_folder(folder, certs.issue(names, now=now))
        return "issued"
    if force or not (folder / certs.CERTIFICATE).exists():
        certs.write_folder(folder, certs.renew(certs.read_authority(folder), names, now=now))
        return "the existing authority issued a new certificate"
    files, reasons = certs.renew_if_due(certs.read_folder(folder), names, now=now)
    if reasons:
        certs.write_folder(folder, files)
    return "; ".join(map(str, reasons)) or "no certificate was due for renewal"


class _Fact(NamedTuple):
    name: str
    value: str
    style: str = ""


def _list_facts(report: CertsReport) -> list[_Fact]:
    return [
        _Fact("folder", report.folder),
        _Fact("names", ", ".join(report.names) or "–"),
        _Fact("valid", f"{report.not_before} to {report.not_after}" if report.not_after else "–"),
        _Fact("days left", f"{report.days_left:g}"),
        _Fact("usable", "yes", "green") if report.usable else _Fact("usable", "no", "red"),
        *(_Fact("problem", f"{problem.text} ({problem.code})") for problem in report.problems),
    ]


_VIEW: ReportView[CertsReport] = ReportView(
    title="trimtab certs",
    sections=(
        Section(
            key="facts",
            rows=_list_facts,
            columns=(
                Column("name", lambda fact: Text(fact.name, "yellow" if fact.name == "problem" else "")),
                Column("value", lambda fact: Text(fact.value, style=fact.style)),
            ),
            name=lambda fact: f"certificate/{fact.value}",
            named=lambda report: [_Fact("", name) for name in report.names],
            frame=Frame.GRID,
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertsStatusOptions:
    """The options of `trimtab certs status`."""

    folder: Annotated[Path, FOLDER] = DEFAULT_FOLDER
    is_live: Annotated[
        bool,
        option(
            "--live",
            help="Check the Secret with the certificate in the cluster, and the caBundle of the webhook "
            "configurations.",
        ),
    ] = False
    where: InstallationLogin
    output: ReportOutput


@verb.command("status")
@takes(CertsStatusOptions)
def show_status(options: CertsStatusOptions) -> None:
    """Show the certificates in FOLDER, how long they are valid, and what is wrong with them.

    Exits with 1 if there is a problem.
    """
    status = (
        read_cluster_certificate_status(options.where)
        if options.is_live
        else certs.read_status(options.folder, clock.utc_now())
    )
    report = CertsReport(
        folder=status.folder,
        names=list(status.names),
        not_before=status.not_before.isoformat() if status.not_before else None,
        not_after=status.not_after.isoformat() if status.not_after else None,
        days_left=round(status.days_left, 1),
        usable=status.is_usable,
        problems=[ProblemReport(problem.code, problem.says) for problem in status.problems],
    )
    write_report(options.output, report, _VIEW)
    if status.problems:
        sys.exit(EXIT_FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertsRotateOptions:
    """The options of `trimtab certs rotate`."""

    authority: Annotated[
        bool, option("--authority", help="Also create a new authority; the old one stays trusted.")
    ] = False
    forgets_old: Annotated[
        bool,
        option(
            "--forget-old",
            help="Stop trusting older authorities. Use this option after the key of an authority was stolen.",
        ),
    ] = False
    where: InstallationLogin


@verb.command("rotate")
@takes(CertsRotateOptions)
def rotate_certificate(options: CertsRotateOptions) -> None:
    """Rotate the webhook's certificate in the cluster without losing a review.

    The replicas load the new certificate within seconds. A new authority is first published to API servers, and signs
    half a minute later; the old one stays trusted as long as a certificate that it signed is valid. If cert-manager
    issues the certificate, rotate it there.
    """
    print_text(rotate_cluster_certificate(options))


@dataclass(frozen=True, slots=True, kw_only=True)
class CertsRotateSigningKeyOptions:
    """The options of `trimtab certs rotate-signing-key`."""

    process: Annotated[
        str,
        Argument(f"{{{'|'.join(signing_key.SIGNING_PROCESSES)}}}", type=click.Choice(signing_key.SIGNING_PROCESSES)),
    ]
    is_confirmed: Annotated[
        bool,
        flags.YES.with_help("Rotate the key. Without this option the command only lists what a rotation would do."),
    ] = False
    force: Annotated[
        bool, flags.FORCE.with_help("Rotate the key even if existing signatures in the cluster become invalid.")
    ] = False
    where: InstallationLogin


@verb.command("rotate-signing-key")
@takes(CertsRotateSigningKeyOptions)
def rotate_signing_keys(options: CertsRotateSigningKeyOptions) -> None:
    """Rotate the key with which the webhook signs annotations of pods, or the compactor signs annotations of nodes and
    its state.

    The present key still verifies signatures until the next rotation. The process loads the new key within a minute;
    the compactor then signs again what is still valid. After a theft, rotate twice.
    """
    process, where = options.process, options.where
    with connect_client(where) as client:
        for line in signing_key.rotate_signing_key(
            client, where.namespace, process, confirmed=options.is_confirmed, force=options.force
        ):
            print_text(line)
