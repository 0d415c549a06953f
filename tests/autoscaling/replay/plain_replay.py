"""A replay that counts everything again whenever it is asked, to compare with a replay that counts what has changed."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from trimtab.autoscaling.replay.replay_cluster import ReplayCluster, with_counts
from trimtab.autoscaling.replay.replay_scheduler import ReplayScheduler
from trimtab.cluster.cluster_state import Inventory, ReplicaCounts
from trimtab.cluster.kinds import JOB
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pdb import PdbIndex
from trimtab.cluster.pod import PodInfo
from trimtab.scheduling.filters import fits_on_node


class PlainScheduler(ReplayScheduler):
    """Builds a model for each change of a node, and tries all nodes for each pod."""

    def replace_node(self, before: NodeInfo | None, node: NodeInfo) -> None:
        self.is_outdated = True

    def choose_node(self, pod: PodInfo) -> str:
        capacity, pod_class = self.capacity, self.class_of(pod)
        fitting = [n for n in range(len(capacity.world.nodes)) if fits_on_node(capacity, pod_class, n)]
        if not fitting:
            return ""
        best = min(fitting, key=lambda number: self._plain_rank(pod, number))
        capacity.add_pod(pod_class, best)
        return capacity.world.nodes[best].name

    def _plain_rank(self, pod: PodInfo, number: int) -> tuple[int, int]:
        capacity, pod_class = self.capacity, self.class_of(pod)
        model, node = capacity.world, capacity.world.nodes[number]
        first, second = (max(1, model.allocatable_amount(number, name)) for name in model.main_resources)
        free = (capacity.major[number] - pod_class.major) * 1000 // first
        free += (capacity.minor[number] - pod_class.minor) * 1000 // second
        return sum(taint.effect == "PreferNoSchedule" for taint in node.taints), -free


class PlainCluster(ReplayCluster):
    """Counts the pods of all workloads, and sorts all pods, for each view."""

    @property
    def budget_index(self) -> PdbIndex:
        expected, ready = Counter[str](), Counter[str]()
        for workload in self.workloads.values():
            for key in self._budgets_of.get(workload.name, ()):
                expected[key] += workload.wanted
                ready[key] += sum(self.pods[uid].is_ready for uid in workload.pods)
        for _, slot, excess in self._list_rollouts():
            for key in self._budgets_of.get(slot, ()):
                expected[key] -= excess
        return PdbIndex.from_pdbs(
            with_counts(self._rules[key], expected=expected[key], ready=ready[key]) for key in sorted(self._rules)
        )

    def _list_rollouts(self) -> Iterator[tuple[OwnerKey, str, int]]:
        """Yields the Deployments of which a rollout is in progress: (Deployment, one of its slots, how many pods the
        slots want beyond what the Deployment does). The disruption controller counts what the Deployment wants."""
        slots: dict[OwnerKey, list[str]] = defaultdict(list)
        for slot, workload in self.workloads.items():
            deployment = self._deployment_of(slot) if workload.wanted else None
            if deployment is not None and deployment in self._counts:
                slots[deployment].append(slot)
        for deployment, own in slots.items():
            excess = sum(self.workloads[slot].wanted for slot in own) - self._counts[deployment]
            if len(own) > 1 and excess > 0:
                yield deployment, own[0], excess

    def _allows_eviction(self, pod: PodInfo, workload: str) -> bool:
        keys = self._budgets_of.get(workload, ())
        return len(keys) <= 1 and all(
            budget.allows_eviction(pod_is_ready=pod.is_ready) for budget in self.budgets if budget.key in keys
        )

    def read_inventory(self) -> Inventory:
        return replace(
            self.base,
            nodes=tuple(self.nodes[name] for name in sorted(self.nodes)),
            pods=tuple(self.pods[uid] for uid in sorted(self.pods)),
            pdbs=self.budgets,
            owners={**self.base.owners, **self._count_owners()},
        )

    def _count_owners(self) -> dict[OwnerKey, ReplicaCounts]:
        owners: dict[OwnerKey, ReplicaCounts] = {}
        for slot, workload in self.workloads.items():
            owner = self.stretch.samples[slot].owner
            for key in (owner, self.recorded_top_owners.get(owner)) if owner is not None else ():
                if key is not None:
                    before = owners.get(key, ReplicaCounts(wanted=0, have=0, ready=0))
                    owners[key] = ReplicaCounts(
                        wanted=None if key.kind == JOB else (before.wanted or 0) + workload.wanted,
                        have=before.have + len(workload.pods),
                        ready=before.ready + sum(self.pods[uid].is_ready for uid in workload.pods),
                    )
        for deployment, _, excess in self._list_rollouts():
            owners[deployment] = replace(owners[deployment], wanted=(owners[deployment].wanted or 0) - excess)
        return owners
