"""A world in three lines: pods, containers and what surrounds them, with defaults that don't matter.

    web = pod(container(limits={"cpu": "1"}))
    world = facts(limit_range(default={"cpu": "500m"}), runtime_class("kata", overhead={"cpu": "250m"}))

Everything namespaced lives in NAMESPACE unless told otherwise.
"""

import json
from collections import defaultdict
from typing import Any

import msgspec

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver import admission_chain
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.response_cache import ResponseCache
from trimtab.cluster.api.autoscaling import (
    ContainerPolicy,
    ContainerRecommendation,
    ResourcePolicy,
    TargetRef,
    UpdatePolicy,
    VerticalPodAutoscaler,
    VPARecommendation,
    VPASpec,
    VPAStatus,
)
from trimtab.cluster.api.core import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Namespace,
    Node,
    NodeSpec,
    NodeStatus,
    Overhead,
    PriorityClass,
    QuotaSpec,
    QuotaStatus,
    ResourceQuota,
    RuntimeClass,
    Scheduling,
    Taint,
)
from trimtab.cluster.api.meta import UNSET, ApiObject, Metadata, OwnerReference, ResourceList, Revised
from trimtab.cluster.api.pod import Container, Pod, PodSpec, Resources, Toleration
from trimtab.cluster.api.workload import Workload, WorkloadSpec, WorkloadStatus
from trimtab.cluster.kinds import GroupKind
from trimtab.cluster.owner import OwnerKey, reference_to
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.decide import Decision, decide
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import (
    DEFAULT_SETTINGS,
    AdmissionSettings,
    MarkerSigner,
    PodBeforeAndAfter,
    PodContext,
)
from trimtab.policy.podpolicy import Policies
from trimtab.policy.vpa_webhook import reach_everywhere_if

NAMESPACE = "team-a"


def resources(requests: ResourceList | None = None, limits: ResourceList | None = None) -> Any:
    """UNSET where nothing is said, as in a manifest that says nothing."""
    if requests is None and limits is None:
        return UNSET
    return Resources(requests=UNSET if requests is None else requests, limits=UNSET if limits is None else limits)


def container(
    name: str = "app", *, requests: ResourceList | None = None, limits: ResourceList | None = None, **fields: Any
) -> Container:
    return Container(name=name, image=fields.pop("image", "app:1"), resources=resources(requests, limits), **fields)


def pod(
    *containers: Container,
    name: str = "web",
    labels: Any = UNSET,
    annotations: Any = UNSET,
    owner: str = "",
    init: tuple[Container, ...] = (),
    **spec: Any,
) -> Pod:
    """One plain container unless some are given; `owner` as "Kind/name"; everything else is a field of the spec."""
    return Pod(
        metadata=Metadata(name=name, labels=labels, annotations=annotations, owner_references=owners(owner)),
        spec=PodSpec(containers=containers or (container(),), init_containers=init, **spec),
    )


def toleration(key: str = "", value: str = "", effect: str = "", *, operator: str = "", seconds: Any = UNSET) -> Any:
    return Toleration(key=key, operator=operator, value=value, effect=effect, toleration_seconds=seconds)


def item(kind: str = "Container", **bounds: Any) -> LimitRangeItem:
    """default, default_request, min, max, max_limit_request_ratio."""
    return LimitRangeItem(type=kind, **bounds)


def limit_range(
    *items: LimitRangeItem, name: str = "bounds", namespace: str = NAMESPACE, kind: str = "Container", **bounds: Any
) -> LimitRange:
    """Of the items given, or of one item with these bounds."""
    metadata = Metadata(name=name, namespace=namespace)
    return LimitRange(metadata=metadata, spec=LimitRangeSpec(limits=items or (item(kind, **bounds),)))


def runtime_class(
    name: str = "kata",
    *,
    overhead: ResourceList | None = None,
    node_selector: dict[str, str] | None = None,
    tolerations: tuple[Toleration, ...] = (),
) -> RuntimeClass:
    return RuntimeClass(
        metadata=Metadata(name=name),
        handler=name,
        overhead=Overhead(pod_fixed=overhead or {}),
        scheduling=Scheduling(node_selector=node_selector or {}, tolerations=tolerations),
    )


