"""The door that does nothing. What it was asked to do stands in the records, as for the other one."""

from trimtab.cluster.node import Node
from trimtab.compaction.drain.memory import Record
from trimtab.compaction.drain.note import Leaving, Note
from trimtab.compactor.doors import Answer, Became


class Rehearsal:
    """Takes everything for done."""

    @property
    def rehearsal(self) -> bool:
        return True

    def cordon(self, node: str, version: str, note: Note) -> None:
        pass

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        pass

    def evict(self, move: Leaving) -> Answer:
        return Answer(became=Became.EVICTED)

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        return True

    def steer(self, node: Node, version: str, *, leaving: bool) -> None:
        pass

    def tell(self, record: Record) -> None:
        pass
