"""Rules about Trimtab's own webhook, policies and recommender, together with the rest of the cluster."""

import re
from collections.abc import Iterator

from trimtab.autoscaling.lint_snapshot import DEFAULT_NAMESPACE, LintSnapshot, LintWorkload, subject_of
from trimtab.autoscaling.objects import PolicyView
from trimtab.autoscaling.rule import (
    FindingIterator,
    LintRule,
    LintSeverity,
    LintSubject,
    ManifestChange,
    Needs,
    lint_rule,
)
from trimtab.autoscaling.rules.vpa_bounds import MAX_LIMIT_RATIO, active_vpas, limit_ratios, requests_only_change
from trimtab.cluster.api.admissionregistration import MutatingWebhook, is_trimtab_configuration
from trimtab.cluster.api.meta import LabelSelector
from trimtab.cluster.selectors import labels_match
from trimtab.policy.match import namespace_name_test, owner_test, values_test

CONFIGURATION_NAME = "trimtab"
SYSTEM_NAMESPACE = "kube-system"
NAME_LABEL = "kubernetes.io/metadata.name"
_URL_SETTING, _MATCHER_SETTING = "TRIMTAB_RECOMMENDER_PROMETHEUS_URL", "TRIMTAB_RECOMMENDER_PROMETHEUS_MATCHER"
_CHILD_KINDS = {"Deployment": "ReplicaSet", "CronJob": "Job"}
"""Kind of a controller → the kind of the objects that it creates and that own its pods."""
_SHARED_SERVER = re.compile(r"thanos|mimir|cortex|vmselect|query-frontend|global-view")
"""Matches addresses of Prometheus-compatible servers that usually hold the time series of several clusters."""


