"""Rules about schedulers, zones, gangs of pods and traffic."""

from trimtab.autoscaling.lint_snapshot import DEFAULT_NAMESPACE, LintSnapshot, LintWorkload, subject_of
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, ManifestChange, lint_rule
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod_groups import group_by_marks
from trimtab.cluster.pool import KEEP_ANNOTATION
from trimtab.cluster.schedulers import KNOWN_SCHEDULERS, find_schedulers

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
PAID_TRAFFIC = {"aws": "AWS", "gce": "Google Cloud"}
"""Scheme of spec.providerID → the cloud, for clouds that charge traffic between zones: both 0.01 dollars for each GB in
each direction. Azure does not charge it."""
MIN_REPLICAS_PER_ZONE = 3
"""With fewer pods in a zone, the traffic of a zone is spread too unevenly over its pods."""
_HINTS = ("service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints")
_NEAR = ("PreferClose", "PreferSameZone", "PreferSameNode")


@lint_rule(
    "L43",
    LintSeverity.WARNING,
    "Several replicas that may all run in one place",
    why="The scheduler's default spreading is only a preference: after a few drains all replicas may be on one "
    "node or in one zone. If that node or zone fails, the service is down.",
    source="Gardener's guide on high availability; Kubernetes topology spread constraints",
    fix="Add a topologySpreadConstraint over zones and one over hosts.",
)
def unspread_replicas(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each workload with two or more replicas that has neither a spread over zones or hosts nor
    pod anti-affinity."""
    for workload in snapshot.workloads:
        replicas = snapshot.needed_replicas(workload)
        if replicas is None or replicas < 2 or is_spread(workload, (ZONE, HOST)):
            continue
        labels = {"matchLabels": dict(workload.pod_labels)}
        constraints = [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": labels}
            for key in (ZONE, HOST)
        ]
        path = (*workload.template_path, "topologySpreadConstraints")
        yield rule.report_problem(
            workload.subject,
            f"{workload.subject} has {snapshot.describe_replicas(workload)}, but no constraint spreads them "
            "over zones or nodes.",
            path=path,
            changes=[ManifestChange(workload.subject, path, constraints)] if workload.pod_labels else (),
        )


def is_spread(workload: LintWorkload, keys: tuple[str, ...]) -> bool:
    """Returns whether a topology spread constraint or pod anti-affinity spreads the pods over a topology whose key is
    in `keys`."""
    constraints = value_or(workload.spec.topology_spread_constraints, ())
    if any(constraint.topology_key in keys for constraint in constraints):
        return True
    affinity = value_or(workload.spec.affinity, None)
    apart = value_or(affinity.pod_anti_affinity, None) if affinity is not None else None
    if apart is None:
        return False
    terms = [*apart.required, *(weighted.pod_affinity_term for weighted in apart.preferred)]
    return any(term.topology_key in keys for term in terms)


@lint_rule(
    "N01",
    LintSeverity.WARNING,
    "A scheduler that is not known from the objects",
    why="If no scheduler has that name, the pods stay Pending without an Event. If such a scheduler exists, "
    "Trimtab does not know its filters, and does not drain the nodes of its pods.",
    source="Kubernetes: pods with an unknown schedulerName are ignored by every scheduler",
    fix="Name a scheduler of the cluster. If the name is right, add its KubeSchedulerConfiguration to the input, "
    "or list it under `schedulers` of a pool.",
)
def unknown_scheduler(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each workload whose schedulerName is not a stock scheduler and is in no
    KubeSchedulerConfiguration and no pool."""
    schedulers = {*KNOWN_SCHEDULERS, *find_schedulers(config_map.data for config_map in snapshot.config_maps)}
    schedulers |= {name for pool in snapshot.pools for name in pool.schedulers}
    for workload in snapshot.workloads:
        name = workload.spec.scheduler_name
        if name and name not in schedulers:
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} names the scheduler {name}, which none of the objects defines.",
                path=(*workload.template_path, "schedulerName"),
            )


