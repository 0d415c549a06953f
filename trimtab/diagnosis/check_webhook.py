"""Checks of the way from the API server to the webhook: certificate, caBundles, configurations, and answers to dry
runs."""

from collections.abc import Iterator

import certs
from trimtab.admission.handler import PROBE_WARNING
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.diagnosis.observed import ObservedCluster, Read, WebhookConfigurationState, WebhookState
from trimtab.diagnosis.reasons import (
    CA_BUNDLE_MISSING,
    CA_BUNDLE_UNKNOWN,
    CA_BUNDLES_DIFFER,
    CONFIGURATION_MISSING,
    FAILURE_POLICY_FAIL,
    MAY_BE_OVERRULED,
    NOT_REINVOKED,
    PAIR_DUE,
    PAIR_MISSING,
    PAIR_UNUSABLE,
    POOLS_OF_OTHER_NAMESPACES,
    SERVICE_OTHER,
    SYSTEM_NAMESPACES_SENT,
    TIMEOUT_LONG,
    VALIDATION_SILENT,
    WEBHOOK_SILENT,
)
from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, WEBHOOK_NAME
from trimtab.installation.processes.webhook import POOLS
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.vpa_webhook import VPA_WEBHOOK_NAME as VPA

MAX_TIMEOUT_SECONDS = 5
"""The largest timeout of the webhook, in seconds: if the webhook is down, every pod that is created waits for it."""


