"""Laws of an outcome as a whole: a pod that comes out with us runs where it would have run without.

The judges here are written from Kubernetes' own rules, and use nothing of what they judge: sums aside, which have laws
of their own.
"""

from hypothesis import HealthCheck, assume, given, settings

from tests.build import NAMESPACE, admission_context
from tests.property import strategies as some
from tests.property.drawn_outcomes import crowded_worlds
from tests.property.drawn_policies import strict_spreads
from trimtab.admission.apiserver.outcome import PodAdmitted
from trimtab.admission.preview import preview_admission
from trimtab.admission.reasons import NODE_UNKNOWN
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Toleration
from trimtab.cluster.resource_quotas import quota_covers
from trimtab.cluster.resources import limits_of, pod_limits, pod_requests, scheduler_amounts
from trimtab.policy.actions.placement import CompiledPlacement, missing_part

CROWDED = crowded_worlds()
POLICIES = some.policies(modes=("apply",))
OF_STORED = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
"""Most pods are refused by these tight worlds, with us or without: others are drawn in their place."""


def shown(manifest, by, world):
    return preview_admission(some.read(manifest), NAMESPACE, admission_context(by, world))


def codes(result):
    return {left.reason.code for call in result.calls for left in call.decision.fields_kept}


@given(some.manifests(), POLICIES, CROWDED)
def test_only_what_a_policy_denies_is_refused_for_our_sake(manifest, by, drawn):
    outcome = shown(manifest, by, drawn[0])
    if isinstance(outcome.unaided, PodAdmitted) and not isinstance(outcome.result, PodAdmitted):
        assert outcome.result.plugin == "trimtab"


HOSTNAME = "kubernetes.io/hostname"
EVERYTHING = Toleration(operator="Exists")


# A node -------------------------------------------------------------------------------------------------------------


def holds(requirement, labels):
    value, operator, values = labels.get(requirement.key), requirement.operator, requirement.values
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise AssertionError(operator)


def takes(machine, spec):
    """Node selector, required node affinity and taints, as kube-scheduler filters by them."""
    labels = machine.metadata.labels
    if any(labels.get(key) != value for key, value in value_or(spec.node_selector, {}).items()):
        return False
    affinity = value_or(spec.affinity, None)
    node = value_or(affinity.node_affinity, None) if affinity else None
    required = value_or(node.required, None) if node else None
    if required is not None:
        fields = {"metadata.name": machine.metadata.name}
        for term in required.node_selector_terms:
            expressions, of_fields = value_or(term.match_expressions, ()), value_or(term.match_fields, ())
            if not expressions and not of_fields:
                continue
            if all(holds(e, labels) for e in expressions) and all(holds(e, fields) for e in of_fields):
                break
        else:
            return False
    return all(
        any(tolerates(toleration, taint) for toleration in value_or(spec.tolerations, ()))
        for taint in machine.spec.taints
        if taint.effect != "PreferNoSchedule"
    )


def tolerates(toleration, taint):
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.key != "" and toleration.value == taint.value)


def strict(pod):
    result = value_or(pod.spec.topology_spread_constraints, ())
    return [constraint for constraint in result if constraint.when_unsatisfiable == "DoNotSchedule"]


def rooms(pod, machines, daemon):
    """The nodes that the pod may use and that hold it."""
    amounts = {name: amount for name, amount in pod_requests(pod.spec).items() if amount > 0}
    actual_machines = []
    for machine in machines:
        room = scheduler_amounts(machine.status.allocatable)
        if daemon and not any(taint.effect != "PreferNoSchedule" for taint in machine.spec.taints):
            room["cpu"] -= quantity.scheduler_value("cpu", daemon)
        fits = all(amount <= room.get(name, 0) for name, amount in amounts.items())
        if fits and takes(machine, pod.spec) and all(c.topology_key in machine.metadata.labels for c in strict(pod)):
            actual_machines.append(machine)
    return actual_machines


def has_node(pod, machines, daemon, replicas=1):
    """Is there one for each of so many, on nodes that hold as many as one likes? Each goes where the fewest are."""
    actual_rooms, constraints = rooms(pod, machines, daemon), strict(pod)
    untainted = change(pod.spec, tolerations=(EVERYTHING,))
    for constraint in constraints:
        key = constraint.topology_key
        counted = [
            machine.metadata.labels
            for machine in machines
            if takes(machine, untainted) and all(c.topology_key in machine.metadata.labels for c in constraints)
        ]
        pods = dict.fromkeys((labels[key] for labels in counted), 0)
        reachable = {machine.metadata.labels[key] for machine in actual_rooms}
        for _ in range(replicas if reachable and key != HOSTNAME else 0):
            least = 0 if len(pods) < value_or(constraint.min_domains, 1) else min(pods.values())
            domain = min(reachable, key=lambda domain: pods[domain])
            if pods[domain] + 1 - least > constraint.max_skew:
                return False
            pods[domain] += 1
    return bool(actual_rooms)


