"""Which policies are in force, while they are edited one by one in the cluster?

A document that does not load is named and leaves the policy of that name as it was; the others are not touched.
"""

from collections.abc import Mapping

from trimtab.cluster.api.admissionregistration import Custom
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.facts_index import PersistentMap
from trimtab.policy.load import load_document
from trimtab.policy.podpolicy import API_VERSION, KIND, PodPolicy, Policies

Loaded = PodPolicy | tuple[ConfigError, ...]
"""A policy, or all that is wrong with its document."""


def load_object(found: Custom) -> Loaded:
    """An object of the cluster, with the loader's own messages."""
    value = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": found.metadata.name}, "spec": found.spec}
    policy, mistakes = load_document(Document(file=KIND, index=0, value=value))
    return tuple(mistakes) if policy is None else policy


class PolicyStore:
    """The last good one of every policy. Not for two threads."""

    def __init__(self) -> None:
        self._policies: PersistentMap[str, PodPolicy] = PersistentMap()
        self._broken: PersistentMap[str, tuple[ConfigError, ...]] = PersistentMap()
        self._told: tuple[Mapping[str, PodPolicy], Policies] = ({}, Policies())

    def put(self, name: str, loaded: Loaded) -> None:
        if isinstance(loaded, PodPolicy):
            self._policies.put(name, loaded)
            self._broken.drop(name)
        else:
            self._broken.put(name, loaded)

    def drop(self, name: str) -> None:
        self._policies.drop(name)
        self._broken.drop(name)

    def policies(self) -> Policies:
        """All in force, in the order in which they decide; the same object while nothing differs."""
        found = self._policies.current_mapping()
        if found is not self._told[0]:
            self._told = found, Policies.of(*found.values())
        return self._told[1]

    def broken(self) -> Mapping[str, tuple[ConfigError, ...]]:
        """Name → what is wrong; the same object while nothing differs."""
        return self._broken.current_mapping()
