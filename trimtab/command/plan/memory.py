"""What did a compactor see before this snapshot was taken? Its state, where the snapshot has it."""

from dataclasses import dataclass

from trimtab.cluster.api.meta import get
from trimtab.cluster.inventory import Inventory
from trimtab.compaction.drain import memory as memories
from trimtab.compaction.drain.memory import Memory
from trimtab.compaction.observations import Observations


@dataclass(frozen=True, slots=True)
class Seen:
    observations: Observations | None = None
    """None: no compactor has left any, and pools are taken for settled."""
    moved: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def observed(inventory: Inventory) -> Seen:
    """Read from the ConfigMaps trimtab-state-*; one that makes no sense is told and left out."""
    read = {
        get(shape.metadata.labels, {})[memories.LABEL]: memories.read(shape.metadata.name, shape.data)
        for shape in inventory.config_maps
        if memories.LABEL in get(shape.metadata.labels, {})
    }
    found = {pool: memory for pool, memory in read.items() if isinstance(memory, Memory)}
    notes = tuple(f"left out: {memory}" for memory in read.values() if not isinstance(memory, Memory))
    if not found:
        return Seen(notes=notes)
    told = f"the compactor's own observations were read for {', '.join(sorted(found))}"
    return Seen(memories.together(found, {}), memories.moved(found.values()), (told, *notes))
