"""The command line of `trimtab install`: it prints, applies or removes the manifests of an installation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

from trimtab.cli import output
from trimtab.cli.install import apply
from trimtab.cli.install.cleanup import Uninstaller
from trimtab.cli.install.cleanup_step import CleanupStep
from trimtab.cli.print_text import print_text
from trimtab.cli.shared_options import add_login_options
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.installation.manifests import render_manifests
from trimtab.installation.metrics_api import find_other_providers
from trimtab.installation.names import InstallValues

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.kube.errors import KubeFault
    from trimtab.kube.objects import Writer

DEFAULTS = InstallValues()


@click.command("install")
@click.option(
    "--apply",
    "applying",
    is_flag=True,
    help="Apply the manifests to the cluster. Without this option the command only prints them.",
)
@click.option(
    "--remove", "removing", is_flag=True, help="Remove the installation. The webhook configurations are removed first."
)
@click.option(
    "--everything",
    is_flag=True,
    help="With --remove: also remove the namespace and the CRD, and with them all policies and pools.",
)
@click.option(
    "--traces", is_flag=True,
    help=
        "With --remove: remove only what Trimtab's processes wrote (cordons, taints, Leases, records). The Helm "
        "chart's deletion hook uses this option.",
)  # fmt: skip
@click.option(
    "--keep-usage",
    is_flag=True,
    help="With --remove: keep the recommender's checkpoints (its stored history of usage).",
)
@click.option(
    "--dry-run", is_flag=True, help="With --apply or --remove: the API server checks every change and stores none."
)
@click.option(
    "-n",
    "--namespace",
    default=DEFAULTS.namespace,
    show_default=True,
    help="The namespace of Trimtab. No other application should run in this namespace.",
)
@click.option("--image", default=DEFAULTS.image, show_default=True, help="The container image for every process.")
@click.option(
    "--replicas",
    type=click.IntRange(1, 20),
    default=DEFAULTS.replicas,
    show_default=True,
    help="The number of webhook replicas.",
)
@click.option(
    "--timeout", type=click.IntRange(1, 10), default=DEFAULTS.timeout, show_default=True,
    help="The seconds after which the API server admits a pod even if the webhook has not answered.",
)  # fmt: skip
@click.option("--cert-manager", is_flag=True, help="Let cert-manager issue the certificate and write the caBundle.")
@click.option(
    "--scale-namespace", "scale_namespaces", metavar="NAMESPACE", multiple=True,
    help=
        "Let the compactor scale Deployments in this namespace: a workload with one replica gets a second "
        "replica while its pod moves. You can repeat the option. In other namespaces such pods are not moved.",
)  # fmt: skip
@click.option(
    "--resize", is_flag=True,
    help="Let the compactor resize running pods if a policy has `running: resize` (from Kubernetes 1.33).",
)  # fmt: skip
@click.option(
    "--parameter-namespace", "parameter_namespaces", metavar="NAMESPACE", multiple=True,
    help=
        "Let the recommender write ConfigMap trimtab-requests in this namespace, from which compiled policies "
        "read requests. You can repeat the option.",
)  # fmt: skip
@click.option(
    "--demote-groups", is_flag=True,
    help=
        "Let the recommender lower the priority of node groups that are out of stock for an hour, in the "
        "priority map that `trimtab machines priorities --apply` wrote.",
)  # fmt: skip
@click.option(
    "--mode", type=click.Choice(["webhook", "policies", "both"]), default=DEFAULTS.mode, show_default=True,
    help="The component that changes pods: the webhook, or policies that the API server evaluates (`trimtab "
         "policies compile`; from Kubernetes 1.36), or both. With `policies` API servers call the webhook only to "
         "validate policies and pools.",
)  # fmt: skip
@click.option(
    "--autoscaler-namespace", default=DEFAULTS.autoscaler_namespace, show_default=True,
    help="The namespace of the cluster autoscaler's status (its own flag --namespace).",
)  # fmt: skip
@click.option(
    "--autoscaler-status", default=DEFAULTS.autoscaler_status, show_default=True,
    help=
        "The ConfigMap with the cluster autoscaler's status (its own flag --status-config-map-name); for several "
        "autoscalers, the names separated by commas. The compactor may read only the ConfigMaps of these names.",
)  # fmt: skip
@click.option(
    "--metrics-api", is_flag=True,
    help=
        "Also install Trimtab's metrics API, which serves custom metrics for HPAs. The command refuses this if "
        "another provider is registered, because a cluster has only one provider.",
)  # fmt: skip
@click.option(
    "-o", "--output", "form", type=click.Choice(["yaml", "json"]), default="yaml", help="The format of the manifests."
)
@output.add_output_file_option
@add_login_options
def verb(
    applying: bool,
    removing: bool,
    everything: bool,
    traces: bool,
    keep_usage: bool,
    dry_run: bool,
    form: str,
    output_file: str | None,
    kubeconfig: str | None,
    context: str | None,
    **chosen: Any,
) -> None:
    """Print, apply or remove what Trimtab needs in a cluster: CRD, roles, processes, webhook configurations.

    Without --apply the command prints the manifests in the order in which to apply them. With --apply it applies them
    server-side, and issues the first certificate before API servers call the webhook; no pod changes until you apply a
    PodPolicy. Applying again changes what differs; certificates stay. The command does not remember its options: give
    the same ones again, above all the image. Use `helm upgrade` for an installation by Helm.

    With --remove compiled policies are removed and API servers stop calling the webhook first; then the processes
    stop, nodes are uncordoned and lose Trimtab's annotations and taints, and Leases, records and the ConfigMaps
    trimtab-requests are deleted. PodPolicies, pools and the namespace stay; --everything removes them too.
    """
    narrower = {"--everything": everything, "--traces": traces, "--keep-usage": keep_usage}
    _check_options(
        applying=applying, removing=removing, narrower=narrower, dry_run=dry_run, login=kubeconfig or context
    )
    values = InstallValues(
        **{field.name: chosen[field.name] for field in fields(InstallValues) if field.name in chosen}
    )
    if applying or removing:
        removal = RemovalScope(everything=everything, traces=traces, keep_usage=keep_usage) if removing else None
        for step in _apply_or_remove(values, live_cluster.ClusterOptions((), kubeconfig, context), removal, dry_run):
            print_text(f"{step.what}: {step.how}{' (dry run)' if dry_run else ''}")
    else:
        output.write_text(output.format_manifests(render_manifests(values), form), output_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalScope:
    """Which objects --remove removes."""

    everything: bool
    """Whether to remove the namespace and the CRD as well."""
    traces: bool
    """Whether to remove only what the processes wrote."""
    keep_usage: bool
    """Whether to keep the recommender's checkpoints."""


