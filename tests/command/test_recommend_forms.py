"""What `trimtab recommend` tells as a table, CSV, a page, patches, one number, checkpoints of a VPA."""

import csv
import io
from pathlib import Path

import pytest
import yaml

from tests.command.recommending import START, only, usage, web
from tests.command.snapshots import snapshot, told, trimtab
from trimtab.cluster import quantity


def test_the_table_begins_with_what_it_comes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    result = trimtab("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()))
    assert result.output.startswith("1 of 1 container would ask for something else: that saves $")
    assert "1 → 195m" in result.output
    assert "P95 of peaks" in result.output


def test_the_csv_has_a_row_for_each_container(tmp_path: Path) -> None:
    text = trimtab("recommend", "--usage", usage(tmp_path), "-o", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["workload"], row["cpu_proposed"], row["memory_proposed"], row["monthly_saved"]) == (
        "web", "195m", "302Mi", "")  # fmt: skip


def test_the_page_draws_every_curve_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    evil = usage(tmp_path, pod_name="<script>")
    text = trimtab("recommend", "--usage", evil, "-o", "html").stdout
    assert text.count("<svg") == 2
    assert "<script" not in text
    assert "http" not in text


def test_yaml_tells_the_same_as_json(tmp_path: Path) -> None:
    path = usage(tmp_path)
    assert yaml.safe_load(trimtab("recommend", "--usage", path, "-o", "yaml").stdout) == told(
        "recommend", "--usage", path
    )


def test_patches_are_written_for_kustomize(tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    given = ("--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()), "--patch", folder)
    assert trimtab("recommend", *given).exit_code == 0
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    (name,) = [patch["path"] for patch in kustomization["patches"]]
    patch = yaml.safe_load((folder / name).read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "app", "resources": {"requests": {"cpu": "195m", "memory": "302Mi"}}}
    assert (patch["kind"], patch["metadata"]) == ("Deployment", {"name": "web", "namespace": "shop"})


def test_a_sidecars_patch_stands_among_the_init_containers(tmp_path: Path) -> None:
    item = web()
    item["spec"]["initContainers"] = [{**item["spec"]["containers"][0], "restartPolicy": "Always"}]
    item["spec"]["containers"] = [{"name": "other"}]
    folder = tmp_path / "patches"
    trimtab("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, item), "--patch", folder)
    patch = yaml.safe_load((folder / "shop-deployment-web.yaml").read_text())
    assert [found["name"] for found in patch["spec"]["template"]["spec"]["initContainers"]] == ["app"]
    assert "containers" not in patch["spec"]["template"]["spec"]


def test_a_single_series_gives_a_single_number(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("".join(f"{START + n * 600},{0.1 + n % 10 / 1000}\n" for n in range(200)))
    given = ("recommend", "--usage", path, "--number")
    assert float(trimtab(*given).output) == pytest.approx(0.109, rel=0.016)
    assert float(trimtab(*given, "--rule", "steady").output) == pytest.approx(0.109 * 1.05, rel=0.016)


def test_a_history_is_exported_for_a_fresh_vpa_and_read_again(tmp_path: Path) -> None:
    before = only(tmp_path, options=("--export-vpa", str(tmp_path / "vpa.yaml")))
    [document] = yaml.safe_load_all((tmp_path / "vpa.yaml").read_text())
    assert (document["metadata"], document["spec"]) == (
        {"name": "web-app", "namespace": "shop"}, {"vpaObjectName": "web", "containerName": "app"})  # fmt: skip
    (after,) = told("recommend", "--usage", tmp_path / "vpa.yaml")["containers"]
    assert after["cpu"]["samples"] == pytest.approx(before["cpu"]["samples"], abs=10)
    assert quantity.of("cpu", after["cpu"]["p95"]) == pytest.approx(quantity.of("cpu", before["cpu"]["p95"]), rel=0.1)
