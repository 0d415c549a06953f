"""What `kubectl get pools` shows of a pool."""

from dataclasses import replace

import jsonschema
import msgspec
import pytest

from tests.cluster_of import NOW, cluster, node
from tests.reasons import has_facts
from trimtab.cluster.pool import Pool
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.pool_status import (
    MAX_PLAN_NODES,
    PoolStatusFields,
    build_document,
    build_pool_status_crd,
    name_first,
    pool_statuses,
)

WEB = Pool(name="web", labels={"pool": "web"}, dry_run=False)


def status(memory: PoolState, pool: Pool = WEB, paused: str = "") -> PoolStatusFields:
    inventory = cluster(*(node(f"n{number}", labels={"pool": "web"}) for number in range(3)), node("other"))
    view = ClusterView(now=NOW, inventory=inventory, pools=(pool,), paused=paused)
    return pool_statuses(view, {"web": memory}, DrainTimeouts())["web"]


def test_a_pool_says_its_mode_its_nodes_and_what_is_next() -> None:
    actual_status = status(PoolState(plan=("n2", "n1"), plan_wave=1, drains={"n0": "d"}))
    assert (
        actual_status.mode,
        actual_status.nodes,
        actual_status.draining,
        actual_status.next,
        actual_status.wave,
    ) == ("act", 3, 1, "n2, n1", 1)
    assert actual_status.plan == ("n2", "n1")


def test_what_it_waits_for_is_what_the_command_says() -> None:
    assert status(PoolState(plan=("n1",))).waits == ""
    assert has_facts(status(PoolState()).waits, "a plan that drains")
    assert status(PoolState(), paused="paused by hand").waits == "paused by hand"
    assert "mode rehearse" in status(PoolState(), replace(WEB, dry_run=True)).waits
    off = status(PoolState(), replace(WEB, enabled=False))
    assert off.mode == "off"
    assert has_facts(off.waits, "enabled: true", "ConfigMap", "disabled")


def test_what_it_saved_is_said_in_the_unit_people_read() -> None:
    actual_status = status(PoolState(saved=2, worth={"micro-dollars an hour": 384_000}))
    assert (actual_status.saved_nodes, actual_status.saved) == (2, "2 nodes, $280 a month")


def test_a_plan_of_a_thousand_nodes_makes_no_large_object() -> None:
    actual_status = status(PoolState(plan=tuple(f"n{number}" for number in range(1000))))
    assert len(actual_status.plan) == MAX_PLAN_NODES
    assert actual_status.next == "n0, n1, n2 and 997 more"


@pytest.mark.parametrize(
    ("nodes", "text"), [((), "nothing"), (("a",), "a"), (("a", "b", "c", "d"), "a, b, c and 1 more")]
)
def test_the_first_nodes_are_named(nodes: tuple[str, ...], text: str) -> None:
    assert name_first(nodes) == text


def test_the_definition_fits_what_is_written_and_every_field_has_a_description() -> None:
    [version] = build_pool_status_crd()["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    fields = schema["properties"]["status"]["properties"]
    assert {field.encode_name for field in msgspec.structs.fields(PoolStatusFields)} == set(fields)
    assert all(field["description"] for field in fields.values())
    document = msgspec.json.decode(msgspec.json.encode(build_document("web", "ns", "web", status(PoolState()), NOW)))
    jsonschema.validate(document, schema)
    columns = {column["jsonPath"].removeprefix(".status.") for column in version["additionalPrinterColumns"]}
    assert columns <= set(fields)
