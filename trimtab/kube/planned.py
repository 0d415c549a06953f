"""Pods held as plans take them: `Watch(…, holds={"Pod": Planned()})`, read with `watch.held("Pod")`."""

from __future__ import annotations

from dataclasses import dataclass, field

from trimtab.cluster.api.meta import Shape, change
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.pod import Pod, Reader
from trimtab.kube.keep import Keeper

_MOST_ASKS = 20_000
"""Different asks, and owners of alike pods, remembered for sharing; beyond it sharing begins anew."""


@dataclass(slots=True)
class Planned:
    """An API pod → the planner's, made as from a capture of it; not for two threads."""

    most: int = _MOST_ASKS
    _keeper: Keeper = field(default_factory=Keeper)
    _reader: Reader = field(default_factory=Reader)

    def __call__(self, found: Shape) -> Pod:
        assert isinstance(found, PodShape)
        reader = self._reader
        if max(len(reader.known), len(reader.likes), len(reader.owners)) > self.most:
            reader = self._reader = Reader(first=reader.first + len(reader.likes))
        kept = change(found.metadata, annotations=self._keeper.annotations(found.metadata.annotations))
        return reader.pod(change(found, metadata=kept))
