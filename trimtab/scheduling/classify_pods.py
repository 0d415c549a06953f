"""Groups pods into classes: the pods of a class are all the same to the scheduler.

Classes are created as pods are read. When all pods have been read, `assign_numbers` numbers the resources, sets of
nodes and topology groups to which they refer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import LabelSelector
from trimtab.cluster.api.pod import NodeSelector, PodAffinityTerm, TopologySpreadConstraint
from trimtab.cluster.claims import Claim, Claimed
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pod import PodInfo, Port, SchedulingRequirements
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resources import Amounts, larger_amounts
from trimtab.cluster.schedulers import SchedulerPlacement
from trimtab.scheduling import node_filters
from trimtab.scheduling.node_filters import selects_copied_labels, shared_exclusive_claims
from trimtab.scheduling.pod_class import PodAffinityRule, PodClass, SpreadRule
from trimtab.scheduling.preferences import PreferenceScores
from trimtab.scheduling.reasons import NO_SUCCESSOR, UNJUDGED, VOLUME_IN_USE
from trimtab.scheduling.run_conditions import (
    ANYWHERE,
    RunConditions,
    RunConditionsReader,
    is_chosen_by_accident,
    unfit_reason,
)
from trimtab.scheduling.topology import (
    Namespaces,
    Term,
    Topology,
    TopologyGroup,
    TopologyGroups,
    apply_match_label_keys,
    as_scheduler_reads,
    resolve_namespaces,
)


@dataclass(slots=True)
class PodClassifier:
    """Creates one `PodClass` for all pods with the same constraints and requests."""

    inventory: Inventory
    classes: list[PodClass] = field(default_factory=list)
    amounts: list[Amounts] = field(default_factory=list)
    """Class number → everything that a pod of the class requests, including the volumes to attach."""
    classes_by_key: dict[object, PodClass] = field(default_factory=dict)
    topology_groups: TopologyGroups = field(init=False)
    node_sets: list[bytearray] = field(default_factory=list)
    unfit_sets: list[bytearray] = field(default_factory=list)
    run_conditions: RunConditionsReader = field(init=False)
    main_resources: tuple[str, str] = ("cpu", "memory")
    other_resources: tuple[str, ...] = ()
    placed_counts: Mapping[int, int] = field(default_factory=dict)
    """Class number → the number of its pods that are on nodes."""
    preferences: PreferenceScores = field(init=False)
    workload_numbers: dict[object, int] = field(default_factory=dict)
    """Owner → its number."""
    shared_claims: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(namespace, claim) → its access mode as text, for claims with an exclusive access mode that several pods
    mount."""

    _has_all_namespaces: bool | None = None

    def __post_init__(self) -> None:
        self.topology_groups = TopologyGroups(Topology(self.inventory.nodes))
        self.preferences = PreferenceScores(self.inventory.nodes, self.topology_groups)
        self.run_conditions = RunConditionsReader(self.inventory)
        self.shared_claims = shared_exclusive_claims(self.inventory)

    def classify_all(self, pods: Iterable[PodInfo]) -> list[PodClass]:
        """Returns the class of each pod, with the requests that it has now."""
        classes: list[PodClass] = []
        counts: Counter[int] = Counter()
        last: SchedulingRequirements | None = None
        pod_class: PodClass
        first, is_mixed = 0, self.run_conditions.is_needed
        for number, pod in enumerate(pods):
            requirements = pod.requirements
            # Pods are sorted by name, so the replicas of a workload follow each other and share one object here.
            if requirements is not last or pod.claims or pod.has_device_claims or is_mixed:
                if classes:
                    counts[classes[-1].number] += number - first
                first = number
                pod_class = self.classify(pod)
                last = None if pod.claims or pod.has_device_claims else requirements
            classes.append(pod_class)
        if classes:
            counts[classes[-1].number] += len(classes) - first
        self.placed_counts = counts
        return classes

    def classify(self, pod: PodInfo, readmitted_requests: Amounts | Unreadable | None = None) -> PodClass:
        """Returns the class of this pod. For the first pod of a class, the class is created.

        `readmitted_requests`: the requests of the pod's successor, if they differ from the pod's own; Unreadable if
        they cannot be determined.
        """
        ask, claims = pod.requirements, pod.claims
        if isinstance(readmitted_requests, Unreadable):
            return self._classify_unknown(pod, readmitted_requests)
        # A DaemonSet creates its pods wherever the scheduler's filters allow it, whether they can run there or not.
        if not self.run_conditions.is_needed or pod.is_daemon:
            conditions = ANYWHERE
        else:
            drivers = [claim.driver for claim in self.inventory.known_claims_of((pod,)) if claim.driver]
            conditions = self.run_conditions.conditions_of(pod, drivers)
        if not claims and readmitted_requests is None and not pod.has_device_claims:
            key: object = id(ask) if conditions is ANYWHERE else (id(ask), id(conditions))
            pod_class = self.classes_by_key.get(key)
            return pod_class if pod_class is not None else self._create(key, pod, {}, (), conditions)
        volumes = self.inventory.claims_of(pod)
        devices = self._devices(pod)
        device_key = devices if isinstance(devices, str) else tuple(sorted(devices.items()))
        amounts_key = tuple(sorted((readmitted_requests or {}).items()))
        key = (id(ask), id(conditions), amounts_key, tuple(map(id, volumes)), device_key, claims)
        pod_class = self.classes_by_key.get(key)
        if pod_class is not None:
            return pod_class
        return self._create(key, pod, readmitted_requests or {}, volumes, conditions)

    def _classify_unknown(self, pod: PodInfo, reason: Unreadable) -> PodClass:
        """Returns a class with the pod's own requests that fits on no node, because the requests of the pod's successor
        are unknown."""
        pod_class = self.classes_by_key.get((id(pod.requirements), reason))
        if pod_class is None:
            pod_class = self._create((id(pod.requirements), reason), pod, {}, self.inventory.claims_of(pod))
            pod_class.unjudged_reason = NO_SUCCESSOR(str(reason))
        return pod_class

    def _create(
        self,
        key: object,
        pod: PodInfo,
        readmitted_requests: Amounts,
        claims: Sequence[Claim | None],
        conditions: RunConditions = ANYWHERE,
    ) -> PodClass:
        bound = [claim for claim in claims if claim is not None] if claims else ()
        owner = pod.owner
        workload = owner if owner is not None else id(pod.requirements)
        pod_class = PodClass(
            number=len(self.classes),
            ask=pod.requirements,
            volumes=tuple([c.nodes for c in bound if c.nodes is not None]) if bound else (),
            unjudged_reason=self._unknown_reason(pod, claims),
            workload=self.workload_numbers.setdefault(workload, len(self.workload_numbers)),
            conditions=conditions,
        )
        requests = {} if isinstance(pod.requirements.requests, Unreadable) else pod.requirements.requests
        if readmitted_requests:
            requests = larger_amounts(requests, readmitted_requests)
        amounts = dict(requests)
        if "pods" in amounts or min(amounts.values(), default=1) <= 0:
            amounts = {name: amount for name, amount in amounts.items() if amount > 0 and name != "pods"}
        devices = self._devices(pod)
        amounts |= {} if isinstance(devices, str) else devices
        # Volumes to attach are counted like a resource: CSINode limits them per driver (nodevolumelimits).
        for claim in bound:
            if claim.driver:
                volume = f"volumes:{claim.driver}"
                amounts[volume] = amounts.get(volume, 0) + 1
        self.amounts.append(amounts)
        self.classes.append(pod_class)
        self.classes_by_key[key] = pod_class
        return pod_class

    def _devices(self, pod: PodInfo) -> Claimed:
        """Returns the devices that the pod's resource claims hold, or a text that says why they cannot be
        determined."""
        return self.inventory.devices.held_by_claims(pod.namespace, pod.device_claims) if pod.has_device_claims else {}

    def _unknown_reason(self, pod: PodInfo, claims: Sequence[Claim | None]) -> Reason | None:
        if (
            self.inventory.schedulers.get(pod.requirements.scheduler, SchedulerPlacement.UNKNOWN)
            is SchedulerPlacement.UNKNOWN
        ):
            return UNJUDGED(
                f"Trimtab does not know how the scheduler {pod.requirements.scheduler} of pod {pod.key} places "
                "pods; if it filters nodes as kube-scheduler does, list it under `schedulers` in the pool's "
                "settings"
            )
        if pod.has_device_claims and isinstance(devices := self._devices(pod), str):
            return UNJUDGED(f"pod {pod.key} has resource claims that only the scheduler can allocate: {devices}")
        if isinstance(pod.requirements.requests, Unreadable):
            return UNJUDGED(str(pod.requirements.requests))
        if selects_copied_labels(pod.requirements):
            return UNJUDGED(
                f"a term of pod {pod.key} selects pods by the zone or region label that the API server adds at binding"
            )
        for name, claim in zip(pod.claims, claims, strict=True) if claims else ():
            if claim is None or not (claim.volume or claim.is_made_for_pod):
                return UNJUDGED(f"claim {name} of pod {pod.key}, or its volume, is not in the snapshot")
            if (mode := self.shared_claims.get((pod.namespace, name))) is not None:
                return VOLUME_IN_USE(f"another pod also uses claim {name} ({mode}) of pod {pod.key}")
        return None

    def assign_numbers(self, movable: Sequence[PodClass]) -> None:
        """Numbers everything to which the classes refer. Only the `movable` classes, whose pods may need another node,
        get a set of nodes."""
        self._number_resources()
        self._number_node_sets(movable)
        for pod_class in self.classes:
            # Whether the requirements refer to other pods, host ports or preferred nodes.
            if bool(
                pod_class.ask.hard_spreads
                or pod_class.ask.required_affinity
                or pod_class.ask.required_anti_affinity
                or pod_class.ask.host_ports
                or pod_class.ask.preferred_nodes
                or pod_class.ask.preferred_affinity
                or pod_class.ask.soft_spreads
            ):
                self._add_own_groups(pod_class)
        for pod_class in self.classes:
            own, matching = (
                pod_class.member_groups,
                self.topology_groups.groups_matching(pod_class.ask.namespace, pod_class.ask.labels),
            )
            pod_class.member_groups = tuple(sorted({*own, *matching})) if own else matching
        # After all classes are in their groups: who carries an anti-affinity term or a port is known only then.
        self._add_groups_of_others()
        self.preferences.add_preferences_of_others(self.classes)
        for pod_class in self.classes:
            pod_class.has_constraints = bool(pod_class.forbidden_groups or pod_class.spreads or pod_class.affinity)

    # ── resources ────────────────────────────────────────────────────────
    def _number_resources(self) -> None:
        allocatable = {"cpu": 1, "memory": 1}
        by_name = {name: [amounts.get(name, 0) for amounts in self.amounts] for name in allocatable}
        requested = {
            name: sum([amounts[number] * count for number, count in self.placed_counts.items()])
            for name, amounts in by_name.items()
        }
        for node in self.inventory.machines:
            for name in allocatable:
                allocatable[name] += 0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get(name, 0)
        # The ratios are compared by cross multiplication: integers stay exact, and a cluster without memory does not
        # divide by zero.
        scarce_cpu = requested["cpu"] * allocatable["memory"] >= requested["memory"] * allocatable["cpu"]
        self.main_resources = ("cpu", "memory") if scarce_cpu else ("memory", "cpu")
        self.other_resources = tuple(sorted(set[str]().union(*self.amounts) - {"cpu", "memory"}))
        numbers = {name: number for number, name in enumerate(self.other_resources)}
        columns = (by_name[name] for name in self.main_resources)
        for pod_class, amounts, major, minor in zip(self.classes, self.amounts, *columns, strict=True):
            pod_class.major, pod_class.minor, pod_class.sort_key = major, minor, -(major << 64 | minor)
            if not numbers.keys().isdisjoint(amounts):
                rest = [(numbers[name], amount) for name, amount in amounts.items() if name in numbers]
                pod_class.other_requests = tuple(sorted(rest))

    # ── sets of nodes ────────────────────────────────────────────────────
    def _number_node_sets(self, movable: Sequence[PodClass]) -> None:
        """Sets `node_set` of each class. Nodes that agree in every label and taint to which a pod refers are checked
        once."""
        node_keys = [
            _node_constraints_key(pod_class.ask, pod_class.volumes, pod_class.conditions) for pod_class in movable
        ]
        constrained = {
            node_key: pod_class for pod_class, node_key in zip(movable, node_keys, strict=True) if node_key
        }.values()
        keys = sorted(
            {key for pod_class in constrained for key in node_filters.label_keys_read(pod_class.ask, pod_class.volumes)}
        )
        nodes_by_attributes: dict[object, list[int]] = {}
        for number, node in enumerate(self.inventory.nodes):
            values = tuple(node.name if key == "" else node.labels.get(key) for key in keys)
            run_key = self.run_conditions.node_key(node) if self.run_conditions.is_needed else None
            nodes_by_attributes.setdefault((values, node.taints, run_key), []).append(number)
        set_numbers: dict[object, tuple[int, int]] = {}
        numbers_by_set: dict[bytes, int] = {}
        unfit_numbers: dict[bytes, int] = {}
        for pod_class, node_key in zip(movable, node_keys, strict=True):
            if node_key not in set_numbers:
                admitted, unfit = self._admitting_nodes(pod_class, nodes_by_attributes.values())
                node_set = numbers_by_set.setdefault(bytes(admitted), len(numbers_by_set))
                if node_set == len(self.node_sets):
                    self.node_sets.append(admitted)
                unfit_set = unfit_numbers.setdefault(bytes(unfit), len(unfit_numbers)) if any(unfit) else -1
                if unfit_set == len(self.unfit_sets):
                    self.unfit_sets.append(unfit)
                set_numbers[node_key] = node_set, unfit_set
            pod_class.node_set, pod_class.unfit_set = set_numbers[node_key]

    def _admitting_nodes(self, pod_class: PodClass, alike_nodes: Iterable[list[int]]) -> tuple[bytearray, bytearray]:
        """Returns the nodes that kube-scheduler admits and on which the pods run, and those that it admits although the
        pods do not run there."""
        admitted, unfit = bytearray(len(self.inventory.nodes)), bytearray(len(self.inventory.nodes))
        for numbers in alike_nodes:
            node = self.inventory.nodes[numbers[0]]
            if node_filters.node_rejection_reason(pod_class.ask, pod_class.volumes, node) is None:
                fits = unfit_reason(pod_class.conditions, node) is None
                is_accident = not fits and is_chosen_by_accident(pod_class.conditions, node)
                for number in numbers:
                    admitted[number], unfit[number] = fits, is_accident
        return admitted, unfit

    # ── groups ───────────────────────────────────────────────────────────
    def _add_own_groups(self, pod_class: PodClass) -> None:
        ask = pod_class.ask
        if ask.hard_spreads:
            pod_class.spreads = tuple(self._spread_rule(pod_class, constraint) for constraint in ask.hard_spreads)
        if ask.required_affinity:
            pod_class.affinity = self._affinity_rule(pod_class)
        carried = [
            self.topology_groups.group_carrying(number, term.topology_key)
            for number, term in self._anti_affinity_groups(pod_class)
        ]
        carried += [self.topology_groups.group_carrying(port, "") for port in ask.host_ports]
        pod_class.member_groups = (
            *(group.number for group in carried),
            *self.preferences.set_own_preferences(pod_class, self._preferred_term),
        )

    def _required_term(self, pod_class: PodClass, term: PodAffinityTerm) -> Term | None:
        """Returns the pods that a required term selects. None if that cannot be determined: the class then gets a
        reason, and fits on no node."""
        namespaces = self._namespaces(pod_class, term)
        if isinstance(namespaces, str):
            pod_class.unjudged_reason = pod_class.unjudged_reason or UNJUDGED(namespaces)
            return None
        return namespaces, self._selector(pod_class, term)

    def _preferred_term(self, pod_class: PodClass, term: PodAffinityTerm) -> Term | None:
        """Returns the pods that a preferred term selects, or None if that cannot be determined. The class can be placed
        in either case."""
        namespaces = self._namespaces(pod_class, term)
        return None if isinstance(namespaces, str) else (namespaces, self._selector(pod_class, term))

    def _namespaces(self, pod_class: PodClass, term: PodAffinityTerm) -> Namespaces | str:
        # Whether the snapshot has the namespaces of all its pods. If not, a namespace selector may match a namespace
        # whose labels are not known.
        if self._has_all_namespaces is None:
            self._has_all_namespaces = {
                pod.namespace for pod in self.inventory.pods
            } <= self.inventory.namespaces.keys()
        labels_by_namespace = self.inventory.namespaces if self._has_all_namespaces else {}
        return resolve_namespaces(
            pod_class.ask.namespace, term.namespaces, term.namespace_selector, labels_by_namespace
        )

    def _selector(self, pod_class: PodClass, term: PodAffinityTerm) -> LabelSelector:
        return apply_match_label_keys(
            term.label_selector, pod_class.ask.labels, term.match_label_keys, term.mismatch_label_keys
        )

    def _anti_affinity_groups(self, pod_class: PodClass) -> Iterable[tuple[object, PodAffinityTerm]]:
        for term in pod_class.ask.required_anti_affinity:
            # Where the namespaces are unknown, the term may select pods of every namespace.
            selected = self._required_term(pod_class, term) or (None, self._selector(pod_class, term))
            carried = self.topology_groups.group_selecting((selected,), term.topology_key, lasting=True)
            avoided = self.topology_groups.group_selecting(
                (as_scheduler_reads(selected, term),), term.topology_key, lasting=True
            )
            pod_class.forbidden_groups = (*pod_class.forbidden_groups, avoided)
            yield carried.number, term

    def _affinity_rule(self, pod_class: PodClass) -> PodAffinityRule:
        readable = [self._required_term(pod_class, term) for term in pod_class.ask.required_affinity]
        terms = tuple(term for term in readable if term is not None)
        groups = tuple(
            self.topology_groups.group_selecting(terms, term.topology_key, lasting=False)
            for term in pod_class.ask.required_affinity
        )
        if not groups[0].matches_pod(pod_class.ask.namespace, pod_class.ask.labels):
            return PodAffinityRule(groups=groups, matches_itself=False, existing_groups=())
        wide = tuple(
            as_scheduler_reads(t, term)
            for t, term in zip(readable, pod_class.ask.required_affinity, strict=True)
            if t is not None
        )
        others = tuple(
            self.topology_groups.group_selecting(wide, term.topology_key, lasting=True)
            for term in pod_class.ask.required_affinity
        )
        return PodAffinityRule(groups=groups, matches_itself=True, existing_groups=others)

    def _spread_rule(self, pod_class: PodClass, constraint: TopologySpreadConstraint) -> SpreadRule:
        ask = pod_class.ask
        selector = apply_match_label_keys(constraint.label_selector, ask.labels, constraint.match_label_keys)
        honours = constraint.node_taints_policy == "Honor"
        # With nodeTaintsPolicy Honor, a cordoned node is no domain, unless the pod tolerates the taint that a cordon
        # adds.
        leaves = honours and not node_filters.tolerates_cordon(ask)
        group = self.topology_groups.group_selecting(
            ((frozenset((ask.namespace,)), selector),),
            constraint.topology_key,
            lasting=False,
            eligible=self._eligible_nodes(ask, constraint, honours),
            per_node=leaves,
        )
        return SpreadRule(
            group=group,
            max_skew=constraint.max_skew,
            self_count=int(group.matches_pod(ask.namespace, ask.labels)),
            domain_count=group.domain_count,
            min_domains=constraint.min_domains if isinstance(constraint.min_domains, int) else 1,
        )

    def _eligible_nodes(
        self, requirements: SchedulingRequirements, constraint: TopologySpreadConstraint, honours: bool
    ) -> bytearray | None:
        """Returns the nodes whose pods and domains count for a spread constraint, or None if all do (podtopologyspread
        `matchNodeInclusionPolicies`)."""
        affinity = constraint.node_affinity_policy != "Ignore" and (
            requirements.node_selector or requirements.node_affinity is not None
        )
        keys = {c.topology_key for c in requirements.hard_spreads}
        if not affinity and not honours and len(keys) == 1:
            return None
        # kube-scheduler adds the taint in its own cache when a node is unschedulable, before the node controller writes
        # it.
        eligible = bytearray(len(self.inventory.nodes))
        for number, node in enumerate(self.inventory.nodes):
            taints = (*node.taints, node_filters.UNSCHEDULABLE_TAINT) if node.is_cordoned else node.taints
            eligible[number] = (
                all(key in node.labels for key in keys)
                and (not affinity or node_filters.matches_node_selector(requirements, node))
                and (not honours or node_filters.first_untolerated_taint(requirements.tolerations, taints) is None)
            )
        return eligible

    def _add_groups_of_others(self) -> None:
        """Adds to each class the groups of pods that its pods must not join in a domain, because of the anti-affinity
        terms and host ports of those pods."""
        carried = {
            key[1]: g
            for key, g in self.topology_groups._groups.items()
            if isinstance(key, tuple) and key[0] == "carried"
        }
        against: dict[int, list[TopologyGroup]] = {}
        ports: dict[tuple[str, int], list[tuple[Port, TopologyGroup]]] = {}
        for property_key, group in carried.items():
            if isinstance(property_key, int):
                against.setdefault(property_key, []).append(group)
            elif isinstance(property_key, tuple) and property_key[0] != "preference":
                ports.setdefault((property_key[0], property_key[2]), []).append((property_key, group))
        for pod_class in self.classes:
            if not (pod_class.member_groups or pod_class.forbidden_groups or pod_class.ask.host_ports):
                continue
            theirs = [group for number in pod_class.member_groups for group in against.get(number, ())]
            same_port = [
                group
                for port in pod_class.ask.host_ports
                for other, group in ports.get((port[0], port[2]), ())
                # As HostPortInfo.CheckConflict in kube-scheduler: the address 0.0.0.0 conflicts with every address of
                # the port.
                if port[1] == other[1] or "0.0.0.0" in (port[1], other[1])  # noqa: S104  every address
            ]
            pod_class.forbidden_groups = tuple(
                {g.number: g for g in (*pod_class.forbidden_groups, *theirs, *same_port)}.values()
            )


def _node_constraints_key(
    requirements: SchedulingRequirements, volumes: Sequence[NodeSelector], conditions: RunConditions
) -> object:
    if (
        not (requirements.node_selector or requirements.tolerations or volumes)
        and requirements.node_affinity is None
        and conditions is ANYWHERE
    ):
        return ()
    wanted = tuple(sorted(requirements.node_selector.items())) if requirements.node_selector else ()
    return wanted, requirements.node_affinity, requirements.tolerations, tuple(volumes), id(conditions)
