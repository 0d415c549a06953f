"""The door that does it, through the only door to the API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trimtab.cluster.api.node import Taint
from trimtab.cluster.node import Node
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.memory import Record
from trimtab.compaction.drain.note import Leaving, Note
from trimtab.compaction.drain.note import write as written
from trimtab.compactor.doors import Answer, Became, Changed, Denied, Gone, NotNow
from trimtab.compactor.steering import LEAVING
from trimtab.compactor.telling import Teller
from trimtab.kube import evict, nodes, scale
from trimtab.kube.errors import Conflict, KubeFault, NotFound, Refused
from trimtab.kube.evict import Became as Made
from trimtab.kube.writer import Writer

ANY_WRITE = (401, 429, 503, 504)
"""Answers that say nothing of the write itself: who we are is not known, or the server has too much to do."""


@dataclass(slots=True)
class Acting:
    writer: Writer
    teller: Teller

    @property
    def rehearsal(self) -> bool:
        return False

    def cordon(self, node: str, version: str, note: Note) -> None:
        with _told():
            nodes.cordon(self.writer, node, version, {CORDONED_BY_US: written(note)})

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        with _told():
            if uncordon:
                nodes.uncordon(self.writer, node, version, (CORDONED_BY_US,))
            else:
                nodes.annotate(self.writer, node, version, {CORDONED_BY_US: None})

    def evict(self, move: Leaving) -> Answer:
        namespace, _, name = move.pod.partition("/")
        with _told():
            found = evict.evict(self.writer, namespace, name, move.uid)
        if found.done:
            return Answer(became=Became.EVICTED)
        if found.became is Made.TWO_BUDGETS:
            return Answer(became=Became.NEVER, message=found.message)
        return Answer(became=Became.REFUSED, message=found.message, retry_after=found.retry_after)

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        namespace, _, name = deployment.partition("/")
        with _told():
            return scale.scale(self.writer, "Deployment", namespace, name, before=before, replicas=replicas)

    def steer(self, node: Node, version: str, *, leaving: bool) -> None:
        others = [taint for taint in node.taints if taint.key != LEAVING]
        ours = [Taint(key=LEAVING, value=self.teller.namespace, effect="PreferNoSchedule")] if leaving else []
        with _told():
            nodes.taint(self.writer, node.name, version, (*others, *ours))

    def tell(self, record: Record) -> None:
        self.teller.tell(record)


@contextmanager
def _told() -> Iterator[None]:
    """The API door's errors as ours."""
    try:
        yield
    except Conflict as error:
        raise Changed(str(error)) from error
    except NotFound as error:
        raise Gone(str(error)) from error
    except Refused as error:
        raise (NotNow if error.status in ANY_WRITE else Denied)(str(error)) from error
    except KubeFault as error:
        raise NotNow(str(error)) from error