@OF_STORED
@given(some.manifests(), POLICIES, CROWDED)
def test_a_pod_that_had_a_node_still_has_one(manifest, by, drawn):
    still_has_a_node(manifest, by, drawn)


@OF_STORED
@given(some.manifests(), strict_spreads(), CROWDED)
def test_spread_without_exception_leaves_every_pod_its_node(manifest, by, drawn):
    still_has_a_node(manifest, by, drawn)


def still_has_a_node(manifest, by, drawn):
    world, machines, _, _, daemon, growing = drawn
    outcome = shown(manifest, by, world)
    assume(isinstance(outcome.unaided, PodAdmitted) and isinstance(outcome.result, PodAdmitted))
    before, after = outcome.unaided.pod, outcome.result.pod
    is_daemon = any(owner.kind_name == "DaemonSet" for owner in before.metadata.owner_references)
    daemon = "" if is_daemon else daemon
    opened = [machine for machine in machines if not machine.spec.unschedulable]
    of_web = [owner.kind_name for owner in before.metadata.owner_references] == ["ReplicaSet"]
    expected = world.replicas[NAMESPACE, "Deployment", "web"].wanted if of_web else 1
    was, now = (has_node(pod, opened, daemon, expected) for pod in (before, after))
    if before.spec.node_name or not was or now:
        return
    actual_machines = [machine for machine in machines if machine.spec.provider_id]
    cordoned = [machine for machine in actual_machines if machine.spec.unschedulable]
    may_come = bool(actual_machines) if growing is None else growing > 0
    assert may_come or has_node(after, cordoned, daemon)
    assert NODE_UNKNOWN in codes(outcome)


# The quota ----------------------------------------------------------------------------------------------------------


def counted(spec, name):
    side, _, resource = name.partition(".")
    if name == "pods":
        return quantity.NANO_PER_UNIT
    of = pod_limits(spec) if side == "limits" else pod_requests(spec)
    return of.get(resource, 0) * (10**6 if resource == "cpu" else quantity.NANO_PER_UNIT)


def fits(pod, world, replicas):
    """Do so many of it fit every quota that covers it?"""
    return all(
        quantity.parse(quota.status.used.get(name, 0)) + replicas * counted(pod.spec, name) <= quantity.parse(hard)
        for quota in world.quotas.get(NAMESPACE, ())
        if quota_covers(quota, pod)
        for name, hard in quota.spec.hard.items()
    )


@OF_STORED
@given(some.manifests(), POLICIES, CROWDED)
def test_an_owner_whose_replicas_fitted_the_quota_still_fits(manifest, by, drawn):
    world, _, replicas, *_ = drawn
    outcome = shown(manifest, by, world)
    assume(isinstance(outcome.unaided, PodAdmitted) and isinstance(outcome.result, PodAdmitted))
    before, after = outcome.unaided.pod, outcome.result.pod
    owners = [owner.kind_name for owner in before.metadata.owner_references]
    count = replicas if owners == ["ReplicaSet"] else 1
    if fits(before, world, count):
        assert fits(after, world, count)


# Limits and placement ------------------------------------------------------------------------------------------------


@OF_STORED
@given(some.manifests(), POLICIES, CROWDED)
def test_no_memory_limit_of_ours_is_below_a_known_peak(manifest, by, drawn):
    world, _, _, peaks, *_ = drawn
    outcome = shown(manifest, by, world)
    assume(isinstance(outcome.unaided, PodAdmitted) and isinstance(outcome.result, PodAdmitted))
    if [owner.kind_name for owner in outcome.unaided.pod.metadata.owner_references] != ["ReplicaSet"]:
        return
    for was, now in zip(outcome.unaided.pod.spec.containers, outcome.result.pod.spec.containers, strict=True):
        before, after = limits_of(was.resources).get("memory"), limits_of(now.resources).get("memory")
        if after is not None and was.name in peaks and (before is None or not quantity.is_same_quantity(before, after)):
            assert quantity.compare_quantities(after, peaks[was.name]) > 0


PLACES = ("nodeSelector[", "nodeAffinity.", "tolerations[")


@given(some.manifests(), POLICIES, CROWDED)
def test_no_placement_is_half_applied(manifest, by, drawn):
    outcome = shown(manifest, by, drawn[0])
    for call in outcome.calls:
        placing = {change.policy for change in call.decision.changes if change.field.startswith(PLACES)}
        for policy in by.all:
            settings = policy.spec.actions.placement
            if policy.name in placing and settings is not None:
                assert missing_part(CompiledPlacement(settings), call.decision.pod.spec) is None
