"""Patterns for images match short names and full names."""

import json
import re

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.policies.runner import pods, run, world
from trimtab.cluster.selectors import name_matcher
from trimtab.policy.cel import cel_regex, cel_string
from trimtab.policy.field_types import Authoring, Pattern
from trimtab.policy.image_names import canonical_image, image_test
from trimtab.policy.lint import IMAGE_CHOSEN, has_chosen_image, lint
from trimtab.policy.load import load_policies


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("nginx:1.27", "docker.io/library/nginx:1.27"),
        ("grafana/loki:3", "docker.io/grafana/loki:3"),
        ("localhost/app", "localhost/app"),
        ("registry:5000/app", "registry:5000/app"),
        ("registry.example.com/team/app@sha256:0", "registry.example.com/team/app@sha256:0"),
        ("GHCR.IO/evil/x:1", "ghcr.io/evil/x:1"),
        ("Ghcr.io:443/evil/x:1", "ghcr.io/evil/x:1"),
        ("ghcr.io:4430/evil/x:1", "ghcr.io:4430/evil/x:1"),
        ("GHCR.io:0443/evil/x:1", "ghcr.io/evil/x:1"),
        ("[fd00::1]:00443/evil/x:1", "[fd00::1]/evil/x:1"),
        ("index.docker.io/evil/x:1", "docker.io/evil/x:1"),
        ("registry-1.docker.io:443/evil/x:1", "docker.io/evil/x:1"),
        ("docker.io/nginx", "docker.io/library/nginx"),
        ("Index.Docker.IO/nginx:1", "docker.io/library/nginx:1"),
    ],
)
def test_a_short_name_is_read_as_a_container_runtime_reads_it(image: str, full: str) -> None:
    assert canonical_image(image) == full


def test_a_pattern_means_an_image_as_written_or_by_its_canonical_name() -> None:
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


SPELLINGS = st.builds(
    lambda registry, port, upper: (registry.upper() if upper else registry) + port,
    st.sampled_from(["ghcr.io", "docker.io", "index.docker.io", "registry-1.docker.io"]),
    st.sampled_from(["", ":443", ":0443"]),
    st.booleans(),
)


@given(SPELLINGS, st.sampled_from(["evil/x:1", "x", "a/b/c@sha256:0"]))
def test_no_spelling_of_a_registry_escapes_its_pattern(registry: str, rest: str) -> None:
    patterns = ("ghcr.io/*", "docker.io/*")
    assert image_test(patterns)(f"{registry}/{rest}")


@given(SPELLINGS)
def test_a_pattern_means_its_registry_however_it_is_spelt(registry: str) -> None:
    usual = "ghcr.io" if "ghcr" in registry.lower() else "docker.io"
    assert image_test((f"{registry}/team/*",))(f"{usual}/team/app:1")


REQUIRED = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: sandbox}
spec:
  match:
    namespaces: {include: ["team-*"]}
    %s
  actions: {runtimeClass: {name: gvisor, required: true}}
"""


def field_of_mistake(match: str, *, is_authoring: bool = True) -> list[str]:
    loaded = load_policies([("p.yaml", (REQUIRED % match).encode())], is_authoring=is_authoring)
    return [mistake.field for mistake in loaded.mistakes]


@pytest.mark.parametrize(
    ("match", "fields"),
    [
        ('containers: {images: ["ghcr.io/*"]}', ["spec.match.containers.images"]),
        ("exclude: [{containers: {images: [trusted/*]}}]", ["spec.match.exclude[0].containers"]),
        ("exclude: [{containers: {names: [a]}}]", ["spec.match.exclude[0].containers"]),
        ("containers: {notImages: [registry.example.com/*]}", []),
    ],
)
def test_a_required_action_that_depends_on_an_image_is_refused(match: str, fields: list[str]) -> None:
    assert field_of_mistake(match) == fields


def test_a_stored_policy_that_depends_on_an_image_stays_in_force_with_a_finding() -> None:
    loaded = load_policies([("p.yaml", (REQUIRED % "containers: {images: [ghcr.io/*]}").encode())])
    assert loaded.mistakes == ()
    assert has_chosen_image(loaded.policies.all[0])
    assert IMAGE_CHOSEN in [finding.reason.code for finding in lint(loaded.policies)]


@pytest.mark.parametrize("pattern", ["[^a]b", "team-[^x]*", "[z-a]", "[!z-a]"])
def test_a_pattern_that_cel_reads_otherwise_is_refused_when_it_is_written(pattern: str) -> None:
    assert field_of_mistake(f'containers: {{names: ["{pattern}"]}}') == ["spec.match.containers.names[0]"]
    assert field_of_mistake(f'containers: {{names: ["{pattern}"]}}', is_authoring=False) == []


ACCEPTED = ["[!a]b", "[!]a]", "[]a]", "[a-z]", "[", "a]", "[a-]", "[-a]", "x[!a", "\U0001f600*"]


@pytest.mark.parametrize("pattern", ACCEPTED)
def test_other_patterns_are_accepted(pattern: str) -> None:
    assert field_of_mistake(f'containers: {{names: ["{pattern}"]}}') == []


@given(st.text("ab]![-*?\\^z", min_size=1, max_size=8), st.text("ab]![-^z\\", max_size=4))
def test_the_expression_language_reads_a_pattern_as_the_webhook_does(pattern: str, name: str) -> None:
    """RE2 and Python agree on the expressions that are written; patterns that are refused are left out."""
    try:
        TypeAdapter(Pattern).validate_python(pattern, context=Authoring())
    except ValidationError:
        reject()
    assert bool(re.fullmatch(json.loads(cel_regex((pattern,))), name)) is name_matcher((pattern,))(name)


def test_a_character_outside_of_the_basic_plane_is_one_character_of_an_expression() -> None:
    assert cel_string("\U0001f600") == '"\U0001f600"'
