"""The command line of `trimtab install`: it prints, applies or removes the manifests of an installation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import click

from trimtab.cli.install import apply
from trimtab.cli.install.cleanup import Uninstaller
from trimtab.cli.install.cleanup_step import CleanupStep
from trimtab.cli.options import takes
from trimtab.cli.output import ManifestOutput, write_manifests
from trimtab.cli.print_text import print_text
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import flags
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.live_cluster import Login
from trimtab.inputs.option import option
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import POLICIES_MODE, VPA_MODE, InstallValues
from trimtab.installation.processes.metrics_api import find_other_providers

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.kube.errors import KubeFault
    from trimtab.kube.objects import Writer

DEFAULTS = InstallValues()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalScope:
    """Which objects --remove removes."""

    everything: Annotated[
        bool,
        option(
            "--everything",
            help="With --remove: also remove the namespace and the CRD, and with them all policies and pools.",
        ),
    ] = False
    """Whether to remove the namespace and the CRD as well."""
    traces: Annotated[
        bool,
        option(
            "--traces",
            help="With --remove: remove only what Trimtab's processes wrote (cordons, taints, Leases, records). The "
            "Helm chart's deletion hook uses this option.",
        ),
    ] = False
    """Whether to remove only what the processes wrote."""
    keep_usage: Annotated[
        bool,
        option("--keep-usage", help="With --remove: keep the recommender's checkpoints (its stored history of usage)."),
    ] = False
    """Whether to keep the recommender's checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallValueOptions:
    """The options that set the values of an installation."""

    namespace: Annotated[
        str,
        flags.SYSTEM_NAMESPACE.with_help(
            "The namespace in which Trimtab is installed. No other application should run in this namespace."
        ),
    ] = DEFAULTS.namespace
    image: Annotated[str, flags.IMAGE.with_help("The container image for every process.")] = DEFAULTS.image
    replicas: Annotated[int, option("--replicas", minimum=1, maximum=20, help="The number of webhook replicas.")] = (
        DEFAULTS.replicas
    )
    timeout: Annotated[
        int,
        option(
            "--webhook-timeout",
            former=("--timeout",),
            minimum=1,
            maximum=10,
            help="The seconds after which the API server admits a pod even if the webhook has not answered.",
        ),
    ] = DEFAULTS.timeout
    cert_manager: Annotated[
        bool, option("--cert-manager", help="Let cert-manager issue the certificate and write the caBundle.")
    ] = False
    scale_namespaces: Annotated[
        tuple[str, ...],
        option(
            "--scale-namespace",
            metavar="NAMESPACE",
            help="Let the compactor scale Deployments in this namespace: a workload with one replica gets a second "
            "replica while its pod moves. You can repeat the option. In other namespaces such pods are not moved.",
        ),
    ] = ()
    resize: Annotated[
        bool,
        flags.RESIZE.with_help(
            "Let the compactor resize running pods if a policy has `running: resize` (from Kubernetes 1.33)."
        ),
    ] = False
    parameter_namespaces: Annotated[
        tuple[str, ...],
        option(
            "--parameter-namespace",
            metavar="NAMESPACE",
            help="Let the recommender write ConfigMap trimtab-requests in this namespace, from which compiled policies "
            "read requests. You can repeat the option.",
        ),
    ] = ()
    demote_groups: Annotated[
        bool,
        option(
            "--demote-groups",
            help="Let the recommender lower the priority of node groups that are out of stock for an hour, in the "
            "priority map that `trimtab machines priorities --apply` wrote.",
        ),
    ] = False
    vpa_recommender: Annotated[
        bool,
        option(
            "--vpa-recommender",
            help="Let the recommender write the status of VPAs that name `trimtab` as their only recommender.",
        ),
    ] = False
    mode: Annotated[
        Literal["webhook", "policies", "both", "vpa"],
        option(
            "--mode",
            help="The component that changes pods: the webhook, or policies that the API server evaluates (`trimtab "
            "policies compile`; from Kubernetes 1.36), or both. With `policies` API servers call the webhook only to "
            "validate policies and pools. With `vpa` no component of Trimtab changes pods: only the "
            "recommender is installed, for VPAs that name it.",
        ),
    ] = "webhook"
    autoscaler_namespace: Annotated[
        str,
        option(
            "--autoscaler-namespace",
            help="The namespace of the cluster autoscaler's status (its own flag --namespace).",
        ),
    ] = DEFAULTS.autoscaler_namespace
    autoscaler_status: Annotated[
        str,
        option(
            "--autoscaler-status",
            help="The ConfigMap with the cluster autoscaler's status (its own flag --status-config-map-name); for "
            "several autoscalers, the names separated by commas. The compactor may read only the ConfigMaps of these "
            "names.",
        ),
    ] = DEFAULTS.autoscaler_status
    metrics_api: Annotated[
        bool,
        option(
            "--metrics-api",
            help="Also install Trimtab's metrics API, which serves custom metrics for HPAs. The command refuses this "
            "if another provider is registered, because a cluster has only one provider.",
        ),
    ] = False

    capture_claim: Annotated[
        str,
        option(
            "--capture-claim",
            metavar="NAME",
            help="Also install a CronJob that captures the cluster every five minutes for `trimtab replay`, on this "
            "PersistentVolumeClaim of Trimtab's namespace. Files are deleted after 14 days.",
        ),
    ] = ""

    @property
    def values(self) -> InstallValues:
        """The values of the installation."""
        return InstallValues(
            namespace=self.namespace,
            image=self.image,
            replicas=self.replicas,
            timeout=self.timeout,
            cert_manager=self.cert_manager,
            scale_namespaces=self.scale_namespaces,
            resize=self.resize,
            parameter_namespaces=self.parameter_namespaces,
            demote_groups=self.demote_groups,
            vpa_recommender=self.vpa_recommender,
            mode=self.mode,
            autoscaler_namespace=self.autoscaler_namespace,
            autoscaler_status=self.autoscaler_status,
            metrics_api=self.metrics_api,
            capture_claim=self.capture_claim,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOptions:
    """The options of `trimtab install`."""

    applies: Annotated[
        bool,
        flags.APPLY.with_help("Apply the manifests to the cluster. Without this option the command only prints them."),
    ] = False
    removes: Annotated[
        bool, option("--remove", help="Remove the installation. The webhook configurations are removed first.")
    ] = False
    removal: RemovalScope
    dry_run: Annotated[
        bool, flags.DRY_RUN.with_help("With --apply or --remove: the API server checks every change and stores none.")
    ] = False
    installation: InstallValueOptions
    output: ManifestOutput
    login: Login


@click.command("install")
@takes(InstallOptions)
def verb(options: InstallOptions) -> None:
    """Print, apply or remove what Trimtab needs in a cluster: CRD, roles, processes, webhook configurations.

    Without --apply the command prints the manifests in the order in which to apply them. With --apply it applies them
    server-side, and issues the first certificate before API servers call the webhook; no pod changes until you apply a
    PodPolicy. Applying again changes what differs; certificates stay. The command does not remember its options: give
    the same ones again, above all the image. Use `helm upgrade` for an installation by Helm.

    With --remove compiled policies are removed and API servers stop calling the webhook first; then the processes
    stop, nodes are uncordoned and lose Trimtab's annotations and taints, and Leases, records and the ConfigMaps
    trimtab-requests are deleted. PodPolicies, pools and the namespace stay; --everything removes them too.
    """
    _check_options(options)
    values = options.installation.values
    if options.applies or options.removes:
        for step in _apply_or_remove(values, options):
            print_text(f"{step.what}: {step.how}{' (dry run)' if options.dry_run else ''}")
        if options.removes and not (options.removal.everything or options.removal.traces):
            print_text("Policies, pools and the namespace are kept; with --everything they are removed.", err=True)
    else:
        write_manifests(options.output, render_manifests(values))


def _check_options(options: InstallOptions) -> None:
    removal, mistakes = options.removal, []
    if options.applies and options.removes:
        mistakes.append(("--apply or --remove", "both"))
    if not options.removes:
        narrower = {"--everything": removal.everything, "--traces": removal.traces, "--keep-usage": removal.keep_usage}
        mistakes += [("--remove", f"{name} without --remove") for name, is_set in narrower.items() if is_set]
    if removal.everything and removal.traces:
        mistakes.append(("--everything or --traces", "both"))
    if (options.dry_run or options.login != Login()) and not (options.applies or options.removes):
        mistakes.append(("--apply or --remove", "--dry-run or a login option without either"))
    if mistakes:
        raise UsageError([ConfigError(file="command line", expected=expected, got=got) for expected, got in mistakes])


def _apply_or_remove(values: InstallValues, options: InstallOptions) -> Iterator[CleanupStep]:
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured
    from trimtab.kube.objects import Writer

    try:
        client = connect_to_cluster(options.login.kubeconfig, options.login.context)
        other_namespace = apply.find_other_installation(client, values.namespace)
        if other_namespace is not None:
            expected = (
                f"--system-namespace {other_namespace}: API servers of this cluster call the webhook in that namespace"
            )
            raise UsageError(
                [ConfigError(file="command line", expected=expected, got=f"--system-namespace {values.namespace}")]
            )
        if values.metrics_api and not options.removes and (others := find_other_providers(client, values.namespace)):
            expected = "no other provider of custom.metrics.k8s.io in this cluster (--metrics-api)"
            todo = (
                "remove that provider first, with its APIService, because Trimtab does not forward another "
                "provider's answers"
            )
            raise UsageError([ConfigError(file="cluster", expected=expected, got=", ".join(others), todo=todo)])
        if values.mode == VPA_MODE and not options.removes and apply.has_webhook(client):
            expected = "no webhook of Trimtab in this cluster: with --mode vpa nothing but the recommender is installed"
            todo = (
                "trimtab install --remove --keep-usage first; or, to keep what is installed, --vpa-recommender in "
                "place of --mode vpa"
            )
            raise UsageError([ConfigError(file="cluster", expected=expected, got="a webhook", todo=todo)])
        writer = Writer(client=client, dry_run=options.dry_run)
        if options.removes:
            yield from _remove(writer, values, options.removal)
        else:
            require_mutating_policies(client, values)
            yield from apply.apply_manifests(writer, render_manifests(values), values)
            yield from apply.leave_mode(writer, values)
        client.close()
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(describe_failure(error, values.namespace, dry_run=options.dry_run)) from None


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

    if values.mode not in (POLICIES_MODE, "both"):
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
    manifests = render_manifests(extend_to_everything(values))
    return apply.remove_manifests(
        writer, manifests, values, everything=removal.everything, keep_usage=removal.keep_usage
    )


def extend_to_everything(values: InstallValues) -> InstallValues:
    """Returns the values of an installation with everything that may have been installed, whatever the options are
    now."""
    return replace(values, mode=DEFAULTS.mode, metrics_api=True, resize=True, vpa_recommender=True, capture_claim="any")
