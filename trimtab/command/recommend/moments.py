"""What the cluster itself knows of usage: what our recommender keeps, this moment, and what VPAs wrote down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.command import live
from trimtab.command.main import Failed
from trimtab.sketch.book import Book
from trimtab.usage.owners import Owners
from trimtab.usage.take import take

if TYPE_CHECKING:
    from trimtab.kube.client import Client


def add(book: Book, cluster: live.Asked, owners: Owners) -> list[str]:
    """The recommender's checkpoints, or else the metrics API's sample and the VPAs' checkpoints. Notes say what that
    is worth. Raises Failed."""
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotFound
    from trimtab.usage import checkpoints, metrics

    notes = []
    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            notes += _kept(book, client)
            if book.pages:
                return notes
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


def _kept(book: Book, client: Client) -> list[str]:
    """What `trimtab recommender` keeps in our namespace; nothing where it does not run."""
    from trimtab.kube.writer import Writer
    from trimtab.policy.facts import OWN_NAMESPACE
    from trimtab.recommender.cabinet import NotNow
    from trimtab.recommender.checkpoints import Checkpoints
    from trimtab.recommender.shelf import usage
    from trimtab.sketch.diary import Diary

    diary = Diary()
    try:
        wrong = Checkpoints(usage(Writer(client=client), OWN_NAMESPACE), diary, 0.0, float).open()
    except NotNow as error:
        return [f"What the recommender keeps could not be read: {error}"]
    for (container, resource), window in diary.windows.items():
        book.hold(container, resource, window)
    told = [f"The recommender's {one}" for one in wrong]
    count = len(diary.containers())
    return [f"The recommender keeps the history of {count} containers.", *told] if count else told
