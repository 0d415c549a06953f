"""What the drains of a cluster wait for, computed from the pods and the PodDisruptionBudgets as they were read."""

from __future__ import annotations

from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.pdb import PdbIndex
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.budget_wait import describe_budget_wait
from trimtab.inputs.compactor_state import CompactorState


def list_drain_waits(state: CompactorState) -> dict[str, str]:
    """Returns node → which budgets allow no eviction of its pods, for the drained nodes of which this is true."""
    drains = [
        (node.name, claim)
        for node, claim in state.list_annotations()
        if isinstance(claim, DrainAnnotation) and claim.emptied is None
    ]
    if not drains:
        return {}
    inventory = snapshot_inventory(state.snapshot)
    index, pods = PdbIndex.from_pdbs(inventory.pdbs), {pod.uid: pod for pod in inventory.pods}
    waits = {node: describe_budget_wait(claim.moves, pods, index) for node, claim in drains}
    return {node: wait for node, wait in waits.items() if wait}