def _check_options(
    *, applying: bool, removing: bool, narrower: Mapping[str, bool], dry_run: bool, login: str | None
) -> None:
    mistakes = []
    if applying and removing:
        mistakes.append(("--apply or --remove", "both"))
    if not removing:
        mistakes += [("--remove", f"{option} without --remove") for option, is_set in narrower.items() if is_set]
    if narrower["--everything"] and narrower["--traces"]:
        mistakes.append(("--everything or --traces", "both"))
    if (dry_run or login) and not (applying or removing):
        mistakes.append(("--apply or --remove", "--dry-run or a login option without either"))
    if mistakes:
        raise UsageError([ConfigError(file="command line", expected=expected, got=got) for expected, got in mistakes])


def _apply_or_remove(
    values: InstallValues, login: live_cluster.ClusterOptions, removal: RemovalScope | None, dry_run: bool
) -> Iterator[CleanupStep]:
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured
    from trimtab.kube.objects import Writer

    try:
        client = connect_to_cluster(login.kubeconfig, login.context)
        other_namespace = apply.find_other_installation(client, values.namespace)
        if other_namespace is not None:
            expected = f"--namespace {other_namespace}: API servers of this cluster call the webhook in that namespace"
            raise UsageError(
                [ConfigError(file="command line", expected=expected, got=f"--namespace {values.namespace}")]
            )
        if values.metrics_api and not removal and (others := find_other_providers(client, values.namespace)):
            expected = "no other provider of custom.metrics.k8s.io in this cluster (--metrics-api)"
            todo = (
                "remove that provider first, with its APIService, because Trimtab does not forward another "
                "provider's answers"
            )
            raise UsageError([ConfigError(file="cluster", expected=expected, got=", ".join(others), todo=todo)])
        writer = Writer(client=client, dry_run=dry_run)
        if removal:
            yield from _remove(writer, values, removal)
        else:
            require_mutating_policies(client, values)
            yield from apply.apply_manifests(writer, render_manifests(values), values)
            yield from apply.leave_mode(writer, values)
        client.close()
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(describe_failure(error, values.namespace, dry_run=dry_run)) from None


def describe_failure(error: "KubeFault", namespace: str, *, dry_run: bool) -> str:
    """Returns the message about an error of the API server, and what the user can do next."""
    from trimtab.kube.errors import NotFound

    if not dry_run:
        return f"{error}\nThe steps above are done; run the same command again to continue."
    # A dry run stores no namespace, and the API server refuses objects in a namespace that does not exist.
    if isinstance(error, NotFound) and "namespaces" in error.message:
        todo = f"create the namespace first: kubectl create namespace {namespace}"
        return f"{error}\nA dry run stores no namespace; {todo}"
    return f"{error}\nThe dry run ends here; nothing was changed."


def require_mutating_policies(client: "Client", values: InstallValues) -> None:
    """Raise RuntimeFailure if the mode needs MutatingAdmissionPolicies and this API server does not serve them."""
    from trimtab.kube.errors import NotFound
    from trimtab.kube.resources import LIST_SOURCES

    if values.mode == "webhook":
        return
    try:
        client.get(
            LIST_SOURCES["MutatingAdmissionPolicy"].list_path, {"limit": 1}, doing="list MutatingAdmissionPolicies"
        )
    except NotFound:
        raise RuntimeFailure(
            f"--mode {values.mode}: this API server does not serve MutatingAdmissionPolicies; use Kubernetes 1.36 or "
            "later, or --mode webhook"
        ) from None


def _remove(writer: "Writer", values: InstallValues, removal: RemovalScope) -> Iterator[CleanupStep]:
    if removal.traces:
        return Uninstaller(writer=writer, namespace=values.namespace, keep_usage=removal.keep_usage).remove_all()
    # Everything that may have been installed, whatever the options are now.
    manifests = render_manifests(replace(values, metrics_api=True, resize=True))
    return apply.remove_manifests(
        writer, manifests, values, everything=removal.everything, keep_usage=removal.keep_usage
    )
