"""Decides since when the author of a DrainOrder is certain, from one reading of the admission policy after another.

The API server does not say since when a policy has its content. As long as uid and generation of the policy and of its
binding are the same in two readings, nothing has changed in between. So an order is certain if it was not listed yet
when the present generations were observed first, and if they are the same after it was listed. What is stored is no
clock of ours: only the creation times of the API server are compared with each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace as change

from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.order_entry import PolicySighting
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.author_policy import MARGIN_SECONDS, POLICY_NAME, PolicyReading
from trimtab.compaction.order.order_object import OrderObject


@dataclass(slots=True)
class AuthorWitness:
    """What is known of the policy. It is told each reading, after the list of orders of the same time."""

    sighting: PolicySighting | None = None
    """The generations since which an order may be certain; None if there are none, or if the objects prove it
    themselves. It is stored, because another leader has not observed what came before."""
    problem: Reason | None = field(default_factory=lambda: o.RIGHTS_UNKNOWN("the admission policy was not read yet"))
    """Why no author is certain now; None if those of later orders are."""
    _since: Seconds | None = None
    _candidate: PolicySighting | None = None
    _observed_at: float = 0.0
    """When the candidate was first observed, by the monotonic clock."""

    def observe_reading(self, reading: PolicyReading, newest: Seconds, now: float) -> None:
        """Considers a reading of the policy. `newest`: when the newest order was created that was listed before the
        reading. `now`: the monotonic time."""
        if text := reading.problem:
            self.sighting = self._candidate = self._since = None
            self.problem = o.UNPROVEN(f"{text}, so the author of the order is not certain")
            return
        self.problem, self._since = None, reading.unchanged_since
        if self._since is not None:
            self.sighting = self._candidate = None
            return
        present = reading.sighting
        stored = self.sighting
        if present is not None and stored is not None and change(stored, since=0) == present:
            self._since = stored.since
            return
        self.sighting = None
        if present is not None:
            self._settle(present, newest, now)

    def _settle(self, present: PolicySighting, newest: Seconds, now: float) -> None:
        """Waits until every API server decides by the present generations. Orders that are listed until then may have
        been created without them."""
        candidate = self._candidate
        if candidate is None or change(candidate, since=0) != present:
            candidate, self._observed_at = present, now
        self._candidate = change(candidate, since=max(candidate.since, newest))
        if now - self._observed_at > MARGIN_SECONDS:
            self.sighting, self._since = self._candidate, self._candidate.since

    def reading_failed(self, error: str) -> None:
        """Notes that the policy could not be read, so that no order is accepted now."""
        self.problem = o.RIGHTS_UNKNOWN(f"the admission policy for authors cannot be read: {error}")

    def author_reason(self, order: OrderObject) -> Reason | None:
        """Returns why it is not certain that the user whom the order names created it; None if it is."""
        if self.problem is not None:
            return self.problem
        if self._since is None or order.created < self._since + MARGIN_SECONDS:
            return o.UNPROVEN(
                f"the order was created before the ValidatingAdmissionPolicy {POLICY_NAME} was in force, or before the "
                "compactor had observed its last change, so the author is not certain"
            )
        return None
