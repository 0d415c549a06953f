"""What a plan is made of, read from files: the cluster, its pools, the moment. Every mistake of every file together."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trimtab.cluster.autoscaler import wrong_flags
from trimtab.cluster.documents import Document
from trimtab.cluster.documents import read as read_documents
from trimtab.cluster.inventory import Inventory, take
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.moment import Seconds, seconds
from trimtab.cluster.pool import Pool
from trimtab.cluster.snapshot import Snapshot, build, kind_of
from trimtab.command import files, live
from trimtab.command.main import Wrong
from trimtab.command.plan import autoscaler, memory, missing, pools
from trimtab.command.plan.given import Given
from trimtab.command.plan.readmitted import Readmission
from trimtab.command.uncollected import uncollected
from trimtab.compaction.candidates import Now
from trimtab.packing.world import Again
from trimtab.policy.document import KIND
from trimtab.runtime import clock

LATEST = 32_503_680_000
"""The year 3000: at the end of all years there is no tomorrow in any time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Everything that was read, before anything is planned."""

    inventory: Inventory
    pools: tuple[Pool, ...]
    now: Now
    again: Again | None = None
    """What pods would ask for if they were admitted again; None: what they ask for now."""
    notes: tuple[str, ...]
    """Where the pools came from, and what else was assumed."""


def read(given: Given) -> Asked:
    """Raises Wrong, naming every mistake of every file and option; Failed where a live cluster cannot be read."""
    with uncollected():
        return _read(given)


def _read(given: Given) -> Asked:
    cluster = given.cluster
    if not cluster.paths:
        expected = "--cluster SNAPSHOT: files of `trimtab capture` or kubectl, or live"
        raise Wrong([Mistake(file="command line", expected=expected, came="none")])
    unread: list[Mistake] = []
    standing, mistakes = documents(
        _tried(lambda: live.read(cluster, live.WITH_POLICIES, templates=bool(given.policy_paths)), unread)
    )
    settings, more = documents(_tried(lambda: files.read(given.pool_paths), unread))
    built = build(standing)
    at, when = moment(given.now)
    inventory = take(built.snapshot)
    found = pools.found(settings if given.pool_paths and not unread else None, standing, inventory, given.named)
    words, odd = flags_given(given.autoscaler_flags)
    readmitted = _readmission(standing, built.snapshot, given, unread)
    mistakes += [*unread, *more, *built.mistakes, *found.mistakes, *when, *odd, *readmitted.mistakes]
    mistakes += () if mistakes else missing.mistakes(inventory, cluster.paths)
    if mistakes:
        raise Wrong(mistakes)
    scaler, told = autoscaler.seen(inventory, standing, words, at)
    seen = memory.observed(inventory)
    now_ = Now(at=at, autoscaler=scaler, observations=seen.observations, moved=seen.moved)
    notes = (*found.notes, *told, *seen.notes, *readmitted.notes, *missing.notes(inventory, cluster.paths))
    return Asked(inventory=inventory, pools=found.pools, now=now_, again=readmitted.again, notes=notes)


def _readmission(standing: list[Document], snapshot: Snapshot, given: Given, unread: list[Mistake]) -> Readmission:
    """The steps of admission are only loaded where a policy has a say."""
    if not given.policy_paths and not any(kind_of(document.value) == KIND for document in standing):
        return Readmission()
    from trimtab.command.plan.readmission import readmission

    try:
        return readmission(standing, snapshot, given.policy_paths, given.terms)
    except Wrong as wrong:
        unread += wrong.mistakes
        return Readmission()


def _tried(read: Callable[[], list[files.Content]], unread: list[Mistake]) -> list[files.Content]:
    """What could be read; what could not is told with all other mistakes."""
    try:
        return read()
    except Wrong as wrong:
        unread += wrong.mistakes
        return []


def documents(contents: Iterable[files.Content]) -> tuple[list[Document], list[Mistake]]:
    """All documents of all files, and all that could not be read."""
    found: list[Document] = []
    mistakes: list[Mistake] = []
    for name, content in contents:
        reading = read_documents(name, content)
        found += reading.documents
        mistakes += reading.mistakes
    return found, mistakes


def flags_given(text: str) -> tuple[list[str], list[Mistake]]:
    """--autoscaler-flags, split as a shell does."""
    expected = "the cluster autoscaler's flags, such as --scale-down-utilization-threshold=0.7"
    try:
        words = shlex.split(text)
    except ValueError as error:
        return [], [Mistake(file="--autoscaler-flags", expected=expected, came=str(error))]
    return words, [Mistake(file="--autoscaler-flags", expected=expected, came=wrong) for wrong in wrong_flags(words)]


def moment(text: str | None) -> tuple[Seconds | None, list[Mistake]]:
    """--now: RFC 3339, or the word `now`."""
    if text == "now":
        return int(clock.utc().timestamp()), []
    found = seconds(text)
    if text is None or (found is not None and 0 <= found < LATEST):
        return found, []
    expected = "a time such as 2026-01-02T15:04:05Z, or now"
    return None, [Mistake(file="--now", expected=expected, came=repr(text))]


__all__ = ["Asked", "documents", "moment", "read"]
