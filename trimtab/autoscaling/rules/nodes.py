"""Rules about spot nodes, reservations, and the number of pods per node."""

from collections import defaultdict
from collections.abc import Mapping
from ipaddress import ip_network

from trimtab.autoscaling.container_amounts import CPU, MEMORY, RESOURCES, amount_in, format_amount, read_amount
from trimtab.autoscaling.lint_snapshot import LintSnapshot, LintWorkload, MeasuredReservation, subject_of
from trimtab.autoscaling.node_sizes import is_spot_label, is_spot_node
from trimtab.autoscaling.objects import LintNode
from trimtab.autoscaling.rule import (
    FindingIterator,
    LintRule,
    LintSeverity,
    LintSubject,
    ManifestChange,
    Needs,
    lint_rule,
)
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import NODE
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.cluster.timestamps import parse_timestamp

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
EVICTION_BYTES = 100 << 20
"""The kubelet's default for the hard eviction threshold memory.available."""
RESERVATION_TOLERANCE = 0.1
RESERVATION_MARGIN = {CPU: 20, MEMORY: 128 << 20}
"""Resource → the difference, in millicores and bytes, above which the recommender changes a reservation. The
reservation must also differ by more than a tenth."""
USABLE_SHARE = 0.8
"""The share of a node's pod addresses that may be in use. The rest is kept free, because addresses of deleted pods are
released late."""
LONG_RUN_SECONDS = 7 * 86400
_SINGLE_KINDS = ("StatefulSet", "Deployment")
_GUIDE = "Kubernetes, reserve compute resources for system daemons"


@lint_rule(
    "N08",
    LintSeverity.WARNING,
    "A critical pod on a spot node",
    why="The cloud provider removes a spot node within minutes, and with it pods that the cluster needs to "
    "replace the others.",
    source="Trimtab (`plan` reports such pods too)",
    fix="Run critical pods on other nodes, by a node affinity.",
)
def critical_on_spot(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each workload with system-cluster-critical or system-node-critical that chooses spot nodes
    or has pods on some. DaemonSets are left out, because they run on all nodes by design."""
    spots = {node.metadata.name for node in snapshot.nodes if is_spot_node(node)}
    for workload in snapshot.workloads:
        if not workload.is_critical or workload.subject.kind == "DaemonSet":
            continue
        pods = [pod.metadata.name for pod in snapshot.pods_of(workload) if pod.spec.node_name in spots]
        if pods or _chooses_spot(workload):
            where = f"runs on spot nodes ({', '.join(sorted(pods)[:3])})" if pods else "chooses spot nodes"
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} has the priority class {workload.spec.priority_class_name}, and {where}.",
                path=(*workload.template_path, "priorityClassName"),
            )


def _chooses_spot(workload: LintWorkload) -> bool:
    """Returns whether a node selector or a required node affinity allows only spot nodes."""
    if any(is_spot_label(key, value) for key, value in value_or(workload.spec.node_selector, {}).items()):
        return True
    affinity = value_or(workload.spec.affinity, None)
    by_node = value_or(affinity.node_affinity, None) if affinity is not None else None
    required = value_or(by_node.required, None) if by_node is not None else None
    terms = required.node_selector_terms if required is not None else ()
    return bool(terms) and all(
        any(
            expression.operator == "In" and all(is_spot_label(expression.key, value) for value in expression.values)
            for expression in value_or(term.match_expressions, ())
        )
        for term in terms
    )


@lint_rule(
    "N14",
    LintSeverity.WARNING,
    "A pod that runs for a long time on spot nodes",
    why="A pod without a second replica is unavailable each time that the cloud provider removes its node, until "
    "the pod's volume is attached to another node and the new pod is ready.",
    source="Trimtab",
    fix="Run a second replica, or use a node affinity for nodes that are not spot nodes.",
)
def long_run_on_spot(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each StatefulSet, and each Deployment with one replica, that chooses spot nodes or has had a
    pod on one for a week."""
    spots = {node.metadata.name for node in snapshot.nodes if is_spot_node(node)}
    for workload in snapshot.workloads:
        if workload.subject.kind not in _SINGLE_KINDS or workload.is_critical:
            continue
        if workload.subject.kind == "Deployment" and snapshot.needed_replicas(workload) != 1:
            continue
        pods = [
            pod.metadata.name
            for pod in snapshot.pods_of(workload)
            if pod.spec.node_name in spots and _age_of(snapshot, pod.metadata.creation_timestamp) >= LONG_RUN_SECONDS
        ]
        if pods or _chooses_spot(workload):
            where = f"has run on spot nodes for a week or longer ({', '.join(sorted(pods)[:3])})"
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} {where if pods else 'chooses spot nodes'}.",
                path=workload.template_path,
            )


