"""What does a plan lean on that the snapshot does not show?"""

from collections.abc import Iterator, Sequence

from trimtab.cluster.inventory import Inventory
from trimtab.cluster.mistake import Mistake
from trimtab.command import live

HOW = "kubectl get nodes,pods,pdb,… -A -o json prints one"


def mistakes(inventory: Inventory, paths: Sequence[str]) -> Iterator[Mistake]:
    """Mistakes that a snapshot as a whole makes.

    What has no name cannot be told apart. Without nodes there is nothing to plan; without any pod every node would look
    empty, and none of them is. A live cluster was asked for its pods: there no answer is an answer.
    """
    where = ", ".join(paths)
    for kind, found in (("node", inventory.nodes), ("pod", inventory.pods)):
        if nameless := sum(not each.name for each in found):
            yield Mistake(file=where, expected=f"a name for every {kind}", came=f"{nameless} without one")
    if not inventory.nodes:
        yield Mistake(file=where, expected="a snapshot with nodes", came="none", todo=HOW)
    elif not inventory.pods and live.LIVE not in paths:
        expected = "a snapshot with pods: without any, every node would look empty"
        yield Mistake(file=where, expected=expected, came="none", todo=HOW)


def notes(inventory: Inventory, paths: Sequence[str]) -> Iterator[str]:
    """What was taken for absent because nothing of its kind is there."""
    if live.LIVE not in paths and len({pod.namespace for pod in inventory.pods}) == 1:
        namespace = inventory.pods[0].namespace
        yield f"all pods are of namespace {namespace}: were all namespaces read (-A)? Without it nodes look emptier"
    if not inventory.budgets:
        yield "no PodDisruptionBudget is in the snapshot: no pod is taken for protected by one"
    if any(claim.driver for claim in inventory.claims.values()) and not any(n.attachable for n in inventory.nodes):
        yield "no CSINode with a limit is in the snapshot: nodes are taken to attach any number of volumes"
