"""Determines what the successors of evicted pods would request, according to the pod templates of their owners, to
policies and to VPAs that act.

Pod templates, policies, VPAs, and the objects by which the API server itself changes requests are watched from the
beginning. The other facts on which policies depend are watched only while there is a policy or a VPA. No plan is made
until all of that has been read once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from trimtab.cluster.next_pod import keep_template
from trimtab.cluster.reason import NotYet
from trimtab.compactor.readmission_state import TEMPLATE_KINDS, ReadmissionState, RunningRequests
from trimtab.compactor.reasons import POLICIES_UNSEEN
from trimtab.kube.client import Client
from trimtab.kube.informers import ClusterInformers, Holds
from trimtab.kube.resources import LIST_SOURCES, ListSource, fact_list_sources
from trimtab.kube.watch_state import WatchEvent
from trimtab.kube.watch_state import WatchSettings as WatchTerms
from trimtab.policy.actions.requests_of_policies import policies_that_resize
from trimtab.policy.cluster_facts import ALL_KINDS, OWNERS
from trimtab.policy.watched_facts import COUNTED, POLICY, load_object, projections_by_kind, retain_vpa_with_growth
from trimtab.runtime import clock
from trimtab.scheduling.cluster_model import Again

VPA = "VerticalPodAutoscaler"
SERVER_KINDS = ("LimitRange", "PriorityClass", "ResourceQuota", "RuntimeClass")
"""The kinds by which the API server itself changes what a new pod requests, or refuses it."""
FIRST_KINDS = (POLICY, VPA, *TEMPLATE_KINDS, *SERVER_KINDS)
"""The kinds that are watched from the beginning. Of policies that files hold, there is no list."""
WATCHED = WatchTerms(absent_retry_seconds=300.0)
"""The settings of the watches. With them, a CustomResourceDefinition that is installed later is noticed within five
minutes."""


@dataclass(slots=True)
class ReadmissionWatcher:
    """Runs the watches as a context manager. Apart from their own threads, only one thread may use it."""

    client: Client
    state: ReadmissionState
    _changes: SimpleQueue[WatchEvent[Any]] = field(default_factory=SimpleQueue)
    _policy_informers: ClusterInformers | None = None
    _fact_informers: ClusterInformers | None = None

    def __enter__(self) -> ReadmissionWatcher:
        named = projections_by_kind(self.state.settings.own_namespace)
        stored: Holds = {
            VPA: retain_vpa_with_growth,  # type: ignore[dict-item]
            **dict.fromkeys(TEMPLATE_KINDS, keep_template),  # type: ignore[arg-type]
            **{kind: named[kind] for kind in SERVER_KINDS},
        }
        if self.state.policies is None:
            stored = {POLICY: load_object, **stored}  # type: ignore[dict-item]
        self._policy_informers = self._start_informers(tuple(LIST_SOURCES[kind] for kind in stored), stored)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watch in (self._policy_informers, self._fact_informers):
            if watch is not None:
                watch.stop()

    def requests_lookup(self) -> Again | NotYet:
        """Returns the function for a plan that returns a successor's requests; NotYet while not everything has been
        read."""
        if self._policy_informers is not None and not self._policy_informers.is_synced:
            reason = POLICIES_UNSEEN("the compactor has not read pod templates, policies and VPAs yet")
            return NotYet(reason=reason, have="no list", need="all pod templates, policies and VPAs")
        self._apply_changes()
        if not self.state.is_needed:
            return self.state.requests_lookup(int(clock.utc_now().timestamp()))
        if self._fact_informers is None:
            own = self.state.settings.own_namespace
            self._fact_informers = self._start_informers(list_sources(own), projections_by_kind(own))
        if not self._fact_informers.is_synced:
            reason = POLICIES_UNSEEN("the compactor has not read the objects on which policies depend yet")
            return NotYet(reason=reason, have="some lists", need="all lists")
        self._apply_changes()
        return self.state.requests_lookup(int(clock.utc_now().timestamp()))

    def running_requests_lookup(self) -> RunningRequests | NotYet | None:
        """Returns the function for resizes that returns what policies want; None if no policy says `running: resize`;
        NotYet while not everything has been read."""
        if self._policy_informers is not None and self._policy_informers.is_synced:
            self._apply_changes()
            if not policies_that_resize(self.state.in_force):
                return None
        # This starts the watches of all facts where they are needed, and says what has not been read yet.
        lookup = self.requests_lookup()
        if isinstance(lookup, NotYet):
            return lookup
        return self.state.running_requests_lookup(int(clock.utc_now().timestamp()))

    def _start_informers(self, lists: tuple[ListSource, ...], stored: Holds) -> ClusterInformers:
        return ClusterInformers(self.client, lists, terms=WATCHED, holds=stored, on_change=self._changes.put).start()

    def _apply_changes(self) -> None:
        for _ in range(self._changes.qsize()):
            self.state.apply_change(self._changes.get())


def list_sources(own_namespace: str) -> tuple[ListSource, ...]:
    """Returns every list on which policies depend, except those that are watched from the beginning.

    Of ReplicaSets and CronJobs only the metadata is read, and ConfigMaps only in Trimtab's own namespace.
    """
    return fact_list_sources(ALL_KINDS.difference(FIRST_KINDS), OWNERS, COUNTED, own_namespace)
