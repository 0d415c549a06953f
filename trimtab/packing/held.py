"""Which claims do several pods hold, though one pod, or one node, has them for itself?"""

from collections import Counter
from collections.abc import Mapping

from trimtab.cluster.claim import Claim
from trimtab.cluster.inventory import Inventory


def shared(inventory: Inventory) -> Mapping[tuple[str, str], str]:
    """(namespace, claim) → its access mode in words. Pods that are finished hold nothing."""
    claims = inventory.claims
    if not any(_exclusive(claim) for claim in claims.values()):
        return {}
    held = Counter((pod.namespace, name) for pod in inventory.pods if not pod.finished for name in pod.claims)
    several = [name for name, count in held.items() if count > 1]
    return {name: _mode(claims[name]) for name in several if name in claims and _exclusive(claims[name])}


def _exclusive(claim: Claim) -> bool:
    return claim.alone or claim.one_node


def _mode(claim: Claim) -> str:
    return "ReadWriteOncePod" if claim.alone else "ReadWriteOnce: both must be on one node"
