"""`trimtab admit -o yaml` gives what one would commit: only lines that had to change are others."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_admit import admitted, trimtab
from tests.cli.worlds import DEPLOYMENT, POLICY, write
from tests.reasons import has_facts

SHARED = Path(os.environ.get("TRIMTAB_SHARED", "../shared"))
MANIFESTS = sorted((SHARED / "data" / "manifests").glob("*.yaml"))

EVERYTHING = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: everything}
spec:
  guaranteed: change
  actions:
    requests: {cpu: {from: policy, otherwise: 50m, when: always}, memory: {otherwise: 64Mi}}
    limits: {cpu: remove, memory: request}
    placement:
      require: [{label: pool, in: [shop]}]
      tolerate: [{key: pool, value: shop, effect: NoSchedule}]
    labels: {add: {cost: shop}}
    annotations: {add: {example.com/yes: "yes"}}
"""


def committed(path: Path, *policies: Path) -> str:
    result = trimtab(
        "admit", "-f", path, *(each for policy in policies for each in ("--policies", policy)), "-o", "yaml"
    )
    assert result.exit_code == 0, result.output
    return result.stdout_bytes.decode()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every value of a document with its place; a collection counts as one line of its own."""
    yield path, None if isinstance(value, dict | list) else repr(value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            # By what the item is, so that one that comes or goes moves no others.
            yield from leaves(item, (*path, item.get("name", str(item)) if isinstance(item, dict) else item))


def needless_lines(before: str, after: str) -> list[tuple[int, int]]:
    """Documents with more lines in their diff than one for each value that came, went or changed: how many too many."""
    was, now = (text.split("\n---") for text in (before, after))
    assert len(was) == len(now)
    results = []
    for old, new in ((old, new) for old, new in zip(was, now, strict=True) if old != new):
        a, b = old.splitlines(), new.splitlines()
        common = common_lines(a, b)
        left, right = (set(leaves(yaml.load(text, yaml.CSafeLoader))) for text in (old, new))
        needless = (len(a) - common - len(left - right), len(b) - common - len(right - left))
        results += [needless] if max(needless) > 0 else []
    return results


def common_lines(a: list[str], b: list[str]) -> int:
    """How many lines stay in the shortest diff."""
    row = [0] * (len(b) + 1)
    for line in a:
        last = row
        row = [0]
        for place, other in enumerate(b):
            row.append(last[place] + 1 if line == other else max(last[place + 1], row[place]))
    return row[-1]


@pytest.mark.parametrize("manifests", MANIFESTS or [None], ids=lambda path: path.name if path else "none")
@pytest.mark.parametrize("policy", [None, EVERYTHING], ids=["recommended", "everything"])
def test_real_manifests_change_in_single_lines(tmp_path: Path, manifests: Path | None, policy: str | None) -> None:
    if manifests is None:
        pytest.skip("no manifests are here; set TRIMTAB_SHARED")
    policies = [] if policy is None else [write(tmp_path, policy)]
    text = manifests.read_bytes().decode()
    manifest = committed(manifests, *policies)
    assert manifest != text
    assert needless_lines(text, manifest) == []
    once = write(tmp_path, manifest)
    assert committed(once, *policies) == manifest


def custom_resource_definitions(size: int) -> str:
    """As generators and people write them: folded, quoted, commented, in and out of line."""
    parts, item = ["# All that the operator needs.\n"], 0
    while item < size:
        number = len(parts)
        fields = "".join(
            f"""\
                  field{place}:
                    description: |-
                      Field {place} of kind {number}: it says what   the operator does, and
                      why. More info: https://example.com/{place}#why

                      A second paragraph.
                    {'type: "string"' if place % 2 else "type: string   # plain"}
                    enum: [ a,b , 'c' ]
"""
            for place in range(120)
        )
        parts.append(f"""\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: kind{number}s.example.com
  annotations: {{controller-gen.kubebuilder.io/version: v0.19.0}}
spec:
  group: example.com
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          description: >
            Kind {number} is what
            it is.
          properties:
              spec:
                properties:
{fields}\
# The end of kind {number}.
""")
        item += len(parts[-1])
    return "".join(parts)


def test_two_megabytes_of_definitions_come_out_byte_for_byte(tmp_path: Path) -> None:
    definitions = custom_resource_definitions(2 << 20)
    text = f"{definitions}---\n{DEPLOYMENT}{definitions.removeprefix('# All that the operator needs.')}"
    manifest = committed(write(tmp_path, text), write(tmp_path, POLICY))
    assert manifest.count("\n") < text.count("\n")
    assert needless_lines(text, manifest) == []


def test_every_file_is_printed_and_only_the_changed_ones_differ(tmp_path: Path) -> None:
    service = write(tmp_path, "# no end of line\nkind: Service\napiVersion: v1\nmetadata: {name:   x}")
    web = write(tmp_path, DEPLOYMENT)
    result = trimtab("admit", "-f", service, "-f", web, "--policies", write(tmp_path, POLICY), "-o", "yaml")
    assert result.stdout.startswith(service.read_text() + "\n---\n")


def test_a_byte_order_mark_and_windows_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + DEPLOYMENT.replace("\n", "\r\n").encode())
    manifest = committed(path, write(tmp_path, POLICY))
    assert manifest.startswith("\ufeff")
    assert manifest.count("\r\n") == manifest.count("\n")


_LIST = """\
apiVersion: v1
kind: List   # of one
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
  spec:
    containers:
    -   name: x\t
        image: "x\ty"
        image: x
        resources: {limits: {cpu: 1, memory: &m 1Gi}, requests: {cpu: 1m, memory: *m}}
