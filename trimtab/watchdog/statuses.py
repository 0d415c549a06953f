"""The status of every policy, written when it differs, and not too often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.kube.client import APPLY
from trimtab.kube.errors import KubeFault, NotFound
from trimtab.kube.kinds import PLACES, one
from trimtab.kube.writer import Writer
from trimtab.policy.document import API_VERSION, KIND
from trimtab.policy.status import HARM_BRAKE, Status, plain
from trimtab.runtime.log import Logger


@dataclass(slots=True)
class Statuses:
    """Not for two threads."""

    writer: Writer
    log: Logger
    every: float
    """Seconds between two writes of one policy's; what is urgent is written at once."""
    elapsed: Callable[[], float]
    _written: dict[str, tuple[float, Status]] = field(default_factory=dict)

    def write(self, name: str, before: Status, status: Status) -> bool:
        """Whether it was written. `before`: what the cluster shows; trouble is logged, and it is tried again."""
        if status == before or self._is_soon(name, status):
            return False
        try:
            self._apply(name, status)
        except NotFound:
            return False  # deleted meanwhile
        except KubeFault as error:
            self.log.warning("status.not-written", policy=name, error=str(error))
            return False
        self._written[name] = (self.elapsed(), status)
        return True

    def forget(self, names: set[str]) -> None:
        """All but these are gone."""
        self._written = {name: found for name, found in self._written.items() if name in names}

    def _is_soon(self, name: str, status: Status) -> bool:
        """Was it written a moment ago, and is nothing urgent new?"""
        found = self._written.get(name)
        if found is None:
            return False
        at, last = found
        return self.elapsed() - at < self.every and _said(last) == _said(status)

    def _apply(self, name: str, status: Status) -> None:
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "status": plain(status)}
        path, doing = one(PLACES[KIND], "", name, "status"), f"apply status of PodPolicy {name}"
        self.writer.write("PATCH", path, body, doing=doing, content_type=APPLY, query={"force": "true"})


def _said(status: Status) -> list[tuple[str, bool]]:
    """What must be known at once: a document that does not load, a brake that is on."""
    return [
        (found.type, found.status == ("True" if found.type == HARM_BRAKE else "False")) for found in status.conditions
    ]