def priority_class(name: str, value: int, **fields: Any) -> PriorityClass:
    return PriorityClass(metadata=Metadata(name=name), value=value, **fields)


def quota(
    hard: ResourceList, *, used: ResourceList | None = None, name: str = "q", namespace: str = NAMESPACE, **spec: Any
) -> ResourceQuota:
    """With `used`, its status is known; without, it is a quota from a file."""
    return ResourceQuota(
        metadata=Metadata(name=name, namespace=namespace),
        spec=QuotaSpec(hard=hard, **spec),
        status=QuotaStatus() if used is None else QuotaStatus(hard=hard, used=used),
    )


def facts(*objects: ApiObject, vpa_acts: bool = True) -> ClusterFacts:
    """What a snapshot of just these objects would tell."""
    results: dict[str, list[ApiObject]] = defaultdict(list)
    for each in objects:
        results[each.kind if isinstance(each, Workload) else type(each).__name__].append(each)
    return from_snapshot(
        Snapshot({kind: tuple(same) for kind, same in results.items()}), vpa_reach=reach_everywhere_if(vpa_acts)
    )


def admission_context(
    policies: Policies,
    cluster: ClusterFacts,
    *,
    settings: AdmissionSettings = DEFAULT_SETTINGS,
    memory: ResponseCache | None = None,
) -> AdmissionContext:
    """What decisions about pods have in common: the policies first, and then what is known about the cluster."""
    return AdmissionContext(policies=policies, facts=cluster, settings=settings, memory=memory)


def before_and_after(
    before: Pod, after: Pod, cluster: ClusterFacts | None = None, namespace: str = NAMESPACE
) -> PodBeforeAndAfter:
    """One pod before and after a decision, in a cluster about which nothing else is known."""
    cluster = facts() if cluster is None else cluster
    first, last = (PodContext(pod=each, namespace=namespace, facts=cluster) for each in (before, after))
    return PodBeforeAndAfter(before=first, after=last)


def owner_key(owner: str, namespace: str = NAMESPACE) -> OwnerKey:
    """The identity of "Kind/name" or of "Kind.group/name"."""
    kind, _, name = owner.partition("/")
    return OwnerKey(namespace, GroupKind(kind), name)


def owners(owner: str) -> tuple[OwnerReference, ...]:
    """The controller reference of "Kind/name" or "Kind.group/name"; none for nothing."""
    return (reference_to(owner_key(owner)),) if owner else ()


def workload(
    name: str,
    *,
    owner: str = "",
    namespace: str = NAMESPACE,
    created: str | None = None,
    replicas: Any = UNSET,
    **status: int,
) -> Workload:
    """ "Kind/name", perhaps with an owner of its own; `status`: what its controller says."""
    kind, _, own = name.partition("/")
    metadata = Revised(name=own, namespace=namespace, owner_references=owners(owner), creation_timestamp=created)
    return Workload(kind=kind, metadata=metadata, spec=WorkloadSpec(replicas=replicas), status=WorkloadStatus(**status))


def namespace(name: str = NAMESPACE, **labels: str) -> Namespace:
    return Namespace(metadata=Metadata(name=name, labels=labels))


def node(
    name: str = "n1", *, labels: Any = UNSET, taints: tuple[Taint, ...] = (), provider: str = "", **allocatable: str
) -> Node:
    """`provider`: the machine's address in its cloud."""
    return Node(
        metadata=Metadata(name=name, labels=labels),
        spec=NodeSpec(taints=taints, provider_id=provider),
        status=NodeStatus(allocatable=dict(allocatable)),
    )


def vpa(
    target: str = "Deployment/web",
    *,
    name: str = "web",
    mode: str = "Recreate",
    recommends: dict[str, ResourceList] | None = None,
    created: str = "2026-01-01T00:00:00Z",
    policies: tuple[ContainerPolicy, ...] = (),
    **update: Any,
) -> VerticalPodAutoscaler:
    """`recommends`: container → target; `update`: more of its update policy."""
    kind, _, own = target.partition("/")
    container_recommendations = tuple(
        ContainerRecommendation(container_name=c, target=t) for c, t in (recommends or {}).items()
    )
    return VerticalPodAutoscaler(
        metadata=Metadata(name=name, namespace=NAMESPACE, creation_timestamp=created),
        spec=VPASpec(
            target_ref=TargetRef(kind_name=kind, name=own),
            update_policy=UpdatePolicy(update_mode=mode, **update),
            resource_policy=ResourcePolicy(container_policies=policies),
        ),
        status=VPAStatus(recommendation=VPARecommendation(container_recommendations=container_recommendations)),
    )


