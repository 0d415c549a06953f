"""Series into a book."""

from collections.abc import Iterable

from trimtab.cluster.owner import Owner
from trimtab.sketch.book import Book, Container
from trimtab.usage.owners import Owners
from trimtab.usage.series import Series


def container(series: Series, owners: Owners) -> Container:
    """Whose use it was."""
    kind, slash, name = series.workload.partition("/")
    owner = Owner(kind, name) if slash else owners.of(series.namespace, series.pod)
    return Container(series.namespace, owner.kind, owner.name, series.container)


def take(book: Book, found: Iterable[Series], owners: Owners) -> int:
    """All of them; how many there were."""
    count = 0
    for series in found:
        book.left_out += series.left_out
        book.take(container(series, owners), series.resource, series.times, series.values, series.asked)
        count += 1
    return count