@lint_rule(
    "L15",
    LintSeverity.ERROR,
    "A policy that changes requests of a pod whose limits a VPA multiplies",
    why="The policy changes the ratio of limit to request, and the VPA multiplies each later request by this "
    "ratio: a request of 20m with a limit of 1 leads to a limit of 50 times the request.",
    source="Trimtab (the webhook does not change such pods, with the reason vpa-ratio)",
    fix="Set controlledValues to RequestsOnly in the VPA.",
    needs=(Needs.POLICIES,),
)
def policy_against_ratio(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA that scales the limits of a workload, if a PodPolicy changes the workload's
    requests but not its limits."""
    policies = [
        policy for policy in snapshot.policies if policy.spec.actions.requests and not policy.spec.actions.limits
    ]
    for vpa, subject, workload in active_vpas(snapshot):
        if workload is None:
            continue
        policy = next((policy for policy in policies if applies_to(policy, workload)), None)
        for container, resource, ratio in limit_ratios(vpa, workload) if policy is not None else ():
            if ratio > MAX_LIMIT_RATIO and policy is not None:
                yield rule.report_problem(
                    subject,
                    f"PodPolicy {policy.metadata.name} changes the {resource} request of container "
                    f"{container.name} of {workload.subject}, but {subject} keeps the ratio of limit to request "
                    f"({ratio:g}).",
                    changes=[requests_only_change(vpa, subject, container.name)],
                )


def applies_to(policy: PolicyView, workload: LintWorkload) -> bool:
    """Returns whether the policy's conditions on the namespace's name, the owner and the pod's labels select the
    workload's pods. Other conditions are not checked, so the policy may still not match these pods."""
    match, subject = policy.spec.match, workload.subject
    owners = [f"{subject.kind}/{subject.name}"]
    if (child := _CHILD_KINDS.get(subject.kind)) is not None:
        # The controller names its children: their names begin with its own and a hyphen.
        owners.append(f"{child}/{subject.name}-")
    return (
        matches_namespace(policy, workload.namespace)
        and (not match.owners or any(map(owner_test(match.owners), owners)))
        and values_test(match.pod_labels)(workload.pod_labels)
    )


def matches_namespace(policy: PolicyView, namespace: str) -> bool:
    """Returns whether the policy matches pods of a namespace by its name."""
    namespaces = policy.spec.match.namespaces
    return namespace_name_test(namespaces.include, namespaces.exclude)(namespace)


@lint_rule(
    "L45",
    LintSeverity.ERROR,
    "A webhook of Trimtab that can block the cluster itself",
    why="With failurePolicy Fail, no pod can be created while the webhook is down, not even a pod of the webhook "
    "itself. If the webhook receives pods of kube-system, the same applies to components without which the "
    "cluster does not recover.",
    source="Kubernetes, admission webhook good practices",
    fix="Set failurePolicy Ignore, and exclude kube-system and Trimtab's own namespace in the namespaceSelector.",
)
def webhook_in_the_way(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each mutating webhook of Trimtab that has failurePolicy Fail, that is called for pods of
    kube-system, or that is called for pods of its own Service's namespace."""
    for configuration in snapshot.mutating_webhooks:
        if not is_trimtab_configuration(configuration.metadata, CONFIGURATION_NAME):
            continue
        subject = subject_of("MutatingWebhookConfiguration", configuration.metadata, namespaced=False)
        for index, webhook in enumerate(configuration.webhooks):
            for problem, path in _webhook_problems(webhook, subject):
                changes = [ManifestChange(subject, ("webhooks", index, "failurePolicy"), "Ignore")]
                yield rule.report_problem(
                    subject, problem, path=("webhooks", index, path), changes=changes if path == "failurePolicy" else ()
                )


def _webhook_problems(webhook: MutatingWebhook, subject: LintSubject) -> Iterator[tuple[str, str]]:
    name = f"Webhook {webhook.name} of {subject}"
    if webhook.failure_policy != "Ignore":
        yield f"{name} has failurePolicy Fail.", "failurePolicy"
    own = webhook.client_config.service.namespace if webhook.client_config.service is not None else ""
    selector = webhook.namespace_selector or LabelSelector()
    for namespace in dict.fromkeys((SYSTEM_NAMESPACE, own)):
        if namespace and labels_match(selector, {NAME_LABEL: namespace}):
            yield f"{name} is called for pods of {namespace}.", "namespaceSelector"


@lint_rule(
    "N12",
    LintSeverity.WARNING,
    "Usage that is read from a Prometheus with several clusters",
    why="Workloads with the same name in two clusters share one history of usage, so the requests of both are wrong.",
    source="Trimtab; the VPA's recommender has no matcher for a cluster",
    fix="Set TRIMTAB_RECOMMENDER_PROMETHEUS_MATCHER, or query the Prometheus of one cluster.",
)
def shared_prometheus(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA recommender that reads from a Prometheus server with the usage of several clusters.
    Yields an info if Trimtab's own recommender has a Prometheus server but no matcher."""
    for workload in snapshot.workloads:
        for container in workload.spec.containers:
            names = {variable.name for variable in container.env}
            if _URL_SETTING in names and _MATCHER_SETTING not in names:
                yield rule.report_problem(
                    workload.subject,
                    f"{workload.subject} sets {_URL_SETTING}, but not {_MATCHER_SETTING}.",
                    severity=LintSeverity.INFO,
                    outcome="If that Prometheus server has the series of several clusters, the recommender rejects "
                    "their usage and recommends nothing.",
                )
            address = next((a for a in container.arguments if a.startswith("--prometheus-address")), "")
            if _SHARED_SERVER.search(address):
                yield rule.report_problem(
                    workload.subject, f"{workload.subject} reads usage from {address.partition('=')[2]}."
                )


@lint_rule(
    "N13",
    LintSeverity.WARNING,
    "A LimitRange that restores the limits which a policy removes",
    why="The API server sets the default limit again after the policy has removed it: the policy has no effect, "
    "or the pod has a limit that no manifest contains.",
    source="The LimitRanger of Kubernetes runs before and after webhooks (measured, 1.36)",
    fix="Remove the default limit from the LimitRange, or exclude the namespace from the policy.",
    needs=(Needs.POLICIES,),
)
def restored_limits(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each default limit in a LimitRange, if a PodPolicy removes the limit of that resource in the
    namespace."""
    for limit_range in snapshot.limit_ranges:
        namespace = limit_range.metadata.namespace or DEFAULT_NAMESPACE
        subject = subject_of("LimitRange", limit_range.metadata)
        for index, item in enumerate(limit_range.spec.limits):
            for resource in item.default if item.type == "Container" else ():
                policy = next(
                    (
                        policy
                        for policy in snapshot.policies
                        if policy.spec.actions.limits.get(resource) == "remove" and matches_namespace(policy, namespace)
                    ),
                    None,
                )
                if policy is not None:
                    yield rule.report_problem(
                        subject,
                        f"{subject} sets a {resource} limit, but PodPolicy {policy.metadata.name} removes it.",
                        path=("spec", "limits", index, "default", resource),
                    )
