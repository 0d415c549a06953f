"""What do decisions rest on, and where does it come from: files, or the cluster itself?"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.mistake import Mistake
from trimtab.cluster.snapshot import load
from trimtab.policy.document import Policies
from trimtab.policy.facts import NOTHING_KNOWN, Facts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.subject import Terms
from trimtab.runtime import files
from trimtab.runtime.errors import RuntimeFault
from trimtab.runtime.settings import Settings


class UnsoundFiles(RuntimeFault):
    """Policies or a snapshot with mistakes: all of them, together."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class World:
    """Replaced as a whole; a part that does not differ stays the very same object."""

    policies: Policies
    facts: Facts
    terms: Terms
    broken: Mapping[str, tuple[Mistake, ...]] = field(default_factory=dict)
    """Policies of the cluster that do not load as they stand there now, by name."""


def from_files(settings: Settings) -> World:
    """As the settings name them. Raises UnreadableFiles or UnsoundFiles with every mistake.

    Of a live cluster nothing is known yet, and none of its policies is in force.
    """
    loaded = load_policies(_policies(settings))
    snapshot = load(files.read([settings.cluster]) if settings.cluster and not settings.live else [])
    mistakes = (*loaded.mistakes, *snapshot.mistakes)
    if mistakes:
        raise UnsoundFiles(mistakes)
    terms = Terms(overhead=settings.overhead, paused=settings.paused, own_namespace=settings.namespace)
    if settings.live or not settings.cluster:
        # Without a snapshot nothing is known of the cluster, which is not the same as an empty one.
        return World(loaded.policies, NOTHING_KNOWN, terms)
    return World(loaded.policies, from_snapshot(snapshot.snapshot, own_namespace=settings.namespace), terms)


def _policies(settings: Settings) -> list[files.Content]:
    if settings.policies:
        return files.read(settings.policies)
    return [] if settings.live else files.shipped()
