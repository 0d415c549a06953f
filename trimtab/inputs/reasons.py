"""The reasons why no compactor is working, for the commands that show its state."""

from trimtab.cluster.reason import Code

NO_COMPACTOR = Code(
    "compactor-not-running",
    "No compactor holds the Lease of the compactor: nothing is planned, and nodes that were being drained stay "
    "cordoned.",
    "Start the compactor again: it continues or undoes its drains. To uncordon a node without the compactor: "
    "`trimtab compactor release --yes NODE`. `trimtab doctor` names what keeps the compactor from running.",
)
