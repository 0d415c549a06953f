"""The examples for Argo CD and Flux give the chart values that it takes, and ignore what the cluster writes."""

import re
from typing import Any

import jsonschema
import yaml

from docs.chart.values import schema
from tests.docs.test_links import ROOT
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues

PAGE = (ROOT / "docs/how-to/install-in-a-cluster.md").read_text(encoding="utf-8")
OBJECTS: dict[str, Any] = {
    item["kind"]: item
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for item in yaml.safe_load_all(block)
}
CHECK = jsonschema.Draft7Validator(schema())


def test_the_values_are_values_of_the_chart() -> None:
    values = (
        OBJECTS["Application"]["spec"]["source"]["helm"]["valuesObject"],
        OBJECTS["HelmRelease"]["spec"]["values"],
    )
    assert [error.message for one in values for error in CHECK.iter_errors(one)] == []


def test_the_path_is_the_charts() -> None:
    assert (ROOT / OBJECTS["Application"]["spec"]["source"]["path"] / "Chart.yaml").exists()
    assert (ROOT / OBJECTS["HelmRelease"]["spec"]["chart"]["spec"]["chart"] / "Chart.yaml").exists()


def test_every_webhook_configuration_is_ignored_where_replicas_write_it() -> None:
    kinds = {
        item["kind"] for item in render_manifests(InstallValues()) if item["kind"].endswith("WebhookConfiguration")
    }
    assert kinds <= {one["kind"] for one in OBJECTS["Application"]["spec"]["ignoreDifferences"]}
    drift = OBJECTS["HelmRelease"]["spec"]["driftDetection"]["ignore"]
    assert kinds <= {one["target"]["kind"] for one in drift}
