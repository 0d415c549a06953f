"""What an estafette node-compactor was told, as pools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.estafette import (
    CONFIG_KEY,
    DIFFERENCE_NOTES,
    MARKED_SECONDS_VARIABLE,
    NODE_AGE_SECONDS_VARIABLE,
    TIMES_UNKNOWN,
    import_pools,
    is_estafette_document,
)
from trimtab.cluster.pool_config import config_map, read_pools
from trimtab.cluster.yaml_documents import Document

WEB = {"enabled": True, "scaleDownCPURequestRatioLimit": 0.75, "scaleDownRequiredUnderutilizedNodeCount": 5}
SAID = {"nodePools": {"web": WEB, "db": {"enabled": False}}}


def document(value: Any) -> Document:
    return Document(file="given.yaml", index=0, value=value)


def in_config_map(text: str) -> Document:
    return document({"kind": "ConfigMap", "metadata": {"name": "estafette"}, "data": {CONFIG_KEY: text}})


def in_chart_values(said: Any = SAID, **more: Any) -> Document:
    return document({"configmap": {"compactorConfig": said if isinstance(said, str) else json.dumps(said)}, **more})


def deployment(*env: tuple[str, Any], image: str = "estafette/estafette-k8s-node-compactor:0.1.36") -> Document:
    container = {"image": image, "env": [{"name": name, "value": value} for name, value in env]}
    return document({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}})


WAYS = {
    "its ConfigMap": in_config_map(json.dumps(SAID)),
    "the JSON by itself": document(SAID),
    "its Helm values": in_chart_values(),
    "Helm values with a mapping": document({"configmap": {"compactorConfig": SAID}}),
}


@pytest.mark.parametrize("way", WAYS)
def test_its_configuration_becomes_pools_that_rehearse(way: str) -> None:
    reading = import_pools([WAYS[way]])
    assert not reading.mistakes
    assert [(pool.name, pool.enabled, pool.under, pool.under_count) for pool in reading.pools] == [
        ("db", False, {"cpu": 0, "memory": 100}, 1),
        ("web", True, {"cpu": 75, "memory": 100}, 5),
    ]
    assert all(pool.dry_run for pool in reading.pools)
    assert set(DIFFERENCE_NOTES) <= set(reading.notes)


TIMES = {
    "the code's own": ([document(SAID)], (300, 1200)),
    "a Deployment that sets none": ([document(SAID), deployment()], (300, 1200)),
    "a Deployment": (
        [deployment((MARKED_SECONDS_VARIABLE, "900"), (NODE_AGE_SECONDS_VARIABLE, "60")), document(SAID)],
        (900, 60),
    ),
    "the chart's own": ([in_chart_values()], (600, 0)),
    "Helm values": ([in_chart_values(neededMarkedTimeForRemovalSeconds=120, minimumNodeAgeSeconds=7)], (120, 7)),
    "another registry": (
        [document(SAID), deployment((MARKED_SECONDS_VARIABLE, "5"), image="r.io:5000/x/y@sha256:0")],
        (5, 1200),
    ),
}


@pytest.mark.parametrize("case", TIMES)
def test_the_times_are_those_it_had(case: str) -> None:
    documents, expected = TIMES[case]
    reading = import_pools(documents)
    assert {(pool.under_for, pool.node_age) for pool in reading.pools} == {expected}
    assert (TIMES_UNKNOWN in reading.notes) is (case == "the code's own")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"nodePools": {"web": 5}}',
        '{"nodePools": {"web": {"scaleDownCPURequestRatioLimit": 75}}}',
        '{"nodePools": {"web": {"scaleDownRequiredUnderutilizedNodeCount": -1}}}',
        '{"nodePools": {"Web_1": {}}}',
    ],
)
def test_a_configuration_that_makes_no_sense_is_told(text: str) -> None:
    assert import_pools([in_config_map(text)]).mistakes
    assert import_pools([in_chart_values(text)]).mistakes


def test_every_mistake_of_a_pool_is_told_at_once() -> None:
    text = {"nodePools": {"web": {"scaleDownCPURequestRatioLimit": 75, "scaleDownRequiredUnderutilizedNodeCount": "x"}}}
    assert len(import_pools([document(text)]).mistakes) == 2


def test_a_time_that_is_no_number_is_told() -> None:
    [mistake] = import_pools([deployment((MARKED_SECONDS_VARIABLE, "5m"))]).mistakes
    assert "env[0].value" in str(mistake)
    assert import_pools([in_chart_values(minimumNodeAgeSeconds=True)]).mistakes


def test_a_pool_in_two_documents_is_a_mistake() -> None:
    [mistake, _] = import_pools([document(SAID), in_config_map(json.dumps(SAID))]).mistakes
    assert "no other document" in str(mistake)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"kind": "Deployment"},
        {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [5]}}}},
        {"kind": "ConfigMap", "data": {"other": "1"}},
        {"kind": "X", "nodePools": {}},
        {"configmap": "text"},
    ],
)
def test_other_documents_are_not_its(value: Any) -> None:
    assert not is_estafette_document(document(value))


@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True),
        st.fixed_dictionaries(
            {},
            optional={
                "enabled": st.booleans(),
                "scaleDownCPURequestRatioLimit": st.floats(0, 1),
                "scaleDownRequiredUnderutilizedNodeCount": st.integers(0, 10**6),
            },
        ),
        max_size=4,
    )
)
def test_a_pool_written_as_a_config_map_is_read_as_the_same_pool(said: dict[str, Any]) -> None:
    reading = import_pools([document({"nodePools": said})])
    written = [document(config_map(pool, "trimtab-system", ["from estafette"])) for pool in reading.pools]
    second_pool_reading = read_pools(written)
    assert not second_pool_reading.mistakes
    assert second_pool_reading.pools == reading.pools


def test_the_example_on_the_page_is_a_configuration() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/from-rehearsal-to-act.md").read_text()
    section = page.partition("\n## From an estafette")[2]
    example = yaml.safe_load(section.split("```yaml\n")[1].split("```")[0])
    reading = import_pools([document(example)])
    assert not reading.mistakes
    assert [(pool.name, pool.dry_run) for pool in reading.pools] == [("web", True)]
