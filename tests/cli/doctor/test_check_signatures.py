"""Forged, orphaned and unverified: what `doctor` says of what the compactor should have signed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as replace_in

from tests.cli.doctor.worlds import HIDDEN, NOW, WELL, bad
from tests.reasons import has_facts
from trimtab.cli.doctor.command import judge_cluster
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, NotAuthentic, OrderMark
from trimtab.compaction.drain.order_entry import ORDERS, OrderEntry
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.diagnosis.lease_state import LeaseState
from trimtab.diagnosis.observed import SignatureState

NOTE = DrainAnnotation(drain="d1", pool="web", since=1)
FORGED = DrainAnnotations(doubtful={"n1": NotAuthentic("n1", "it carries no signature", NOTE)})


NOTHING = DrainAnnotations()


def signed(
    keys: bool | Unreadable | None = True,
    annotations: DrainAnnotations | Unreadable = NOTHING,
    webhook: bool | Unreadable | None = True,
    **states: PoolState | Unreadable,
) -> SignatureState:
    return SignatureState(webhook_keys=webhook, keys=keys, annotations=annotations, states=states)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (signed(), {}),
        (signed(None), {"signing-key-missing": "error"}),
        (signed(False), {"signing-key-missing": "error"}),
        (signed(HIDDEN), {"not-checked": "unknown"}),
        (signed(webhook=None), {"webhook-signing-key-missing": "warn"}),
        (signed(webhook=False), {"webhook-signing-key-missing": "warn"}),
        (signed(webhook=HIDDEN), {"not-checked": "unknown"}),
        (signed(annotations=HIDDEN), {"not-checked": "unknown"}),
        (signed(annotations=FORGED), {"drain-annotation-not-authentic": "error"}),
        (signed(False, FORGED), {"signing-key-missing": "error", "drain-annotation-not-authentic": "error"}),
        (signed(HIDDEN, FORGED), {"not-checked": "unknown"}),
        (signed(annotations=DrainAnnotations(ours={"n1": NOTE}), web=PoolState(drains={"n1": "d1"})), {}),
        (
            signed(annotations=DrainAnnotations(ours={"n1": NOTE}), web=PoolState(drains={"n2": "d1"})),
            {"drain-orphaned": "warn"},
        ),
        (signed(annotations=DrainAnnotations(ours={"n1": NOTE})), {"state-deleted": "warn"}),
        (signed(annotations=DrainAnnotations(others={"n1": "elsewhere"})), {}),
        (replace(signed(), renamed=(("n1", "the taint trimtab.dev/leaving"),)), {"renamed-word-on-node": "warn"}),
        (replace(signed(), renamed=HIDDEN), {}),
        (signed(web=Unreadable("ConfigMap trimtab-state-web", "no signature")), {"state-not-authentic": "warn"}),
    ],
)
def test_what_is_signed_is_judged(found: SignatureState, says: dict[str, str]) -> None:
    assert bad(signatures=found) == says


def test_a_state_that_was_deleted_is_named_with_all_nodes_of_its_drains() -> None:
    notes = DrainAnnotations(ours={"n2": NOTE, "n1": NOTE, "n3": DrainAnnotation(drain="d3", pool="db", since=1)})
    actual = {
        check_result.finding.reason.sentence
        for check_result in judge_cluster(replace(WELL, signatures=signed(annotations=notes, db=PoolState())))
    }
    assert has_facts(actual, "ConfigMap trimtab-state-web", "pool web", "does not exist", "n1", "n2")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (OrderEntry(name="kernel", since=1, digest="", nodes={"n1": "u1"}), {}),
        (OrderEntry(name="kernel", since=1, digest="", nodes={"n2": "u2"}), {"drain-orphaned": "warn"}),
        (None, {"drain-orphaned": "warn"}),
    ],
)
def test_a_node_that_is_cordoned_for_an_order_needs_the_order_in_the_state(
    entry: OrderEntry | None, says: dict[str, str]
) -> None:
    note = replace_in(NOTE, pool="", order=OrderMark(order="u-1"))
    states = {ORDERS: PoolState(orders={"u-1": entry} if entry is not None else {})}
    assert bad(signatures=signed(annotations=DrainAnnotations(ordered={"n1": note}), **states)) == says


def test_where_no_compactor_is_installed_no_key_is_missed() -> None:
    assert (
        bad(signatures=signed(None), processes={**WELL.processes, "compactor": None}).get("signing-key-missing") is None
    )


def sentences(**other: Any) -> list[str]:
    return [result.finding.reason.sentence for result in judge_cluster(replace(WELL, **other))]


def test_the_nodes_that_the_compactor_drains_are_named_with_the_time_and_the_way_back() -> None:
    state = signed(annotations=DrainAnnotations(ours={"n1": NOTE}), web=PoolState(drains={"n1": "d1"}))
    assert has_facts(sentences(signatures=state), "cordoned 1 node", "n1", "1970-01-01T00:00:01Z", "release --yes NODE")


def test_a_dead_compactor_is_named_with_the_time_since_when() -> None:
    dead = LeaseState(holder="compactor-1", renewed_at=NOW - timedelta(minutes=25), duration_seconds=30)
    [printed_text] = [text for text in sentences(leases={**WELL.leases, "compactor": dead}) if "last renewed" in text]
    since = (NOW - timedelta(minutes=25)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert has_facts(printed_text, "compactor-1", "Lease of the compactor", since, "25 min", "30 s")


def test_a_key_that_is_not_written_yet_needs_time_before_a_restart() -> None:
    world = replace(WELL, signatures=signed(False, webhook=False))
    fixes = {each.finding.reason.code.name: each.finding.fix for each in judge_cluster(world)}
    fix = fixes["signing-key-missing"]
    assert has_facts(fix, "writes the key", "leads", "a minute")
    assert fix.endswith("rollout restart deploy/trimtab-compactor")
    assert has_facts(fixes["webhook-signing-key-missing"], "webhook writes the key", "a minute")
