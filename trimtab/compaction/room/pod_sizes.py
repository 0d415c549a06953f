"""How large pods are, by the resource of which they need the largest share of all nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.scheduling.cluster_model import ClusterModel
from trimtab.scheduling.pod_class import PodClass

_BILLION = 10**9


@dataclass(frozen=True, slots=True)
class PodSizes:
    """The amounts of all nodes together, to which the requests of pods are compared."""

    main: tuple[int, int]
    """The allocatable amounts of the major and of the minor resource."""
    others: Sequence[int]
    """The same for each other resource; 0 for volumes, of which nodes have no amounts."""

    @classmethod
    def for_model(cls, model: ClusterModel) -> "PodSizes":
        """Returns the sizes in the cluster as it is."""
        nodes = range(len(model.nodes))
        names = (*model.main_resources, *model.other_resources)
        major, minor, *others = (sum(model.allocatable_amount(node, name) for node in nodes) for name in names)
        return cls((major, minor), others)

    def rank(self, pod_class: PodClass) -> tuple[int, int]:
        """Returns a key that sorts pods by size, the largest first: by the largest share of any resource, then by main
        resources."""
        return -self._find_largest(pod_class)[0], pod_class.sort_key

    def find_scarcest(self, pod_class: PodClass) -> int | None:
        """Returns the number of the resource of which the pods need the largest share; None for a main resource."""
        number = self._find_largest(pod_class)[1] if pod_class.other_requests else -1
        return number if number >= 0 else None

    def _find_largest(self, pod_class: PodClass) -> tuple[int, int]:
        """Returns (share in billionths, number of the resource or -1 for a main one)."""
        pairs = zip((pod_class.major, pod_class.minor), self.main, strict=True)
        shares = [(amount * _BILLION // max(1, total), -1) for amount, total in pairs]
        shares += [
            (amount * _BILLION // self.others[number], number)
            for number, amount in pod_class.other_requests
            if self.others[number]
        ]
        return max(shares)
