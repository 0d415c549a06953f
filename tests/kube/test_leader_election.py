"""Can two replicas ever write at the same moment? Clocks stand still here, and tick when told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from trimtab.kube.client import Deadlines
from trimtab.kube.errors import ApiStatus, Conflict, NotFound, NotLeading, RequestRefused, Unreachable
from trimtab.kube.leader_election import RELEASED_LEASE_SECONDS, LeaderElector, LeaseTimings


class OneLease:
    """An API server that knows a single Lease, which its last holder gave back, and can be cut off."""

    def __init__(self) -> None:
        self.deadlines = Deadlines(write=10)
        self.version = 1
        spec = {"holderIdentity": "", "leaseDurationSeconds": RELEASED_LEASE_SECONDS}
        self.stored: dict[str, Any] | None = {"metadata": {"name": "trimtab", "resourceVersion": "1"}, "spec": spec}
        self.cut = False
        self.edits = 0
        """So many times somebody edits it between a reading and the writing after it."""
        self.bug: Exception | None = None
        self.asked: list[str] = []

    def edit(self, **spec: Any) -> None:
        assert self.stored is not None
        self.version += 1
        meta = {**self.stored["metadata"], "resourceVersion": str(self.version), "labels": {"team": "theirs"}}
        self.stored = {**self.stored, "metadata": meta, "spec": {**self.stored["spec"], **spec}}

    def request(self, method: str, path: str, *, deadline: float, doing: str) -> bytes:
        self._there()
        self.asked.append(method)
        if self.stored is None:
            raise NotFound(doing, 404, ApiStatus())
        return json.dumps(self.stored).encode()

    def write(self, method: str, path: str, body: dict[str, Any], *, doing: str) -> bytes:
        self._there()
        self.asked.append(method)
        if self.edits:
            self.edits -= 1
            self.edit()
        version = body["metadata"].get("resourceVersion")
        if version is None and self.stored is not None:
            raise RequestRefused(
                doing, 422, ApiStatus(message="metadata.resourceVersion: must be specified for an update")
            )
        if version is not None and version != str(self.version):
            raise Conflict(doing, 409, ApiStatus())
        self.version += 1
        self.stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return json.dumps(self.stored).encode()

    def _there(self) -> None:
        if self.cut:
            raise Unreachable("cut off")
        if self.bug:
            raise self.bug


class World:
    """Two replicas, one clock."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.api = OneLease()
        self.told: list[str] = []
        self.one, self.two = (
            LeaderElector(
                self.api,
                "ns",
                "trimtab",
                who,
                elapsed=lambda: self.time,  # type: ignore[arg-type]
                now=lambda: datetime.fromtimestamp(self.time, UTC),
                on_trouble=self.told.append,
            )
            for who in ("one", "two")
        )


def test_a_new_leader_waits_one_write_deadline() -> None:
    world = World()
    assert world.one.try_once()
    assert not world.one.is_leading
    world.time += 9.9
    assert world.one.try_once()
    assert not world.one.is_leading
    world.time += 0.2
    assert world.one.is_leading
    world.one.check_leading("write")


def test_a_renewal_is_one_request() -> None:
    world = World()
    world.one.try_once()
    world.api.asked.clear()
    for _ in range(10):
        world.time += world.one.timings.renew_interval_seconds
        assert world.one.try_once()
    assert world.api.asked == ["PUT"] * 10


def test_a_renewal_that_may_or_may_not_have_come_through_is_read_before_the_next() -> None:
    world = World()
    world.one.try_once()
    world.api.cut = True
    assert not world.one.try_once()
    world.api.cut = False
    world.api.asked.clear()
    world.one.try_once()
    assert world.api.asked == ["GET", "PUT"]


def test_a_leader_that_sleeps_past_its_renew_deadline_writes_nothing() -> None:
    world = World()
    world.one.try_once()
    world.time += 14
    assert world.one.is_leading
    world.time += 2
    with pytest.raises(NotLeading, match="evict: one does not hold the Lease ns/trimtab"):
        world.one.check_leading("evict")


def test_the_last_write_of_the_old_ends_before_the_first_of_the_new_begins() -> None:
    """Whatever moment the old leader is cut off at, and however late it begins its last write."""
    for tenth in range(300):
        world = World()
        world.one.try_once()
        world.two.try_once()
        world.time += 10 + tenth / 10
        world.api.cut = True
        world.one.try_once()
        world.api.cut = False
        assert_the_second_leads_after_the_firsts_last_write(world)


