"""Usage from wherever the command line says."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trimtab.cluster.mistake import Mistake
from trimtab.command import files
from trimtab.command.main import Failed, Wrong
from trimtab.command.progress import counted, working
from trimtab.runtime.files import Content
from trimtab.sketch.book import Book
from trimtab.usage.answer import parsed
from trimtab.usage.checkpoints import Checkpoints
from trimtab.usage.errors import UsageFault
from trimtab.usage.files import Rows, csv_rows, parquet_rows
from trimtab.usage.http import Source
from trimtab.usage.owners import Owners
from trimtab.usage.prometheus import Pieces, Prometheus
from trimtab.usage.series import Series
from trimtab.usage.take import take

DAY = 86400
ENDINGS = (".csv", ".parquet", ".json", ".yaml", ".yml")
"""What is read of a folder of usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """`--prometheus` and what goes with it."""

    url: str
    headers: dict[str, str]
    ca: str | None
    days: int
    step: int
    rate: str
    namespaces: tuple[str, ...]
    extra: str


def from_files(book: Book, paths: Sequence[str], owners: Owners, now: int | None) -> list[str]:
    """Notes say what was left out. Raises Wrong with all mistakes of all files."""
    mistakes, notes = list[Mistake](), list[str]()
    for name, content in files.read(paths, ENDINGS):
        if checkpoints := _checkpoints(name, content):
            checkpoints.pour(book)
            mistakes += checkpoints.mistakes
        elif name.endswith(".json") or content[:1] == b"{":
            take(book, _answer(name, content, now), owners)
        else:
            rows = _rows(name, content)
            mistakes += rows.mistakes
            notes += rows.notes()
            take(book, rows.series(now), owners)
    if mistakes:
        raise Wrong(mistakes)
    return notes


def _rows(name: str, content: Content | bytes) -> Rows:
    assert isinstance(content, bytes)
    return parquet_rows(name, content) if content[:4] == b"PAR1" else csv_rows(name, content)


_KUBERNETES = (b"apiVersion:", b"\nkind:", b'"apiVersion"')


def _checkpoints(name: str, content: bytes) -> Checkpoints | None:
    """As `kubectl get -o yaml` or `-o json` prints them; None where it is something else."""
    head = content[:400]
    return Checkpoints.of(name, content) if any(word in head for word in _KUBERNETES) else None


def _answer(name: str, content: bytes, now: int | None) -> Iterator[Series]:
    """A saved answer of Prometheus; which resource it tells is seen by its size."""
    try:
        for series in parsed(content, "", now):
            resource = "cpu" if max(series.values, default=0.0) < 100_000 else "memory"
            yield replace(series, resource=resource, times=list(map(int, series.times)))
    except UsageFault as error:
        raise Wrong([Mistake(file=name, expected="an answer of Prometheus", came=str(error))]) from None


def from_prometheus(book: Book, server: Server, owners: Owners, now: int) -> None:
    """The last days. Raises Failed where the server cannot be read."""
    source = Source(server.url, server.headers, server.ca)
    prometheus = Prometheus(source, Pieces(step=server.step, rate=server.rate, extra=server.extra))
    start = now - server.days * DAY
    try:
        with working("Asking Prometheus what there is"):
            known = Owners({**prometheus.owners(start, now), **owners.pods}, owners.workloads)
            pieces = prometheus.plan(start, now, server.namespaces)
        with counted(len(pieces), "Asking Prometheus") as tell:
            take(book, prometheus.read(pieces, lambda done, _all: tell(done)), known)
    except UsageFault as error:
        raise Failed(str(error)) from None


def left_out(book: Book) -> list[str]:
    """A note where some of what was read counts for nothing."""
    count = book.left_out
    if not count:
        return []
    some = "1 sample was" if count == 1 else f"{count} samples were"
    return [f"{some} left out: no number, below zero, or more than any machine has."]


def unseen(book: Book, rate: str) -> list[str]:
    """A note where most containers' memory was seen, and their cpu was not: no rate is told where a window holds fewer
    than two scrapes."""
    held = {container for container, resource in book.pages if resource == "memory"}
    without = sum((container, "cpu") not in book.pages for container in held)
    if not held or 2 * without < len(held):
        return []
    return [f"Of {without} containers memory was seen and cpu was not: are scrapes further apart than a minute? "
            f"--rate {rate} must hold four of them, so --rate 20m for one every five minutes."]  # fmt: skip


def header(texts: Iterable[str]) -> dict[str, str]:
    """`NAME: VALUE`, several. Raises Wrong."""
    found, mistakes = {}, []
    for text in texts:
        name, colon, value = text.partition(":")
        if colon and name.strip():
            found[name.strip()] = value.strip()
        else:
            mistakes.append(Mistake(file="--header", expected="NAME: VALUE", came=repr(text)))
    if mistakes:
        raise Wrong(mistakes)
    return found
