"""Keeps the policies that are in effect while users edit them one by one in the cluster.

If a new version of a policy is not valid, the mistake is reported and the last valid version stays in effect. Other
policies are not affected.
"""

from collections.abc import Mapping

from trimtab.cluster.api.admissionregistration import Custom
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.facts_index import PersistentMap
from trimtab.policy.load import load_document
from trimtab.policy.podpolicy import API_VERSION, KIND, PodPolicy, Policies

Loaded = PodPolicy | tuple[ConfigError, ...]
"""A policy, or all mistakes in its document."""


def load_object(item: Custom) -> Loaded:
    """Returns the policy of a PodPolicy object in the cluster, or the mistakes in it, with the same messages as for
    files. A policy that the harm brake holds has the mode `warn`."""
    metadata = {"name": item.metadata.name, "generation": item.metadata.generation}
    value = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": item.spec, "status": item.status}
    policy, mistakes = load_document(Document(file=KIND, index=0, value=value))
    return tuple(mistakes) if policy is None else policy


class PolicyStore:
    """The last valid version of every policy. Only one thread may use it."""

    def __init__(self) -> None:
        self._policies: PersistentMap[str, PodPolicy] = PersistentMap()
        self._broken: PersistentMap[str, tuple[ConfigError, ...]] = PersistentMap()
        # The mapping that `current_policies` returned last as a set, and that set.
        self._last: tuple[Mapping[str, PodPolicy], Policies] = ({}, Policies())

    def put(self, name: str, loaded: Loaded) -> None:
        if isinstance(loaded, PodPolicy):
            self._policies.put(name, loaded)
            self._broken.drop(name)
        else:
            # The last valid version stays in effect: a typing error must not lift a policy from a running cluster.
            self._broken.put(name, loaded)

    def drop(self, name: str) -> None:
        self._policies.drop(name)
        self._broken.drop(name)

    def current_policies(self) -> Policies:
        """Returns all policies in effect, in the order in which they decide; the same object as last time if nothing
        differs."""
        by_name = self._policies.current_mapping()
        if by_name is not self._last[0]:
            self._last = by_name, Policies.from_policies(*by_name.values())
        return self._last[1]

    def invalid_documents(self) -> Mapping[str, tuple[ConfigError, ...]]:
        """Returns policy name → the mistakes in its document; the same object as last time if nothing differs."""
        return self._broken.current_mapping()
