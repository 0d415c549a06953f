"""What the cluster itself knows of usage: what our recommender keeps, this moment, and what VPAs wrote down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.command import kept, live
from trimtab.command.main import Failed
from trimtab.sketch.book import Book
from trimtab.usage.owners import Owners
from trimtab.usage.take import take

if TYPE_CHECKING:
    from trimtab.kube.client import Client


def add(book: Book, cluster: live.Asked, owners: Owners, *, kubelets: bool = False) -> list[str]:
    """The recommender's checkpoints, or else this moment's sample and the VPAs' checkpoints. Notes say what that is
    worth. Raises Failed."""
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault

    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            notes = [] if kubelets else _kept(book, client)
            return notes if book.pages else [*notes, *_now(book, client, owners, kubelets), *_vpas(book, client)]
        finally:
            client.close()
    except KubeFault as error:
        raise Failed(str(error)) from None


def _now(book: Book, client: Client, owners: Owners, kubelets: bool) -> list[str]:
    """One sample of each container."""
    from trimtab.kube.errors import NotAllowed, NotFound
    from trimtab.usage.kubelet import Kubelets
    from trimtab.usage.metrics import now

    silent: list[str] = []
    who = "The kubelets tell" if kubelets else "The metrics API tells"
    try:
        seen = take(book, Kubelets(client, silent.append).look() if kubelets else now(client), owners)
    except NotFound:
        return ["This cluster serves no metrics API (metrics-server)."]
    except NotAllowed as error:
        hint = " (--kubelets takes `get` on nodes/proxy)" if kubelets else ""
        raise Failed(f"{error}{hint}") from None
    return [f"{who} one moment ({seen} series) and no history: give --prometheus, "
            "or let the recommender collect for a day.", *silent]  # fmt: skip


def _vpas(book: Book, client: Client) -> list[str]:
    from trimtab.kube.errors import NotAllowed
    from trimtab.usage import checkpoints

    try:
        known = checkpoints.listed(client)
    except NotAllowed as error:
        return [f"What VPAs wrote down may not be looked at with these rights: {error}"]
    known.pour(book)
    if not known.found:
        return []
    return [f"{len(known.found)} VPA checkpoints give cpu, newer days weighing more; of memory they "
            "hold daily peaks only, which are no P5 or P95."]  # fmt: skip


def _kept(book: Book, client: Client) -> list[str]:
    """What `trimtab recommender` keeps in our namespace; nothing where it does not run."""
    found, wrong = kept.diary(client)
    for (container, resource), window in found.windows.items():
        book.hold(container, resource, window)
    count = len(found.containers())
    told = f"The recommender keeps the history of {count} container{'' if count == 1 else 's'}."
    return [told, *wrong] if count else wrong