@lint_rule(
    "N07",
    LintSeverity.WARNING,
    "A gang of pods in a cluster with compaction",
    why="The pods of a gang run only together: the eviction of one pod stops all of them, and they start again "
    "only when there is room for all of them at once.",
    source="Kubernetes PodGroup (scheduling.k8s.io, beta in 1.37), Volcano, coscheduling",
    fix='Annotate the pods with trimtab.dev/do-not-disrupt: "true", or run them on nodes outside of the pool.',
)
def gang_in_pool(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each workload whose pods belong to a gang and may be moved, if a pool is compacted."""
    if not any(pool.enabled for pool in snapshot.pools):
        return
    for workload in snapshot.workloads:
        if workload.pod_annotations.get(KEEP_ANNOTATION) == "true" or workload.subject.kind == "DaemonSet":
            continue
        group = group_by_marks(workload.pod_labels, workload.pod_annotations)
        if workload.spec.scheduling_group is not None:
            group = workload.spec.scheduling_group.pod_group_name
        elif workload.spec.workload_ref is not None:
            group = workload.spec.workload_ref.pod_group
        if group:
            path = (*workload.template_path[:-1], "metadata", "annotations", KEEP_ANNOTATION)
            yield rule.report_problem(
                workload.subject,
                f"Pods of {workload.subject} belong to the gang {group}, and Trimtab compacts "
                f"{len(snapshot.pools)} {'pool' if len(snapshot.pools) == 1 else 'pools'} of the cluster.",
                changes=[ManifestChange(workload.subject, path, "true")],
            )


@lint_rule(
    "N09",
    LintSeverity.WARNING,
    "A Service that prefers near pods, whose pods are not in every place",
    why="Clients use the pods of their own zone or node. In a zone or on a node with too few pods, these pods "
    "are overloaded while others are idle, and an HPA sees only the mean.",
    source="Kubernetes Service trafficDistribution (PreferSameZone and PreferSameNode, stable since 1.35)",
    fix="Spread the pods over zones with a topologySpreadConstraint, or remove trafficDistribution.",
)
def near_traffic(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each Service whose trafficDistribution prefers near endpoints while its workload is not
    spread over zones (or, for PreferSameNode, is not a DaemonSet)."""
    for service in snapshot.services:
        distribution = service.spec.traffic_distribution
        if distribution not in _NEAR or not service.spec.selector:
            continue
        namespace = service.metadata.namespace or DEFAULT_NAMESPACE
        for workload in snapshot.workloads:
            if workload.namespace != namespace or not service.spec.selector.items() <= workload.pod_labels.items():
                continue
            if workload.subject.kind == "DaemonSet" or (
                distribution != "PreferSameNode" and is_spread(workload, (ZONE,))
            ):
                continue
            places = "node" if distribution == "PreferSameNode" else "zone"
            hpas = snapshot.hpas_of(workload.subject)
            hpa = f", and HPA {hpas[0].metadata.name} scales by the mean of their usage" if hpas else ""
            subject = subject_of("Service", service.metadata)
            yield rule.report_problem(
                subject,
                f"{subject} prefers pods of the same {places}, but no constraint spreads {workload.subject} over "
                f"{places}s{hpa}.",
                path=("spec", "trafficDistribution"),
            )


@lint_rule(
    "N17",
    LintSeverity.INFO,
    "A Service whose traffic crosses zones without need",
    why="Without trafficDistribution, a client uses the pods of all zones alike. With pods in three zones, two thirds "
    "of the traffic cross a zone, which adds latency, and which the cloud charges in both directions.",
    source="Kubernetes Service trafficDistribution; EC2 on-demand pricing and Google Cloud VPC pricing (0.01 dollars "
    "a GB in each direction)",
    fix="Set trafficDistribution, if clients in all zones use the Service about equally. Then watch whether the pods "
    "of one zone have more load than others.",
)
def far_traffic(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each Service for which near pods would do. All of these hold:

    - the nodes are in several zones of a cloud that charges traffic between them;
    - the Service has a selector and an address, no trafficDistribution, no hints, and does not stay on the node;
    - a constraint spreads its pods over zones, and each zone gets at least `MIN_REPLICAS_PER_ZONE` of them.
    """
    zones = {zone for node in snapshot.nodes if (zone := value_or(node.metadata.labels, {}).get(ZONE))}
    schemes = {node.spec.provider_id.partition(":")[0] for node in snapshot.nodes}
    if len(zones) < 2 or len(schemes) != 1 or not schemes <= PAID_TRAFFIC.keys():
        return
    cloud = PAID_TRAFFIC[schemes.pop()]
    for service in snapshot.services:
        spec, annotations = service.spec, value_or(service.metadata.annotations, {})
        if (
            not spec.selector
            or spec.traffic_distribution
            or spec.internal_traffic_policy == "Local"
            or spec.cluster_ip == "None"
            or spec.type == "ExternalName"
            or any(key in annotations for key in _HINTS)
        ):
            continue
        namespace = service.metadata.namespace or DEFAULT_NAMESPACE
        backends = [
            workload
            for workload in snapshot.workloads_in(namespace)
            if spec.selector.items() <= workload.pod_labels.items()
        ]
        if len(backends) != 1 or not is_spread(backends[0], (ZONE,)):
            continue
        replicas = snapshot.needed_replicas(backends[0]) or 0
        if replicas < MIN_REPLICAS_PER_ZONE * len(zones):
            continue
        subject, path = subject_of("Service", service.metadata), ("spec", "trafficDistribution")
        zone_count = format_count(len(zones), "zone")
        sentence = (
            f"{backends[0].subject} has {snapshot.describe_replicas(backends[0])}, spread over {zone_count}, but "
            f"{subject} uses all of them alike: {cloud} charges what leaves its zone."
        )
        yield rule.report_problem(
            subject,
            sentence,
            path=path,
            # PreferClose is read by every version since 1.31; since 1.34, PreferSameZone is its other name.
            changes=[ManifestChange(subject, path, "PreferClose")],
        )