- apiVersion: v1
  kind: Pod
  metadata: {name: b}
  spec: {containers: [{name: x, image: x}]}
"""


def test_what_kubectl_takes_is_edited_in_place(tmp_path: Path) -> None:
    path, policy = write(tmp_path, _LIST), write(tmp_path, POLICY)
    result = trimtab("admit", "-f", path, "--policies", policy, "-o", "yaml")
    assert result.stdout == _LIST.replace("limits: {cpu: 1, memory: &m 1Gi}", "limits: {memory: &m 1Gi}")
    assert "the key 'image' once" in result.stderr
    assert has_facts(result.stderr, "only", "last value")


_LAYOUT = """\

# What the team says of its pod.
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: x
    image: x
    args: [
      "one",  # the first
      "two"
    ]
    command:
      - - nested
        -   deeper
    resources: {limits: {cpu: 1}, requests: {cpu: 1m}}
---
# Only a comment, to the end of the file.
"""


def test_comments_and_layout_of_a_changed_file_stay(tmp_path: Path) -> None:
    """An empty first line gave the head comment twice, comments in lists and after the last document were lost."""
    text = _LAYOUT.replace("    command:\n      - - nested\n        -   deeper\n", "    command: [ a,b ]\n")
    manifest = committed(write(tmp_path, text), write(tmp_path, POLICY))
    assert manifest == text.replace("limits: {cpu: 1}, ", "")


def test_an_unchanged_file_comes_out_as_it_is_with_lists_in_lists(tmp_path: Path) -> None:
    text = _LAYOUT.replace("kind: Pod", "kind: Widget").replace("v1", "example.com/v1")
    assert committed(write(tmp_path, f"{text}---\n{DEPLOYMENT}"), write(tmp_path, POLICY)).startswith(text)


def test_a_long_list_in_json_is_edited_in_place(tmp_path: Path) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x" * 300_000}}
    items = [config, yaml.safe_load(DEPLOYMENT), config]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2)
    manifest = committed(write(tmp_path, text), write(tmp_path, POLICY))
    assert len(text.splitlines()) - len(manifest.splitlines()) == 3
    del items[1]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert json.loads(manifest)["items"] == items


def test_what_is_left_out_is_told_beside_the_manifests(tmp_path: Path) -> None:
    kafka = "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {name: log}\nspec: {kafka: {replicas: 3}}\n"
    path, policy = write(tmp_path, f"{DEPLOYMENT}---\n{kafka}"), write(tmp_path, POLICY)
    result = trimtab("admit", "-f", path, "--policies", policy, "-o", "yaml")
    assert result.stdout.endswith(kafka)
    assert has_facts(result.stderr, "Kafka log", "operator", "creates the pods")
    assert any("Kafka log" in note for note in admitted("-f", path, "--policies", policy)["notes"])


def test_a_volume_without_a_source_is_written_as_its_author_did(tmp_path: Path) -> None:
    volumes = "      volumes: [{name: tmp}]   # an emptyDir\n"
    policy = "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: scratch}\nspec: {actions: %s}\n"
    text = DEPLOYMENT.rstrip("\n") + "\n" + volumes
    named = committed(write(tmp_path, text), write(tmp_path, policy % "{safeToEvictVolumes: {}}"))
    assert volumes in named
    assert "safe-to-evict-local-volumes: tmp" in named
    bounded = committed(write(tmp_path, text), write(tmp_path, policy % "{emptyDirs: {sizeLimit: 1Gi}}"))
    assert "{name: tmp, emptyDir: {sizeLimit: 1Gi}}" in bounded


_TWO_CLASSES = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: a}
spec: {match: {priorityClasses: [none]}, actions: {priorityClass: {name: low}}}
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: b}
spec: {actions: {priorityClass: {name: high, override: true}}}
"""
_CLASSES = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 10
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""


def test_what_only_the_committed_manifest_gets_is_told(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(DEPLOYMENT + _CLASSES)
    command = ("admit", "-f", path, "--policies", write(tmp_path, _TWO_CLASSES), "-o", "yaml")
    result = trimtab(*command)
    assert "priorityClassName: high" in result.stdout
    assert has_facts(result.stderr, "after", "commit", "first changes")
    path.write_text(result.stdout)
    second_result = trimtab(*command)
    assert (second_result.stdout, "committed" in second_result.stderr) == (result.stdout, False)
