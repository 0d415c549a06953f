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
from trimtab.policy.image_names import canonical_image, image_regex, image_test
from trimtab.policy.lint import IMAGE_CHOSEN, is_avoidable, lint
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
    assert is_avoidable(loaded.policies.all[0])
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


@pytest.mark.parametrize(
    ("pattern", "selected", "others"),
    [
        ("*.dkr.ecr.*.amazonaws.com/*", ["1.dkr.ecr.eu.amazonaws.com/a/b:1"], ["evil.io/a.dkr.ecr.b.amazonaws.com/x"]),
        ("*.corp.io/*", ["r.corp.io/x", "R.Corp.IO:443/a/b"], ["evil.io/r.corp.io/x", "evil/r.corp.io/x"]),
        ("?.corp.io/*", ["r.corp.io/x"], ["evil.io/r.corp.io/x", "/.corp.io/x"]),
        ("r[!a]corp.io/*", ["r.corp.io/x"], ["r/corp.io/x"]),
        ("r[+-9]corp.io/*", ["r.corp.io/x"], ["r/corp.io/x"]),
        ("*/team/*", ["ghcr.io/team/a/b", "localhost/team/x"], ["ghcr.io/evil/team/x"]),
        ("graf*/loki:*", ["grafana/loki:1", "docker.io/grafana/loki:1"], ["grafana/evil/loki:1", "graf.io/a/loki:1"]),
        ("nginx*", ["nginx", "nginx:1", "docker.io/library/nginx:1"], ["nginx.evil.io/x", "nginxevil/x"]),
        ("*.GCR.io/*", ["eu.gcr.io/x", "EU.gcr.IO/x"], ["gcr.io/x"]),
        ("GHCR.*/x", ["ghcr.io/x"], ["ghcr.io/y"]),
        ("*.docker.io:443/x", ["a.docker.io/x", "a.docker.io:443/x"], ["a.docker.io:5000/x"]),
        ("docker.*/nginx:1", ["nginx:1", "docker.io/library/nginx:1"], ["evil/nginx:1"]),
        ("*:latest", ["nginx:latest", "ghcr.io/a/b:latest"], ["nginx:1"]),
        ("*", ["nginx", "ghcr.io/a/b:latest"], []),
        ("ghcr.io/team*", ["ghcr.io/team/a/b", "ghcr.io/teams/a"], ["ghcr.io/a/team"]),
    ],
)
def test_a_wildcard_in_a_registry_does_not_cross_a_slash(pattern: str, selected: list[str], others: list[str]) -> None:
    assert [image for image in (*selected, *others) if image_test((pattern,))(image)] == selected


@given(st.text("aB.*?[!]-9+:", min_size=1, max_size=8), st.text("a*/b", max_size=4), st.text("aB./:9+", max_size=12))
def test_an_image_of_another_registry_is_never_selected(first: str, rest: str, image: str) -> None:
    """Only a pattern that may also stand for a namespace of Docker Hub selects an image of another first part."""
    registry = canonical_image(image).partition("/")[0]
    selects_registry = name_matcher((first, first.lower(), first.lower().removesuffix(":443")))(registry)
    if registry != "docker.io" and not selects_registry:
        assert not image_test((f"{first}/{rest}",))(image)


@given(
    st.lists(st.text("aBc.io*?[!]-/:", min_size=1, max_size=8), min_size=1, max_size=3),
    st.sampled_from(["", "ghcr.io/", "docker.io/", "A.io:443/", "a/"]),
    st.text("aBc.io/:\n", max_size=8),
)
def test_an_expression_and_the_webhook_agree_on_images(patterns: list[str], registry: str, rest: str) -> None:
    image = registry + rest
    expected = bool(re.fullmatch(image_regex(tuple(patterns)), canonical_image(image)))
    assert image_test(tuple(patterns))(image) is expected


@pytest.mark.parametrize(
    "pattern",
    ["*", "*nginx*", "*/team/*", "*corp.io/*", "registry.*/x", "ghcr*.io/x", "[a-z]?/x", "graf*/loki", "*.*/x"],
)
def test_a_pattern_that_fixes_no_registry_frees_no_pod_of_a_required_action(pattern: str) -> None:
    match = f'containers: {{notImages: ["ghcr.io/team/*", "{pattern}"]}}'
    assert field_of_mistake(match) == ["spec.match.containers.notImages[1]"]
    assert field_of_mistake(match, is_authoring=False) == []


@pytest.mark.parametrize(
    "pattern",
    ["*.dkr.ecr.*.amazonaws.com/*", "*-docker.pkg.dev/corp/*", "r.corp.io:*/x", "team/*", "nginx*", "localhost/x*"],
)
def test_a_pattern_that_fixes_a_registry_may_free_pods(pattern: str) -> None:
    assert field_of_mistake(f'containers: {{notImages: ["{pattern}"]}}') == []
