"""A name that the user typed and the input does not have is a mistake with the nearest name, never an empty success."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.recommending import kubeconfig
from tests.cli.snapshots import trimtab
from tests.golden.commands import ARGUMENTS
from tests.golden.recorded_api import serve_objects
from tests.golden.snapshots import GoldenSnapshot, load_snapshot
from trimtab.cli.command_tree import iterate_contexts
from trimtab.cluster.config_error import suggest_name

PROPOSES_FOR = {"metrics-api propose-hpa": "the namespace is that of the HPA to write, and its history has none"}
"""Verb with --namespace → why no input says which namespaces there are."""


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, GoldenSnapshot]]:
    """A folder with the files of a cluster, and a kubeconfig of an API server that has its objects."""
    snapshot = load_snapshot("pools")
    folder = tmp_path_factory.mktemp("names")
    snapshot.write(folder)
    with serve_objects((*snapshot.objects, *snapshot.policies)) as url:
        kubeconfig(folder, url)
        yield folder, snapshot


def verbs_with(option: str) -> list[str]:
    return [
        context.command_path.removeprefix("trimtab ")
        for context in iterate_contexts()
        if any(isinstance(each, click.Option) and option in each.opts for each in context.command.params)
    ]


def assert_refused(line: list[str], name: str, nearest: str) -> None:
    result = trimtab(*line)
    assert (result.exit_code, result.stdout) == (2, "")
    assert name in result.stderr
    assert f"did you mean '{nearest}" in result.stderr


@pytest.mark.parametrize("verb", sorted({*verbs_with("--namespace")} - {*PROPOSES_FOR, "why pod"}))
def test_a_namespace_that_does_not_exist_is_a_mistake(
    verb: str, golden: tuple[Path, GoldenSnapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, snapshot = golden
    monkeypatch.chdir(folder)
    words = [word.format_map(snapshot.names) if "{" in word else word for word in ARGUMENTS[verb][0]]
    assert_refused([*verb.split(), *words, "--namespace", "shopp"], "shopp", "shop")


NAMES = (
    ("why pod {pod}x --cluster cluster.json", "{pod}"),
    ("why node {node}x --cluster cluster.json", "{node}"),
    ("drain {node}x --dry-run --cluster cluster.json", "{node}"),
    ("drain --pool wep --dry-run --cluster cluster.json", "web"),
    ("plan --cluster cluster.json --explain node {node}x", "{node}"),
    ("plan --cluster cluster.json --explain pod {pod}x", "{pod}"),
    ("plan --cluster cluster.json --preset wep=keen", "web"),
    ("plan --cluster cluster.json --for-node-of wep", "web"),
    ("simulate --cluster cluster.json --explain node {node}x", "{node}"),
    ("machines profile --cluster cluster.json --pool wep", "web"),
    ("machines rank --cluster cluster.json --pool wep", "web"),
    ("reserved formula --cluster cluster.json --pool wep", "web"),
    ("machines rank --cluster cluster.json --types m5.larg", "m5.large"),
    ("machines legacy --cluster cluster.json --pool wep --to-pool batch", "web"),
    ("scheduler config --cluster cluster.json --pool wep", "web"),
    ("policies explain no-cpu-limit", "no-cpu-limits"),
    ("policies rollout {policy}x --cluster cluster.json", "{policy}"),
    ("recommend --cluster cluster.json --usage usage.csv --kind Deploymen", "deployment"),
    ("lint --cluster cluster.json --only L99", "L"),
    ("compactor history --pool wep --kubeconfig kubeconfig", "web"),
    ("savings --pool wep --kubeconfig kubeconfig", "web"),
    ("top --once --pool wep --kubeconfig kubeconfig", "web"),
)
"""A command line with a name that nothing has, and the nearest name."""


@pytest.mark.parametrize(("line", "nearest"), NAMES, ids=[line for line, _ in NAMES])
def test_a_name_that_does_not_exist_is_a_mistake_with_the_nearest_name(
    line: str, nearest: str, golden: tuple[Path, GoldenSnapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, snapshot = golden
    monkeypatch.chdir(folder)
    names = dict(snapshot.names)
    assert_refused([word.format_map(names) for word in line.split()], "", nearest.format_map(names))


def test_a_full_name_is_suggested_for_its_beginning() -> None:
    assert suggest_name("ip-10-0-0-7", ["ip-10-0-0-7.eu-west-1.compute.internal"]).endswith("internal'?")