def check_certificate(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the Secret contains a certificate for the Service that is valid and not due for renewal."""
    pair = cluster.secret
    if isinstance(pair, Unreadable):
        yield report_unknown(pair)
        return
    if pair is None:
        yield report_error(PAIR_MISSING, f"Secret {cluster.namespace}/{CERTIFICATE_SECRET} contains no certificate")
        return
    status = certs.certificate_status(CERTIFICATE_SECRET, pair, cluster.local_time)
    name = f"{WEBHOOK_NAME}.{cluster.namespace}.svc"
    if status.names and name not in status.names:
        yield report_error(
            PAIR_UNUSABLE, f"the certificate is for {', '.join(status.names)}, but API servers call {name}"
        )
    for problem in status.problems:
        yield report_warning(PAIR_DUE, problem.says) if status.is_usable else report_error(PAIR_UNUSABLE, problem.says)
    if status.is_usable and not status.problems and name in status.names:
        yield report_ok(f"the certificate is valid for {status.days_left:.0f} more days")


def check_ca_bundles(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether every caBundle of both configurations trusts the certificate that is served."""
    configurations = (
        ("MutatingWebhookConfiguration", _find_own(cluster.mutating)),
        ("ValidatingWebhookConfiguration", cluster.validating),
    )
    bundles: dict[tuple[str, str], bytes] = {}
    for kind, configuration in configurations:
        if isinstance(configuration, Unreadable):
            yield report_unknown(configuration)
        elif configuration is None and kind == "MutatingWebhookConfiguration" and cluster.is_without_webhook:
            yield report_ok(
                "no webhook is registered for pods, because compiled policies change pods (`--mode policies`)"
            )
        elif configuration is None:
            yield report_error(CONFIGURATION_MISSING, f"there is no {kind} {CONFIGURATION_NAME}")
        else:
            bundles |= {(kind, hook.name): hook.ca_bundle for hook in configuration.hooks}
    yield from _compare_ca_bundles(bundles, cluster.secret)


def _compare_ca_bundles(
    bundles: dict[tuple[str, str], bytes], secret: Read[certs.CertificateFiles | None]
) -> Iterator[DoctorFinding]:
    empty_names = [name for (_, name), bundle in bundles.items() if not bundle]
    if empty_names:
        yield report_error(CA_BUNDLE_MISSING, f"no caBundle is set in {', '.join(empty_names)}")
    filled = {key: bundle for key, bundle in bundles.items() if bundle}
    if len(set(filled.values())) > 1:
        yield report_error(
            CA_BUNDLES_DIFFER,
            f"there are {len(set(filled.values()))} different caBundles in {', '.join((name for _, name in filled))}",
        )
    if isinstance(secret, Unreadable):
        yield report_unknown(secret)
        return
    if secret is None:
        yield report_unknown(
            "the cluster has no certificate with which the caBundles could be compared",
            "See the check `certificates` of `trimtab doctor`.",
        )
        return
    unknown_names = [name for (_, name), bundle in filled.items() if not certs.may_serve(secret, [bundle])]
    if unknown_names:
        yield report_error(
            CA_BUNDLE_UNKNOWN,
            f"the caBundle of {', '.join(unknown_names)} does not trust the certificate that the webhook serves",
        )
    elif bundles and not empty_names and len(set(filled.values())) == 1:
        yield report_ok(
            f"{format_count(len(bundles), 'webhook')} of Trimtab: the caBundle trusts the certificate that is served"
        )


def check_configurations(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the differences between the two webhook configurations in the cluster and the configurations that Trimtab
    installs.

    A missing configuration is reported by `check_ca_bundles`.
    """
    for configuration in (_find_own(cluster.mutating), cluster.validating):
        if isinstance(configuration, Unreadable):
            yield report_unknown(configuration)
        elif configuration is not None:
            findings = [finding for hook in configuration.hooks for finding in _check_hook(hook, cluster.namespace)]
            names = ", ".join(hook.name for hook in configuration.hooks)
            yield from findings or [
                report_ok(f"failurePolicy is Ignore, and the Service and the selectors are as installed, in {names}")
            ]


def _check_hook(hook: WebhookState, namespace: str) -> Iterator[DoctorFinding]:
    if hook.service != (namespace, WEBHOOK_NAME):
        place = "/".join(hook.service) if hook.service else "a URL"
        yield report_error(SERVICE_OTHER, f"{hook.name} calls {place}, not {namespace}/{WEBHOOK_NAME}")
    if hook.fails_closed:
        yield report_error(FAILURE_POLICY_FAIL, f"{hook.name} has failurePolicy Fail")
    if hook.timeout_seconds > MAX_TIMEOUT_SECONDS:
        yield report_warning(TIMEOUT_LONG, f"{hook.name} has a timeout of {hook.timeout_seconds} s")
    if hook.name == POOLS and hook.included_namespaces != frozenset({namespace}):
        yield report_warning(
            POOLS_OF_OTHER_NAMESPACES,
            f"API servers also send {hook.name} the ConfigMaps of namespaces other than {namespace}",
        )
    if not hook.creates_pods:
        return
    if not hook.reinvoked:
        yield report_warning(NOT_REINVOKED, f"{hook.name} has reinvocationPolicy Never")
    namespaces = sorted((DEFAULT_SETTINGS.system_namespaces | {namespace}) - hook.excluded_namespaces)
    if namespaces:
        yield report_error(
            SYSTEM_NAMESPACES_SENT, f"API servers also send {hook.name} the pods of {', '.join(namespaces)}"
        )


def check_order(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the webhooks of others that may change pods after Trimtab's webhook.

    API servers call configurations in the order of their names, and call webhooks with `reinvocationPolicy: IfNeeded`
    again in the same order.
    """
    configurations = cluster.mutating
    if isinstance(configurations, Unreadable):
        yield report_unknown(configurations)
        return
    other_hooks = [
        (configuration.name, hook)
        for configuration in configurations
        if configuration.name != CONFIGURATION_NAME
        for hook in configuration.hooks
        if hook.creates_pods
    ]
    # API servers call configurations in the order of their names (docs: "Dynamic Admission Control", reinvocation). The
    # VPA's webhook has a check of its own.
    later_hooks = [
        (name, hook) for name, hook in other_hooks if name > CONFIGURATION_NAME and hook.reinvoked and hook.name != VPA
    ]
    for name, hook in later_hooks:
        yield report_warning(
            MAY_BE_OVERRULED,
            f"the webhook {hook.name} ({name}) is called after Trimtab's webhook, and again after Trimtab "
            "changed a pod",
        )
    if not later_hooks:
        others = f"{len(other_hooks)} other webhook{'s change' if len(other_hooks) != 1 else ' changes'} pods"
        yield report_ok(f"{others}; none of these webhooks can overrule Trimtab's webhook")


def check_admission(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether a pod that is created as a dry run reaches the webhook.

    The user needs permission to create pods in the namespace.
    """
    trial = cluster.pod_trial
    if isinstance(trial, Unreadable):
        yield report_unknown(trial)
        return
    if cluster.is_without_webhook:
        yield report_ok("no webhook is called for pods, because compiled policies change them")
        return
    greeting = next((text for text in trial.warnings if text.startswith(PROBE_WARNING)), "")
    if greeting:
        yield report_ok(
            f"the API server called the webhook for a trial pod and got an answer within {trial.seconds:.2g} s "
            f"({greeting[9:]})"
        )
    elif trial.lacks_permission:
        yield report_unknown(trial.message, _explain_permission("pods"))
    elif isinstance(cluster.is_opted_out, Unreadable) or cluster.is_opted_out:
        cause = (
            cluster.is_opted_out
            if isinstance(cluster.is_opted_out, Unreadable)
            else f"the namespace {cluster.trial_namespace} excludes its pods from Trimtab"
        )
        yield report_unknown(cause, "Name another namespace with --ask-in.")
    elif trial.status >= 300:
        yield report_unknown(
            f"the trial pod in {cluster.trial_namespace} was refused: {trial.message}",
            "Correct what the message names, then run the command again.",
        )
    else:
        yield report_error(
            WEBHOOK_SILENT,
            f"the API server created the trial pod in {cluster.trial_namespace} after {trial.seconds:.2g} s "
            "without an answer from the webhook",
        )


def check_validation(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether the webhook denies an invalid PodPolicy, which is created as a dry run."""
    trial = cluster.policy_trial
    if isinstance(trial, Unreadable):
        yield report_unknown(trial)
    elif "denied the request" in trial.message and "trimtab.dev" in trial.message:
        yield report_ok("the webhook refuses an invalid PodPolicy")
    elif trial.lacks_permission:
        yield report_unknown(trial.message, _explain_permission("podpolicies"))
    elif trial.status >= 300:
        yield report_unknown(
            f"a component other than Trimtab's webhook refused the trial PodPolicy: {trial.message}",
            "See the check `crd` of `trimtab doctor`.",
        )
    else:
        yield report_error(VALIDATION_SILENT, "the API server would store an invalid PodPolicy")


def _explain_permission(resource: str) -> str:
    return f"Run the command as a user with permission to create {resource}; nothing is stored."


def _find_own(configurations: Read[tuple[WebhookConfigurationState, ...]]) -> Read[WebhookConfigurationState | None]:
    if isinstance(configurations, Unreadable):
        return configurations
    return next((configuration for configuration in configurations if configuration.name == CONFIGURATION_NAME), None)


CHECKS = (
    Check(
        name="certificates",
        asks="Is the webhook's certificate valid?",
        judge=check_certificate,
        may=(PAIR_MISSING, PAIR_UNUSABLE, PAIR_DUE),
    ),
    Check(
        name="ca-bundle",
        asks="Do API servers trust the webhook's certificate?",
        judge=check_ca_bundles,
        may=(CONFIGURATION_MISSING, CA_BUNDLE_MISSING, CA_BUNDLES_DIFFER, CA_BUNDLE_UNKNOWN),
    ),
    Check(
        name="configuration",
        asks="Do API servers call the webhook with the right settings?",
        judge=check_configurations,
        may=(
            SERVICE_OTHER,
            FAILURE_POLICY_FAIL,
            TIMEOUT_LONG,
            NOT_REINVOKED,
            SYSTEM_NAMESPACES_SENT,
            POOLS_OF_OTHER_NAMESPACES,
        ),
    ),
    Check(
        name="order", asks="Can another webhook overrule Trimtab's webhook?", judge=check_order, may=(MAY_BE_OVERRULED,)
    ),
    Check(
        name="answers",
        asks="Does the API server reach the webhook when a pod is created?",
        judge=check_admission,
        may=(WEBHOOK_SILENT,),
    ),
    Check(
        name="validates",
        asks="Does the API server reach the webhook when a PodPolicy is created?",
        judge=check_validation,
        may=(VALIDATION_SILENT,),
    ),
)
