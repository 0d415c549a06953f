"""Why is there no recommendation yet? What the recommender keeps says so, where users look."""

from pathlib import Path

import yaml

from tests.cli.recommending import START, WEB, api, kubeconfig, told
from tests.cli.snapshots import trimtab
from tests.cluster_of import Item
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, serving
from trimtab.cluster.recommendation import ShardLayout
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.checkpoint import encode
from trimtab.histogram.live_history import LiveHistory

LACKING = "container app", "have 0.8 hours, 6 samples; need an hour, 10 samples"
RULES = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "usage"},
    "spec": {"actions": {"requests": {"cpu": {"from": "usage", "otherwise": "55m"}}}},
}


def shard() -> Item:
    """Two hours of web."""
    diary, app = LiveHistory(), ContainerKey("shop", "Deployment", "web", "app")
    for at in range(START, START + 3600, 600):
        diary.add_sample(app, WEB, "cpu", at, 0.25)
    return {
        "metadata": {"name": "trimtab-usage-000", "namespace": "trimtab-system"},
        "data": {"usage.json": encode(diary, [app], ShardLayout())},
    }


def kept(asked: Asked, status: int = 200) -> Answer:
    if asked[0] == "/api/v1/namespaces/trimtab-system/configmaps":
        return status, {
            "kind": "ConfigMapList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"},
            "items": [shard()],
            "message": "no",
        }
    return api(asked)


def explained(folder: Path, url: str) -> str:
    """`trimtab admit --details` of Deployment web."""
    labels, container = {"app": "web"}, {"name": "app", "image": "app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    for name, document in (("web", deployment), ("rules", RULES)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
    result = trimtab(
        "admit",
        "-f",
        folder / "web.yaml",
        "--policies",
        folder / "rules.yaml",
        "--cluster",
        "live",
        "--kubeconfig",
        kubeconfig(folder, url),
        "--details",
    )
    assert result.exit_code == 0, result.output
    return " ".join(result.output.replace("│", " ").split())


def test_admit_says_what_there_is_of_what_it_takes(tmp_path: Path) -> None:
    with serving(kept) as server:
        text = explained(tmp_path, server.url)
    assert has_facts(text, *LACKING)
    assert "the policy says 55m" in text


def test_where_it_may_not_be_read_that_is_a_note(tmp_path: Path) -> None:
    with serving(lambda request: kept(request, 403)) as server:
        text = explained(tmp_path, server.url)
    assert has_facts(text, "history", "not be read")
    assert has_facts(text, "no usage", "container app", "Deployment shop/web")


def test_recommend_says_it_too(tmp_path: Path) -> None:
    with serving(kept) as server:
        report = told("recommend", "--cluster", "live", "--kubeconfig", kubeconfig(tmp_path, server.url))
    (container,) = report["containers"]
    assert (container["cpu"]["missing"]["have"], container["cpu"]["proposed"]) == ("0.8 hours, 6 samples", None)
