"""What the cluster itself knows of usage: this moment, and what VPAs wrote down."""

from trimtab.command import live
from trimtab.command.main import Failed
from trimtab.sketch.book import Book
from trimtab.usage.owners import Owners
from trimtab.usage.take import take


def add(book: Book, cluster: live.Asked, owners: Owners) -> list[str]:
    """The metrics API's sample and the VPAs' checkpoints; notes say what that is worth. Raises Failed."""
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotFound
    from trimtab.usage import checkpoints, metrics

    notes = []
    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            try:
                seen = take(book, metrics.now(client), owners)
                notes.append(f"The metrics API tells one moment ({seen} series) and no history: give --prometheus, "
                             "or let the recommender collect for a day.")  # fmt: skip
            except NotFound:
                notes.append("This cluster serves no metrics API (metrics-server).")
            known = checkpoints.listed(client)
            known.pour(book)
            if known.found:
                notes.append(f"{len(known.found)} VPA checkpoints give cpu, newer days weighing more; of memory they "
                             "hold daily peaks only, which are no P5 or P95.")  # fmt: skip
        finally:
            client.close()
    except KubeFault as error:
        raise Failed(str(error)) from None
    return notes
