"""Would the cluster autoscaler remove this node by itself?

It takes a node whose requests are under its threshold: the larger of cpu and memory, or GPUs alone where the node has
some (cluster-autoscaler simulator/utilization, 1.34). That its pods fit elsewhere is for who asks.
"""

from trimtab.cluster.autoscaler import Autoscaler
from trimtab.packing.world import World

GPUS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "microsoft.com/directx")


def by_itself(world: World, node: int, autoscaler: Autoscaler) -> int | None:
    """The threshold (percent) that the node is under; None where it is at it or over it."""
    gpu = next((name for name in GPUS if world.amount(node, name) > 0), None)
    if gpu is not None:
        have = world.amount(node, gpu)
        used = have - world.rest[world.names.index(gpu)][node] if gpu in world.names else 0
        return autoscaler.gpu_threshold if used * 100 < autoscaler.gpu_threshold * have else None
    free = (world.major[node], world.minor[node])
    have_of = [world.amount(node, resource) for resource in world.resources]
    under = all((have - left) * 100 < autoscaler.threshold * have for have, left in zip(have_of, free, strict=True))
    return autoscaler.threshold if under else None
