"""What `trimtab recommend` tells as a table, CSV, a page, patches, one number, checkpoints of a VPA."""

import csv
import gzip
import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.recommending import START, only, usage, web
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item
from tests.reasons import has_facts
from trimtab.cluster import quantity


def test_the_table_begins_with_what_it_comes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    result = trimtab("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()))
    assert has_facts(result.output, "1 of 1 container", "different request", "saves $")
    assert "1 → 208m" in result.output
    assert has_facts(result.output, "peak", "14 days plus")


def test_the_table_has_no_less_than_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    item = web()
    item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "208m", "memory": "346Mi"}}
    text = trimtab("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, item)).output
    assert " 0.00 " in " ".join(text.split())
    assert "-0.00" not in text


def test_the_csv_has_a_row_for_each_container(tmp_path: Path) -> None:
    text = trimtab("recommend", "--usage", usage(tmp_path), "-o", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["workload"], row["cpu_proposed"], row["memory_proposed"], row["monthly_saved"]) == (
        "web",
        "208m",
        "346Mi",
        "",
    )


def test_the_page_draws_every_curve_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    evil = usage(tmp_path, pod_name="<script>")
    text = trimtab("recommend", "--usage", evil, "-o", "html").stdout
    assert text.count("<svg") == 2
    assert "2026-01-05" in text
    assert "confidence 100%" in text
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text


def test_yaml_tells_the_same_as_json(tmp_path: Path) -> None:
    path = usage(tmp_path)
    assert yaml.safe_load(trimtab("recommend", "--usage", path, "-o", "yaml").stdout) == told(
        "recommend", "--usage", path
    )


def test_patches_are_written_for_kustomize(tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    arguments = ("--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()), "--patch", folder)
    assert trimtab("recommend", *arguments).exit_code == 0
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    (name,) = [patch["path"] for patch in kustomization["patches"]]
    patch = yaml.safe_load((folder / name).read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "app", "resources": {"requests": {"cpu": "208m", "memory": "346Mi"}}}
    assert (patch["kind"], patch["metadata"]) == ("Deployment", {"name": "web", "namespace": "shop"})


def test_a_patch_lowers_nothing_that_is_not_sure_unless_that_is_wanted(tmp_path: Path) -> None:
    short = usage(tmp_path, hours=48)
    item = web(requests={"cpu": "1", "memory": "64Mi"})
    arguments = ("recommend", "--usage", short, "--cluster", snapshot(tmp_path, item), "--patch")
    result = trimtab(*arguments, tmp_path / "sure")
    assert has_facts(result.output, "not lowered", "50%", "--min-confidence", "shop/web/app cpu")
    assert resources(tmp_path / "sure").keys() == {"memory"}
    assert trimtab(*arguments, tmp_path / "all", "--min-confidence", "0").exit_code == 0
    assert resources(tmp_path / "all").keys() == {"cpu", "memory"}


def resources(folder: Path) -> dict[str, str]:
    (name,) = [patch["path"] for patch in yaml.safe_load((folder / "kustomization.yaml").read_text())["patches"]]
    (container,) = yaml.safe_load((folder / name).read_text())["spec"]["template"]["spec"]["containers"]
    requests: dict[str, str] = container["resources"]["requests"]
    return requests


def workload(kind: str, name: str, **more: Any) -> Item:
    """As it stands in Git: an image, a request of a core, no namespace."""
    container = {"name": "app", "image": "registry/app:1", "resources": {"requests": {"cpu": "1"}}}
    pod: Item = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container, {"name": "x", "image": "x"}]},
    }
    spec: Item = {"selector": {"matchLabels": {"app": name}}, "template": pod, **more}
    if kind == "CronJob":
        pod["spec"]["restartPolicy"] = "Never"
        spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": pod}}}
    version = {"CronJob": "batch/v1", "Rollout": "argoproj.io/v1alpha1"}.get(kind, "apps/v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def in_shop(item: Item, namespace: str = "shop") -> Item:
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


def used(folder: Path, *names: str) -> Path:
    """A day of usage of each workload, told as KIND/NAME."""
    rows = [f"{START + n * 600},shop,{name},app,0.2,300Mi" for name in names for n in range(150)]
    path = folder / "used.csv"
    path.write_text("timestamp,namespace,workload,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_the_real_kustomize_merges_every_patch_and_keeps_what_it_does_not_name(tmp_path: Path) -> None:
    workloads = [workload(kind, f"{kind.lower()}-a") for kind in ("Deployment", "StatefulSet", "DaemonSet", "CronJob")]
    names = [f"{item['kind']}/{item['metadata']['name']}" for item in workloads]
    arguments = (
        "--usage",
        used(tmp_path, *names),
        "--cluster",
        snapshot(tmp_path, *map(in_shop, workloads)),
        "--patch",
        tmp_path / "patches",
        "--rule",
        "p95",
        "--min-confidence",
        "0",
    )
    assert trimtab("recommend", *arguments).exit_code == 0
    base = tmp_path / "base"
    base.mkdir()
    (base / "all.yaml").write_text(yaml.safe_dump_all(workloads))
    overlay = {"namespace": "shop", "resources": ["all.yaml"], "components": ["../patches"]}
    (base / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    done = subprocess.run(["kubectl", "kustomize", base], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout))
    assert len(objects) == 4
    for item in objects:
        spec = item["spec"]["jobTemplate"]["spec"] if item["kind"] == "CronJob" else item["spec"]
        app, other = spec["template"]["spec"]["containers"]
        assert (app["image"], app["resources"]["requests"]) == ("registry/app:1", {"cpu": "200m", "memory": "300Mi"})
        assert other == {"name": "x", "image": "x"}
        assert item["metadata"]["namespace"] == "shop"


def test_a_custom_kind_gets_no_patch_and_that_is_said(tmp_path: Path) -> None:
    cluster = snapshot(tmp_path, in_shop(workload("Rollout", "web")))
    arguments = ("--usage", used(tmp_path, "Rollout/web"), "--cluster", cluster, "--patch", tmp_path / "patches")
    result = trimtab("recommend", *arguments)
    assert has_facts(result.stderr, "no patch", "kustomize", "Rollout shop/web")
    assert yaml.safe_load((tmp_path / "patches" / "kustomization.yaml").read_text())["patches"] == []


def test_a_name_in_two_namespaces_is_told_apart_by_them(tmp_path: Path) -> None:
    path = used(tmp_path, "Deployment/web")
    path.write_text(path.read_text() + path.read_text().replace(",shop,", ",other,").split("\n", 1)[1])
    cluster = snapshot(tmp_path, *(in_shop(workload("Deployment", "web"), name) for name in ("shop", "other")))
    trimtab("recommend", "--usage", path, "--cluster", cluster, "--patch", tmp_path / "patches")
    patches = yaml.safe_load((tmp_path / "patches" / "kustomization.yaml").read_text())["patches"]
    assert {patch["target"]["namespace"] for patch in patches} == {"shop", "other"}


def test_a_sidecars_patch_stands_among_the_init_containers(tmp_path: Path) -> None:
    item = web()
    item["spec"]["initContainers"] = [{**item["spec"]["containers"][0], "restartPolicy": "Always"}]
    item["spec"]["containers"] = [{"name": "other"}]
    folder = tmp_path / "patches"
    trimtab("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, item), "--patch", folder)
    patch = yaml.safe_load((folder / "shop-deployment-web.yaml").read_text())
    assert [entry["name"] for entry in patch["spec"]["template"]["spec"]["initContainers"]] == ["app"]
    assert "containers" not in patch["spec"]["template"]["spec"]


def test_a_single_series_gives_a_single_number(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("".join(f"{START + n * 600},{0.1 + n % 10 / 1000}\n" for n in range(200)))
    arguments = ("recommend", "--usage", path, "--number")
    assert float(trimtab(*arguments, "--rule", "p95").output) == pytest.approx(0.109, rel=0.016)
    assert 0.109 < float(trimtab(*arguments).output) < 0.2
    assert float(trimtab(*arguments, "--rule", "p95 +5%").output) == pytest.approx(0.109 * 1.05, rel=0.016)
    assert float(trimtab(*arguments, "--rule", "p45").output) == pytest.approx(0.104, rel=0.016)


def test_a_single_series_of_bytes_needs_its_quantity(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("".join(f"{START + n * 600},{(100 + n % 10) << 20}\n" for n in range(200)))
    arguments = ("recommend", "--usage", path, "--number", "--rule", "max")
    assert "say --quantity bytes" in trimtab(*arguments).output
    assert float(trimtab(*arguments, "--quantity", "bytes").output) == pytest.approx(109 << 20, rel=0.016)


def test_a_history_is_exported_for_a_fresh_vpa_and_read_again(tmp_path: Path) -> None:
    before = only(tmp_path, options=("--export-vpa", str(tmp_path / "vpa.yaml")))
    [document] = yaml.safe_load_all((tmp_path / "vpa.yaml").read_text())
    assert (document["metadata"], document["spec"]) == (
        {"name": "web-app", "namespace": "shop"},
        {"vpaObjectName": "web", "containerName": "app"},
    )
    (after,) = told("recommend", "--usage", tmp_path / "vpa.yaml")["containers"]
    assert after["cpu"]["samples"] == pytest.approx(before["cpu"]["samples"], abs=10)
    assert quantity.scheduler_value("cpu", after["cpu"]["p95"]) == pytest.approx(
        quantity.scheduler_value("cpu", before["cpu"]["p95"]), rel=0.1
    )


def test_without_a_snapshot_the_table_has_no_column_that_it_takes_one_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "cpu.csv").write_text("timestamp,cpu\n" + "".join(f"{START + n * 600},0.1\n" for n in range(200)))
    text = trimtab("recommend", "--usage", tmp_path / "cpu.csv").output
    assert has_facts(text, "request", "1 of 1 container")
    for title in ("PODS", "SAVES $", "SEVERITY", "? →"):
        assert title not in text
    assert has_facts(text, "memory", "no memory usage")


def test_usage_that_went_through_gzip_is_read(tmp_path: Path) -> None:
    path = usage(tmp_path)
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "usage.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert told("recommend", "--usage", packed / "usage.csv.gz") == told("recommend", "--usage", path)
    assert told("recommend", "--usage", packed) == told("recommend", "--usage", path)
    (packed / "usage.csv.gz").write_bytes(gzip.compress(path.read_bytes())[:-100])
    result = trimtab("recommend", "--usage", packed)
    assert result.exit_code == 2
    assert has_facts(result.output, "usage.csv.gz", "complete gzip")


@pytest.mark.parametrize(("now", "is_said"), [("2026-01-19T00:00:00Z", False), ("2026-01-23T00:00:00Z", True)])
def test_the_headline_says_how_much_of_a_saving_is_doubtful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: str, is_said: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()), "--now", now)
    assert (has_facts(trimtab(*arguments).output, "confidence", "below 50%")) is is_said