def usage(
    workload: str = "Deployment/web",
    name: str = "app",
    *,
    shard: str = "00",
    last: int | None = None,
    ends: int | None = None,
    confidence: float | None = None,
    **seen: tuple[str, ...],
) -> ConfigMap:
    """A published recommendation for one container: resource → (P5, P95), or with the greatest behind them."""
    actual_container_usage = container_usage(seen, confidence=confidence)
    return shard_of_usage(
        {name: msgspec.structs.replace(actual_container_usage, last_sample_at=last, ends_at=ends)}, workload, shard
    )


def container_usage(seen: dict[str, tuple[str, ...]], *, confidence: float | None = None) -> ContainerUsage:
    """Of 14 days: resource → (P5, P95), or with the greatest behind them."""
    percentiles = {
        resource: Percentiles(p5=low, p95=high, max=most[0] if most else None, confidence=confidence)
        for resource, (low, high, *most) in seen.items()
    }
    return ContainerUsage(days=14, **percentiles)


def shard_of_usage(
    containers: dict[str, ContainerUsage], workload: str = "Deployment/web", shard: str = "00"
) -> ConfigMap:
    """A workload is in one shard with all its containers: of two that speak of it, only the last counts."""
    payload = encode({f"{NAMESPACE}/{workload}": containers})
    metadata = Metadata(
        name=f"trimtab-recommendations-{shard}", namespace="trimtab-system", labels={RECOMMENDATIONS_LABEL: "v1"}
    )
    return ConfigMap(metadata=metadata, data={PAYLOAD_KEY: payload})


def policy(actions: str, *, name: str = "p", match: str = "{}", **spec: Any) -> str:
    """One PodPolicy document; `actions` and `match` as flow-style YAML."""
    more = "".join(f"  {key}: {value}\n" for key, value in spec.items())
    return (
        f"apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {{name: {name}}}\nspec:\n{more}"
        f"  match: {match}\n  actions: {actions}\n"
    )


def policies(*documents: str) -> Policies:
    """Loaded as from a file; a mistake in one is a mistake in the test."""
    loaded = load_policies([("policies.yaml", "---\n".join(documents).encode())] if documents else [])
    assert not loaded.mistakes, "\n".join(map(str, loaded.mistakes))
    return loaded.policies


def review(
    pod: Any, *, uid: str = "u-1", operation: str = "CREATE", namespace: str = NAMESPACE, **request: Any
) -> bytes:
    """An AdmissionReview as the API server sends it; `pod` as plain JSON values."""
    manifest = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": operation,
        "object": pod,
        **request,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": manifest}).encode()


SIGNER = MarkerSigner(SigningKeys(b"k" * 32), 178_000_000)
"""As a webhook that has its keys, at some moment."""
SIGNING = AdmissionSettings(signer=SIGNER)


def decided(pod: Pod, by: Policies, world: ClusterFacts | None = None, terms: AdmissionSettings = SIGNING) -> Decision:
    """What the policies make of the pod, in NAMESPACE."""
    return decide(pod, by, world or facts(), NAMESPACE, terms)


def stored(pod: Pod, by: Policies, world: ClusterFacts | None = None, **server: Any) -> PodAdmitted | PodRejected:
    """The pod as the API server would store it, with our webhook in the chain."""
    world = world or facts()
    return admission_chain.run_admission_chain(pod, world, NAMESPACE, lambda p: decided(p, by, world).pod, **server)


def codes(decision: Decision, *, loud: bool = False) -> set[str]:
    """The codes of all reasons to leave something; `loud`: only of those that become warnings."""
    return {left.reason.code.name for left in decision.fields_kept if left.loud or not loud}


def changed(decision: Decision) -> dict[str, Any]:
    """Field → value after."""
    return {change.field: change.after for change in decision.changes}
