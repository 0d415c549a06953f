"""What the recommender publishes is what `trimtab admit` goes by, and says."""

import json
from pathlib import Path

import yaml

from tests.cli.snapshots import trimtab
from tests.cluster_of import Item
from tests.reasons import has_facts
from tests.recommender.played import Process, World, moments
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.publisher import render_missing

RULES = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "usage"},
    "spec": {"actions": {"requests": {"cpu": {"from": "usage", "otherwise": "55m"}}}},
}


def _config_map(number: int, text: str) -> Item:
    name = f"trimtab-recommendations-{number:03}"
    metadata = {"name": name, "namespace": "trimtab-system", "labels": {RECOMMENDATIONS_LABEL: "v1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {PAYLOAD_KEY: text}}


def explained(world: World, folder: Path, workload: str) -> str:
    """`trimtab admit --details` of a Deployment, beside a cluster that holds what is published."""
    container = {"name": "app", "image": "app:1"}
    labels = {"app": workload}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    shards = [_config_map(number, text) for number, text in world.told.stored.items()]
    for name, documents in (("pods", [deployment]), ("cluster", shards), ("policies", [RULES])):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(documents))
    result = trimtab(
        "admit",
        "-f",
        folder / "pods.yaml",
        "--cluster",
        folder / "cluster.yaml",
        "--policies",
        folder / "policies.yaml",
        "--details",
    )
    assert result.exit_code == 0, result.output
    return " ".join(result.output.replace("│", " ").split())


def lived() -> tuple[World, Process]:
    """Web for two days, new for two hours."""
    world = World().runs("web", cores=0.3)
    process = moments(world).lives(2 * DAY)
    world.runs("new")
    return world, process.lives(7200)


def test_a_request_says_where_it_is_from_of_how_much_history_and_how_sure(tmp_path: Path) -> None:
    world, _ = lived()
    text = explained(world, tmp_path, "web")
    assert has_facts(text, "largest usage", "3 days plus")
    assert "over 2" in text
    assert "(confidence 1" in text


def test_half_an_hour_of_history_gives_the_default_and_the_reason(tmp_path: Path) -> None:
    world = World().runs("web", cores=0.3)
    process = moments(world).lives(2 * DAY)
    world.runs("new")
    process.lives(1800)
    text = explained(world, tmp_path, "new")
    assert "55m" in text
    assert has_facts(text, "no usage", "container app", "Deployment shop/new")
    document = json.loads(render_missing(process.loop.recommendations))
    lacking = {one["resource"]: one for one in document["missing"] if one["container"] == "shop/Deployment/new/app"}
    assert (lacking["cpu"]["reason"], lacking["cpu"]["need"]) == ("insufficient-history", "an hour, 10 samples")


def test_two_hours_of_history_fill_a_missing_request_with_wide_bounds(tmp_path: Path) -> None:
    world, _ = lived()
    text = explained(world, tmp_path, "new")
    assert "55m" not in text
    assert has_facts(text, "largest usage", "1 day plus")


def test_who_waits_says_that_it_knows_nothing() -> None:
    assert json.loads(render_missing(None)) == {"leading": False, "missing": []}