def _age_of(snapshot: LintSnapshot, created: str | None) -> int:
    at = parse_timestamp(created)
    return 0 if at is None or snapshot.now is None else snapshot.now - at


@lint_rule(
    "N10",
    LintSeverity.WARNING,
    "A reservation below the measured need of system daemons",
    why="If the kubelet and the container runtime use more than is reserved for them, pods have less than the "
    "scheduler assumes: the node comes under pressure, and the kubelet evicts pods.",
    source=_GUIDE,
    fix="Raise kubeReserved to the measured amounts.",
    needs=(Needs.RESERVATIONS,),
)
def low_reservation(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each KubeletConfiguration, and for the nodes of each pool or machine type, that reserve less
    than was measured there: by more than a tenth, 20m of cpu or 128Mi of memory."""
    for kubelet in snapshot.kubelets:
        named = [reservation for reservation in snapshot.reservations if reservation.nodes == kubelet.metadata.name]
        candidates = named or snapshot.reservations
        if len(candidates) != 1:
            continue
        reservation = candidates[0]
        subject = subject_of("KubeletConfiguration", kubelet.metadata, namespaced=False)
        reserved = {
            resource: (amount_in(kubelet.kube_reserved, resource) or 0)
            + (amount_in(kubelet.system_reserved, resource) or 0)
            for resource in RESOURCES
        }
        yield from _report_low(rule, subject, reserved, reservation, has_field=True)
    alike: dict[tuple[MeasuredReservation, int, int], list[str]] = defaultdict(list)
    for node in snapshot.nodes:
        node_reservation = next((one for one in snapshot.reservations if _was_measured_on(one, node)), None)
        if node_reservation is not None:
            alike[node_reservation, _reserved_on(node, CPU), _reserved_on(node, MEMORY)].append(node.metadata.name)
    for (reservation, cpu, memory), names in alike.items():
        subject = LintSubject(NODE, "", min(names))
        reserved = {CPU: cpu, MEMORY: memory}
        yield from _report_low(rule, subject, reserved, reservation, has_field=False, others=len(names) - 1)


def _was_measured_on(reservation: MeasuredReservation, node: LintNode) -> bool:
    """Returns whether the reservation was measured on nodes like this one: of its machine type or pool, and with its
    container runtime."""
    labels = value_or(node.metadata.labels, {})
    names = [labels[key] for key in (INSTANCE_TYPE, *POOL_LABELS) if key in labels]
    runtime = node.status.node_info.container_runtime_version.partition("://")[0]
    return reservation.nodes in names and reservation.runtime in ("", runtime)


def _reserved_on(node: LintNode, resource: str) -> int:
    """Returns the amount that is reserved on the node: capacity minus allocatable, and for memory also minus the
    eviction threshold, which is not a reservation."""
    kept = (amount_in(node.status.capacity, resource) or 0) - (amount_in(node.status.allocatable, resource) or 0)
    return max(0, kept - (EVICTION_BYTES if resource == MEMORY else 0))


def _report_low(
    rule: LintRule,
    subject: LintSubject,
    reserved: Mapping[str, int],
    reservation: MeasuredReservation,
    *,
    has_field: bool,
    others: int = 0,
) -> FindingIterator:
    who = str(subject) if not others else f"{subject} and {others} more of {reservation.nodes}"
    for resource, needed in ((CPU, reservation.cpu), (MEMORY, reservation.memory)):
        now = reserved[resource]
        if needed - now > max(RESERVATION_TOLERANCE * now, RESERVATION_MARGIN[resource]):
            path = ("kubeReserved", resource)
            amount = format_amount(resource, needed)
            yield rule.report_problem(
                subject,
                f"{who} {'reserve' if others else 'reserves'} {format_amount(resource, now)} of {resource}, but "
                f"on {reservation.nodes} the system daemons need {amount} according to measurements.",
                path=path if has_field else (),
                changes=[ManifestChange(subject, path, amount)] if has_field else (),
            )


@lint_rule(
    "N11",
    LintSeverity.WARNING,
    "A node that allows too many pods for its range of addresses",
    why="The addresses of ended pods become free late: on a node with all its pods, new pods stay in "
    "ContainerCreating because no address is free. With more than 1000 neighbours the kernel also drops ARP "
    "entries, unless gc_thresh is raised.",
    source="Kubernetes node IPAM; GKE's rule of two addresses for each pod",
    fix="Lower maxPods to 80 % of the addresses, or give nodes a larger range of addresses.",
)
def crowded_node(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each node or KubeletConfiguration that allows too many pods: more than 80 % of the addresses
    of its pod range, or more than was measured to be possible."""
    most = {reservation.nodes: reservation.max_pods for reservation in snapshot.reservations}
    for kubelet in snapshot.kubelets:
        subject = subject_of("KubeletConfiguration", kubelet.metadata, namespaced=False)
        usable = _usable_addresses(kubelet.pod_cidr)
        if usable is not None and kubelet.max_pods > usable:
            yield rule.report_problem(
                subject,
                f"{subject} allows {format_count(kubelet.max_pods, 'pod')} in the range {kubelet.pod_cidr}, "
                "which has "
                f"addresses for only {format_count(usable, 'pod')}.",
                path=("maxPods",),
                changes=[ManifestChange(subject, ("maxPods",), usable)],
            )
    for node in snapshot.nodes:
        pods = read_amount("pods", node.status.capacity.get("pods")) or 0
        usable = _usable_addresses(node.spec.pod_cidr)
        measured = most.get(value_or(node.metadata.labels, {}).get(INSTANCE_TYPE, ""))
        limit = min((bound for bound in (usable, measured) if bound is not None), default=None)
        if limit is not None and pods > limit:
            where = f"in {node.spec.pod_cidr}" if limit == usable else "on this machine type"
            yield rule.report_problem(
                LintSubject(NODE, "", node.metadata.name),
                f"Node {node.metadata.name} allows {format_count(pods, 'pod')} {where}, but only {limit} can get "
                "an address.",
            )


def _usable_addresses(cidr: str) -> int | None:
    """Returns 80 % of the number of addresses of a range; None if the text is not a range, or is an IPv6 range, which
    is always large enough."""
    try:
        network = ip_network(cidr, strict=False)
    except ValueError:
        return None
    return int(USABLE_SHARE * network.num_addresses) if network.version == 4 else None


@lint_rule(
    "N15",
    LintSeverity.WARNING,
    "System reservations that the kernel enforces",
    why="An enforced reservation is a limit for the system's own processes: sshd, the journal or the kubelet "
    "itself may be throttled or killed, and then the node becomes NotReady.",
    source=_GUIDE + ": enforce system-reserved only after profiling",
    fix="Enforce only `pods`; the reservations still lower the resources that pods can use.",
    needs=(Needs.KUBELETS,),
)
def enforced_reservation(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each KubeletConfiguration whose enforceNodeAllocatable contains system-reserved or
    kube-reserved. The `-compressible` forms are allowed, because they only limit cpu shares."""
    for kubelet in snapshot.kubelets:
        enforced = [
            name
            for name in value_or(kubelet.enforce_node_allocatable, ("pods",))
            if name in ("system-reserved", "kube-reserved")
        ]
        if enforced:
            subject = subject_of("KubeletConfiguration", kubelet.metadata, namespaced=False)
            path = ("enforceNodeAllocatable",)
            yield rule.report_problem(
                subject,
                f"{subject} enforces {' and '.join(enforced)} as limits.",
                path=path,
                changes=[ManifestChange(subject, path, ["pods"])],
            )
