"""Running pods in three lines: admitted with or without us, then stored, named, placed and dated by the cluster."""

from typing import Any

from tests.build import NAMESPACE, owners, policies, policy
from trimtab.admission.apiserver.admission_chain import run_admission_chain
from trimtab.admission.apiserver.outcome import PodAdmitted
from trimtab.admission.audit.causes import ChangeTimes
from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.findings import Findings, build_findings
from trimtab.admission.audit.original_pod import AuditedPod, AuditedPodReader
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.timestamps import format_timestamp
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decide import decide
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings
from trimtab.policy.podpolicy import Policies

SIZES = policy("{requests: {cpu: {from: policy, otherwise: 50m}}}", name="sizes")
NOTHING = policies()
DAY = 1_790_000_000
"""A moment in 2026."""


def admitted(
    pod: Pod,
    by: Policies = NOTHING,
    world: ClusterFacts | None = None,
    *,
    number: int = 0,
    created: int = DAY,
    terms: AdmissionSettings = DEFAULT_SETTINGS,
    owner: str = "ReplicaSet/web-5d8f",
    namespace: str = NAMESPACE,
    **server: Any,
) -> Pod:
    """The pod as the cluster shows it some time after its creation, one of several from one template."""
    world = world or ClusterFacts()
    meta = change(pod.metadata, name="", generate_name="web-5d8f-", namespace="", owner_references=owners(owner))
    admission = run_admission_chain(
        change(pod, metadata=meta),
        world,
        namespace,
        lambda sent: decide(sent, by, world, namespace, terms).pod,
        **server,
    )
    assert isinstance(admission, PodAdmitted), admission
    named = change(
        admission.pod.metadata,
        name=f"web-5d8f-{'bcdfghjklm'[number]}bcdf",
        namespace=namespace,
        uid=f"uid-{number}-{created}",
        creation_timestamp=format_timestamp(created),
    )
    status = change(admission.pod.status, phase="Running")
    return change(admission.pod, metadata=named, spec=change(admission.pod.spec, node_name=f"n{number}"), status=status)


def held(*pods: Pod) -> list[AuditedPod]:
    reader = AuditedPodReader()
    return [reader(pod) for pod in pods]


def looked(
    pods: list[AuditedPod],
    by: Policies,
    world: ClusterFacts | None = None,
    since: ChangeTimes | None = None,
    terms: AdmissionSettings = DEFAULT_SETTINGS,
) -> Findings:
    """One look by somebody who has seen nothing before."""
    audit_inputs = AuditInputs(policies=by, facts=world or ClusterFacts(), terms=terms)
    return build_findings(Auditor().audit_pods(pods, audit_inputs), audit_inputs, since or registered())


def registered(**policies: int) -> ChangeTimes:
    """Our webhook was there long before; policies were written when it is said."""
    return ChangeTimes(policies={name: float(at) for name, at in policies.items()}, webhook=DAY - 10**6)
