"""The command line of `trimtab webhook`: it runs the admission webhook."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import click

import certs
from trimtab.cli.options import given_settings, takes
from trimtab.cli.run_process import ISSUE_PAIR, report_start_faults
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.inputs.flags import CERTS, CLUSTER, LISTEN, OVERHEAD, POLICIES, READY_FILE
from trimtab.runtime import environment, log
from trimtab.runtime.files import InvalidPolicyFiles, RuntimeFault, SettingsError, UnreadableFiles
from trimtab.runtime.settings import Settings
from webhook.main import run
from webhook.policy_state import from_files


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """The options of `trimtab webhook`."""

    listen: Annotated[
        str | None,
        LISTEN.with_help("The address to serve on. Default: 0.0.0.0:8443; with port 0 the system chooses a free port."),
    ] = None
    certs_folder: Annotated[Path | None, CERTS.with_help("The folder with tls.crt and tls.key.")] = None
    policies: Annotated[
        tuple[Path, ...],
        POLICIES.with_help(
            "The policies to serve. Default: the recommended policies; with --cluster live, the cluster's PodPolicies."
        ),
    ] = ()
    cluster: Annotated[
        Path | None,
        CLUSTER.with_help(
            "The source of the objects that decisions depend on: a snapshot, or `live` to watch the cluster."
        ),
    ] = None
    overhead: Annotated[OverheadWriter | None, OVERHEAD] = None
    ready_file: Annotated[
        Path | None, READY_FILE.with_help("A file that the webhook writes as soon as it serves requests.")
    ] = None


@click.command(Settings.process)
@takes(WebhookOptions)
def verb(options: WebhookOptions) -> None:
    """Serve the admission webhook over TLS until a signal.

    You can also set every option in the environment, such as TRIMTAB_WEBHOOK_LISTEN: `trimtab
    explain SETTING` explains one. Policies and certificates are checked before the webhook listens.
    """
    with report_start_faults(
        faults=(RuntimeFault,),
        listed=(UnreadableFiles, InvalidPolicyFiles),
        hints={certs.CertsError: ISSUE_PAIR},
    ):
        settings = _read_settings(options.listen, given_settings(options))
        # Invalid policies or facts, and a missing cluster, are errors before the server listens.
        from_files(settings)
        if settings.is_live:
            from trimtab.kube.client import connect_to_cluster

            connect_to_cluster().close()
        run(settings, log.build_logger(settings.log_level, settings.log_format))


def _read_settings(listen: str | None, options: dict[str, object]) -> Settings:
    variables = dict(os.environ)
    if listen is not None:
        variables["TRIMTAB_WEBHOOK_LISTEN"] = listen
    try:
        settings = environment.read_settings(variables)
    except SettingsError as error:
        raise SettingsError(tuple(_name_option(mistake, listen is not None) for mistake in error.mistakes)) from None
    return replace(settings, **options)  # type: ignore[arg-type]


def _name_option(error: ConfigError, is_option: bool) -> ConfigError:
    """Returns the mistake; if its value is from the command line, it names the option instead of the environment
    variable."""
    if is_option and error.entry == "TRIMTAB_WEBHOOK_LISTEN":
        return replace(error, file="command line", entry="--listen")
    return error
