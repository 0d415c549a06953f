"""Can this one node go? The answer for single nodes of one state of a cluster, from the planner's own parts.

Pods are placed by their placement requests, as a search for a plan places them. Where the order of the moves matters,
they are placed one after the other, as kube-scheduler would place them.
"""

from collections.abc import Sequence

from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.drain_simulation import DrainPlacement, NoPlacement, drain_exactly
from trimtab.scheduling.placement import BestFitIndex, PlacementRequest, PlacementRequests


class DrainSimulation:
    """Simulates drains on one cluster model. Every node that receives pods counts as open."""

    def __init__(self, model: ClusterModel, capacity: FreeCapacity | None = None) -> None:
        self.model = model
        self.capacity = FreeCapacity(model) if capacity is None else capacity
        requests = PlacementRequests(self.capacity)
        self.requests: list[PlacementRequest | None] = [
            None
            if pod.is_daemon or pod.is_static
            else requests.request_for(model.successor_class_of[number], model.node_of[number])
            for number, pod in enumerate(model.pods)
        ]
        self.index = BestFitIndex(requests)
        for node in range(len(model.nodes)):
            if not self.capacity.closed_nodes[node]:
                self.index.open_node(node)

    def can_drain(self, node: int, pods: Sequence[int]) -> bool:
        """Returns whether this node can be drained. It is faster than `place_pods`, because it does not determine a
        reason."""
        if all(self.requests[pod] is not None for pod in pods):
            placement = self._place_by_requests(node, pods)
            if isinstance(placement, DrainPlacement):
                return True
            if self._fits_nowhere(node, placement):
                return False
        return any(self._depends_on_order(pod) for pod in pods) and isinstance(
            drain_exactly(self.capacity, node, pods), DrainPlacement
        )

    def _fits_nowhere(self, node: int, pod: int) -> bool:
        """Returns whether the pod fits on no node even if it alone moved, in whatever order."""
        request = self.requests[pod]
        if request is None or request.is_bound:
            return False
        was_open = self.index.open_nodes[node]
        if was_open:
            self.index.close_node(node)
        place = self.index.find_best_fit(request)
        if was_open:
            self.index.open_node(node)
        return place < 0

    def _depends_on_order(self, pod: int) -> bool:
        """Returns whether the pod may fit on a node that its placement request does not allow, if the pods of its node
        are placed one after the other."""
        request = self.requests[pod]
        return request is None or request.is_bound

    def place_pods(self, node: int, pods: Sequence[int]) -> DrainPlacement | NoPlacement:
        """Returns a target node for each of these pods, or the first pod that fits on no node. The state is not
        changed."""
        if all(self.requests[pod] is not None for pod in pods):
            placement = self._place_by_requests(node, pods)
            if isinstance(placement, DrainPlacement):
                return placement
        return drain_exactly(self.capacity, node, pods)

    def _place_by_requests(self, node: int, pods: Sequence[int]) -> DrainPlacement | int:
        """Returns nodes for the pods by their placement requests, or the number of the pod that fits on no node after
        the larger ones were placed."""
        was_open, placements, unplaced = self.index.open_nodes[node], [], -1
        if was_open:
            self.index.close_node(node)
        # Largest first (best fit decreasing): a large pod has the fewest nodes on which it fits.
        for pod in sorted(pods, key=self._size_order):
            request = self.requests[pod]
            place = self.index.find_best_fit(request) if request is not None else -1
            if request is None or place < 0:
                unplaced = pod
                break
            self.index.place_pod(request, place)
            placements.append((pod, place))
        for pod, place in reversed(placements):
            request = self.requests[pod]
            assert request is not None
            self.index.remove_pod(request, place)
        if was_open:
            self.index.open_node(node)
        return DrainPlacement(tuple(placements)) if len(placements) == len(pods) else unplaced

    def _size_order(self, pod: int) -> tuple[int, int, int]:
        pod_class = self.model.successor_class_of[pod]
        return -pod_class.major, -pod_class.minor, pod
