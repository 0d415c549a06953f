"""The chart and the kustomize base hold what `trimtab install` applies."""

import tomllib
from functools import cache
from pathlib import Path

import yaml

from docs.chart.files import BASE, CHART, files
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues
from trimtab.policy.schema import build_crd

ROOT = Path(__file__).resolve().parents[3]
chart_files = cache(files)


def test_the_base_is_all_of_it_and_nothing_else() -> None:
    resources = yaml.safe_load(chart_files()[f"{BASE}/kustomization.yaml"])["resources"]
    items = [item for name in resources for item in yaml.safe_load_all(chart_files()[f"{BASE}/{name}"])]
    key = lambda item: (item["kind"], item["metadata"]["name"])  # noqa: E731
    assert sorted(items, key=key) == sorted(render_manifests(InstallValues()), key=key)


def test_no_file_lies_about_that_is_not_generated() -> None:
    there = {str(p.relative_to(ROOT)) for place in (CHART, BASE) for p in (ROOT / place).rglob("*") if p.is_file()}
    assert there == set(chart_files())


def test_the_crd_comes_before_everything_and_stays() -> None:
    assert yaml.safe_load(chart_files()[f"{CHART}/crds/podpolicies.yaml"]) == build_crd()
    assert not any("CustomResourceDefinition" in text for name, text in chart_files().items() if "/templates/" in name)


def test_the_default_image_is_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load(chart_files()[f"{CHART}/Chart.yaml"])["appVersion"] == version
    assert InstallValues().image == f"trimtab:{version}"