def assert_the_second_leads_after_the_firsts_last_write(world: World) -> None:
    """The second steps every half second until it leads; what the first began while it led has ended by then."""
    last_begin, first = world.time, None
    while first is None:
        if world.one.is_leading:
            last_begin = world.time
        world.two.try_once()
        if world.two.is_leading:
            first = world.time
        world.time += 0.5
    assert last_begin + world.api.deadlines.write <= first


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_lease_that_somebody_takes_from_its_holder_makes_no_two_leaders(how: str) -> None:
    """The holder does not know of it before its next renewal, and writes until then."""
    for tenth in range(0, 160, 3):
        world = World()
        world.one.try_once()
        world.two.try_once()
        world.time += world.one.timings.renew_interval_seconds
        world.one.try_once()
        if how == "deleted":
            world.api.stored = None
        else:
            world.api.edit(holderIdentity="")
        world.time += tenth / 10
        assert_the_second_leads_after_the_firsts_last_write(world)


@pytest.mark.parametrize("tenth", range(0, 160, 7))
def test_a_replica_that_never_saw_the_lease_waits_for_who_may_have_held_it(tenth: int) -> None:
    """Somebody deletes the Lease while a replica starts: it sees none, as in a new cluster."""
    world = World()
    world.one.try_once()
    world.time += 11
    world.one.try_once()
    assert world.one.is_leading
    world.api.stored = None
    world.time += tenth / 10
    assert_the_second_leads_after_the_firsts_last_write(world)


def test_of_two_that_find_no_lease_one_creates_it() -> None:
    """By PUT, so that the right to create it can name it; who comes second is told that it is there already."""
    world = World()
    world.api.stored = None
    request = world.api.request

    def nobody(method: str, path: str, *, deadline: float, doing: str) -> bytes:
        world.api.request = request  # type: ignore[method-assign]
        raise NotFound(doing, 404, ApiStatus())

    assert world.one.try_once()
    world.api.request = nobody  # type: ignore[method-assign]
    assert not world.two.try_once()
    assert world.api.asked == ["GET", "PUT", "PUT", "GET"]
    assert world.two.last_error == ""


def test_a_lease_given_back_is_free_at_once() -> None:
    world = World()
    world.one.try_once()
    world.one.release()
    assert world.two.try_once()


def test_an_earlier_life_of_the_same_name_is_waited_out_too() -> None:
    world = World()
    world.one.try_once()
    second_leader_elector = LeaderElector(world.api, "ns", "trimtab", "one", elapsed=lambda: world.time)  # type: ignore[arg-type]
    assert not second_leader_elector.try_once()
    world.time += 31
    assert second_leader_elector.try_once()


def test_of_two_that_try_at_once_one_loses() -> None:
    world = World()
    world.one.try_once()
    world.two.try_once()
    world.time += 31
    world.api.edits = 99  # somebody else's writes, between reading and writing
    assert not world.two.try_once()


def test_who_edits_the_lease_takes_it_from_nobody() -> None:
    world = World()
    world.one.try_once()
    world.time += 11
    world.one.try_once()
    world.api.edits = 1
    assert world.one.try_once()
    assert world.one.is_leading
    world.time += 14
    world.api.edits = 99  # somebody fights us for every version: we lead as long as if nobody answered
    assert world.one.try_once()
    assert "409" in world.one.last_error
    world.time += 2
    assert not world.one.try_once()
    world.api.edits = 0
    assert world.one.try_once()
    assert world.one.is_leading


def test_an_edit_that_names_another_holder_ends_our_lead_at_once() -> None:
    world = World()
    world.one.try_once()
    world.time += 11
    assert world.one.is_leading
    world.api.edit(holderIdentity="two")
    assert not world.one.try_once()
    assert not world.one.is_leading


def test_what_others_wrote_on_the_lease_stays() -> None:
    world = World()
    world.one.try_once()
    world.api.edit(strategy="theirs")
    world.time += 3
    assert world.one.try_once()
    world.one.release()
    assert world.api.stored is not None
    assert world.api.stored["metadata"]["labels"] == {"team": "theirs"}
    assert world.api.stored["spec"]["strategy"] == "theirs"
    assert world.api.stored["spec"]["holderIdentity"] == ""


def test_a_bug_is_told_once_ends_our_lead_and_not_the_election() -> None:
    world = World()
    world.one.try_once()
    world.time += 11
    world.api.bug = RuntimeError("a bug")
    assert not world.one.try_once()
    assert not world.one.is_leading
    world.one.try_once()
    world.one.release()
    assert world.told == ["RuntimeError: a bug"]
    world.api.bug = None
    world.one.try_once()
    world.time += 31
    assert world.one.try_once()


def test_trouble_is_told_and_not_raised() -> None:
    world = World()
    world.api.cut = True
    assert not world.one.try_once()
    assert world.one.last_error == "cut off"


def test_terms_that_would_let_two_write_are_refused() -> None:
    with pytest.raises(ValueError, match="must together be shorter than the Lease's duration of 20 s"):
        LeaderElector(
            OneLease(), "ns", "l", "one", timings=LeaseTimings(lease_duration_seconds=20, renew_deadline_seconds=12)
        )  # type: ignore[arg-type]
