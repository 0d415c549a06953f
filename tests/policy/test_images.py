"""Patterns for images match short names and full names."""

import pytest

from tests.policies.runner import pods, run, world
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import full_image_name, image_test


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("nginx:1.27", "docker.io/library/nginx:1.27"),
        ("grafana/loki:3", "docker.io/grafana/loki:3"),
        ("localhost/app", "localhost/app"),
        ("registry:5000/app", "registry:5000/app"),
        ("registry.example.com/team/app@sha256:0", "registry.example.com/team/app@sha256:0"),
    ],
)
def test_a_short_name_is_read_as_a_container_runtime_reads_it(image: str, full: str) -> None:
    assert full_image_name(image) == full


def test_a_pattern_means_an_image_as_written_or_by_its_full_image_name() -> None:
    assert image_test(("docker.io/*",))("nginx:1.27")
    assert image_test(("nginx*",))("nginx:1.27")
    assert not image_test(("registry.example.com/*",))("nginx:1.27")


POLICY = b"""
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: foreign}
spec:
  match: {containers: {notImages: ["registry.example.com/*"]}}
  actions: {labels: {add: {foreign: "yes"}}}
"""


@pytest.mark.parametrize(("second", "foreign"), [("registry.example.com/b", False), ("b", True)])
def test_one_container_from_elsewhere_is_enough_for_not_images(second: str, foreign: bool) -> None:
    containers = f"[{{name: a, image: registry.example.com/a}}, {{name: b, image: {second}}}]"
    ((pod, namespace),) = pods(f"kind: Pod\nmetadata: {{name: p}}\nspec: {{containers: {containers}}}".encode())
    result = run(pod, namespace, load_policies([("p", POLICY)]).policies.all, world())
    assert bool(result.decisions[0].changes) is foreign
