"""Computes what a core and a GiB cost on the nodes of a snapshot."""

from trimtab.autoscaling.lint_snapshot import LintSnapshot, MonthlyPrice
from trimtab.cluster.yaml_documents import Document


def read_monthly_price(snapshot: LintSnapshot) -> MonthlyPrice:
    """Returns the average price of a core and a GiB on the nodes; if no node's price is known, the list price of a
    general-purpose machine."""
    # Imported here because most runs have no usage, and therefore no money.
    from trimtab.cluster.api.core import Node
    from trimtab.cluster.node import node_from_api
    from trimtab.cluster.reason import Unreadable
    from trimtab.cluster.snapshot import build_snapshot
    from trimtab.machines.prices import price_of
    from trimtab.sizing.cost import LIST_PRICE, average_price

    documents: list[Document] = [document for subject, document in snapshot.documents.items() if subject.kind == "Node"]
    priced = []
    for node in map(node_from_api, build_snapshot(documents).snapshot.objects_of(Node)):
        price = price_of(node, {})
        if isinstance(price, int) and not isinstance(node.allocatable, Unreadable):
            amounts = node.allocatable
            priced.append((price, amounts.get("cpu", 0) / 1000, amounts.get("memory", 0) / (1 << 30)))
    average = average_price(priced)
    used = average or LIST_PRICE
    source = "the price of your nodes" if average is not None else "the list price of a general-purpose machine"
    return MonthlyPrice(core=used.monthly_cost(1000, 0), gib=used.monthly_cost(0, 1 << 30), source=source)
