"""Shards as ConfigMaps of our namespace, ours alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.recommendation import KEY, LABEL
from trimtab.cluster.snapshot import ConfigMap
from trimtab.kube import listing, objects
from trimtab.kube.errors import KubeFault
from trimtab.kube.kinds import Source
from trimtab.kube.writer import Writer
from trimtab.recommender.cabinet import NotNow

USAGE = "trimtab.dev/usage"
"""The label of checkpoints."""
DAMAGED = "trimtab.dev/damaged"
"""The label of what was kept aside; nobody reads it but people."""


def usage(writer: Writer, namespace: str) -> ConfigMaps:
    """Checkpoints."""
    return ConfigMaps(writer, namespace, "trimtab-usage", USAGE, "usage.json")


def recommendations(writer: Writer, namespace: str) -> ConfigMaps:
    return ConfigMaps(writer, namespace, "trimtab-recommendations", LABEL, KEY)


@dataclass(frozen=True, slots=True)
class ConfigMaps:
    """`PREFIX-NNN`, label `LABEL: v1`, the text under one key."""

    writer: Writer
    namespace: str
    prefix: str
    label: str
    key: str

    def load(self) -> Mapping[int, str]:
        source = Source(
            kind="ConfigMap", group_version="v1", plural="configmaps", labels=f"{self.label}=v1",
            namespace=self.namespace,
        )  # fmt: skip
        try:
            found = listing.observe(self.writer.client, (source,)).snapshot.all(ConfigMap)
        except KubeFault as error:
            raise NotNow(str(error)) from error
        named = ((self._number(one.metadata.name), one) for one in found)
        return {number: one.data.get(self.key, "") for number, one in named if number is not None}

    def _number(self, name: str) -> int | None:
        """None where a person gave it a name of their own: that is left alone."""
        prefix, _, number = name.rpartition("-")
        return int(number) if prefix == self.prefix and number.isdecimal() and len(number) >= 3 else None

    def put(self, shard: int, text: str) -> None:
        self._apply(self._name(shard), text, {self.label: "v1"})

    def aside(self, shard: int, text: str) -> None:
        self._apply(f"{self._name(shard)}-damaged", text, {DAMAGED: "v1"})

    def drop(self, shard: int) -> None:
        try:
            objects.delete(self.writer, "ConfigMap", self._name(shard), self.namespace)
        except KubeFault as error:
            raise NotNow(str(error)) from error

    def _name(self, shard: int) -> str:
        return f"{self.prefix}-{shard:03}"

    def _apply(self, name: str, text: str, labels: dict[str, str]) -> None:
        meta = {"name": name, "namespace": self.namespace, "labels": labels}
        try:
            objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": {self.key: text}})
        except KubeFault as error:
            raise NotNow(str(error)) from error
