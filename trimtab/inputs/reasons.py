"""The reasons why no compactor is working, for the commands that show its state."""

from trimtab.cluster.reason import Code

NO_COMPACTOR = Code(
    "compactor-not-running",
    "No compactor holds its Lease, so nothing is planned. Nodes that were being drained stay cordoned.",
    "Start the compactor, which continues or undoes its drains. To uncordon a node without the compactor: `trimtab "
    "compactor release --yes NODE`. `trimtab doctor` names what keeps the compactor from running.",
)
