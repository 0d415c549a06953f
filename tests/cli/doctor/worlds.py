"""A cluster in which all is well, as `doctor` sees it; tests break one thing of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import certs
from tests.cluster_of import cluster, node
from trimtab.autoscaling.rule import LintSeverity, LintSubject, RuleFinding
from trimtab.cli.doctor.command import judge_cluster
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.processes import account_name
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotations
from trimtab.diagnosis.lease_state import LeaseState
from trimtab.diagnosis.observed import (
    AccountPolicy,
    ApiServiceState,
    AutoscalerState,
    CrdState,
    DeploymentState,
    DryRunResult,
    EstafetteState,
    NamespaceState,
    ObservedCluster,
    PolicyState,
    SignatureState,
    UsageSourceState,
    Vpa,
    WebhookConfigurationState,
    WebhookState,
)
from trimtab.diagnosis.references import PROTECTING_KINDS, ReferencesState
from trimtab.diagnosis.vpa.state import VpaStatusState
from trimtab.inputs.compiled_policy_state import CompiledPolicyState
from trimtab.installation.names import PROCESSES, WORKERS

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
OURS = "trimtab-system"
PAIR = certs.issue([f"trimtab-webhook.{OURS}.svc"], now=NOW)
HIDDEN = Unreadable("list pods", "403 Forbidden: who asks may not")
CREATED = DryRunResult(status=201)
UNBOUND = CompiledPolicyState(name="trimtab-sizes", is_bound=False)
CLASS_UNKNOWN = DryRunResult(status=403, message='pod rejected: RuntimeClass "trimtab-doctor-asks" not found')


def hook(name: str = "pods.trimtab.dev", **other: Any) -> WebhookState:
    return replace(
        WebhookState(
            name=name,
            place="/mutate",
            service=(OURS, "trimtab-webhook"),
            ca_bundle=PAIR.bundle,
            fails_closed=False,
            timeout_seconds=3,
            reinvoked=True,
            creates_pods=True,
            excluded_namespaces=frozenset({"kube-system", "kube-public", "kube-node-lease", OURS}),
        ),
        **other,
    )


def configuration(*hooks: WebhookState, name: str = "trimtab") -> WebhookConfigurationState:
    return WebhookConfigurationState(name=name, hooks=hooks or (hook(),))


VALIDATING = configuration(
    hook("podpolicies.trimtab.dev", creates_pods=False, reinvoked=False),
    hook("pools.trimtab.dev", creates_pods=False, included_namespaces=frozenset({OURS})),
)
WEB_NODE = cluster(node("web-1", labels={"nodepool": "web"})).nodes[0]
WELL = ObservedCluster(
    namespace=OURS,
    trial_namespace="default",
    is_opted_out=False,
    local_time=NOW,
    server_time=NOW,
    version=(1, 36),
    own_namespace=NamespaceState(paused=""),
    crd=CrdState(established=True, served=frozenset({"v1alpha1"})),
    pool_status_crd=CrdState(established=True, served=frozenset({"v1alpha1"})),
    drain_order_crd=CrdState(established=True, served=frozenset({"v1alpha1"})),
    processes={name: DeploymentState(replicas=2, ready_replicas=2) for name in PROCESSES},
    secret=PAIR,
    signatures=SignatureState(webhook_keys=True, keys=True, annotations=DrainAnnotations(), states={}),
    mutating=(configuration(),),
    validating=VALIDATING,
    pod_trial=DryRunResult(status=201, warnings=("trimtab: here, with 3 policies",), seconds=0.01),
    policy_trial=DryRunResult(status=400, message='admission webhook "podpolicies.trimtab.dev" denied the request: no'),
    runtime_class_trial=CLASS_UNKNOWN,
    missing_permissions=dict.fromkeys(PROCESSES, ()),
    account_policies=tuple(AccountPolicy(name=f"trimtab-{name}-x", process=name) for name in PROCESSES),
    autoscaler=AutoscalerState(status_report=Autoscaler(updated=int(NOW.timestamp()))),
    estafette=EstafetteState(running=(), stranded=()),
    usage_source=UsageSourceState(name="metrics API", status=200),
    vpa=Vpa(installed=False, acts=False),
    leases={
        name: LeaseState(holder=f"{name}-1", renewed_at=NOW - timedelta(seconds=5), duration_seconds=30)
        for name in WORKERS
    },
    policies=(PolicyState(name="sizes", mode="apply", generation=2, observed_generation=2),),
    pools=PoolReading((Pool(name="web"),)),
    references=ReferencesState(
        nodes=(WEB_NODE,),
        images=dict.fromkeys(PROCESSES, "trimtab:0.1.0"),
        protecting=dict.fromkeys(PROTECTING_KINDS, frozenset(map(account_name, PROCESSES))),
    ),
)


def settings(process: str, **result: str) -> dict[str, Any]:
    """The processes, one of them with these variables."""
    return {**WELL.processes, process: DeploymentState(replicas=2, ready_replicas=2, settings=result)}


def bad(**other: Any) -> dict[str, str]:
    """Code → severity of everything that is not as it should be, where this differs from a cluster that is well."""
    results = judge_cluster(replace(WELL, **other))
    return {
        each.finding.reason.code.name: each.finding.severity.value for each in results if each.finding.severity != "ok"
    }


RECOMMENDS = settings("recommender", TRIMTAB_RECOMMENDER_WRITE_VPA_STATUS="true")


def vpas(**other: Any) -> dict[str, Any]:
    """A VPA that names us, and a recommender that writes its status."""
    state = VpaStatusState(name="shop/web", used_until=NOW - timedelta(minutes=30))
    return {"processes": RECOMMENDS, "vpa_statuses": (replace(state, **other),)}


AVAILABLE = ApiServiceState(
    name="v1beta2.custom.metrics.k8s.io", service=f"{OURS}/trimtab-metrics-api", is_available=True
)
UNAVAILABLE = replace(AVAILABLE, is_available=False)
ADAPTER = ApiServiceState(name="v1beta1.custom.metrics.k8s.io", service="monitoring/adapter", is_available=True)
NO_POD = DryRunResult(status=403, message='pods is forbidden: User "x" cannot create resource "pods"')
RESTORED_LIMIT = RuleFinding(
    rule="N13",
    severity=LintSeverity.WARNING,
    subject=LintSubject("LimitRange", "shop", "limits"),
    sentence="LimitRange shop/limits sets a cpu limit.",
    outcome="The policy has no effect.",
    fix="Remove it.",
)
