"""Snapshots in files, for the verbs that plan."""

import itertools
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.cluster_of import Item, node, pod
from trimtab.cli.main import cli

_count = itertools.count()


def snapshot(folder: Path, *items: Item) -> Path:
    """A file as kubectl would print it."""
    path = folder / f"snapshot-{next(_count)}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def config_map(name: str, data: dict[str, str], **metadata: Any) -> Item:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data}


def pool(name: str, settings: str) -> Item:
    """A pool's ConfigMap."""
    return config_map(f"pool-{name}", {"pool.yaml": settings}, labels={"trimtab.dev/pool": name})


def half_empty(*more: Item) -> tuple[Item, ...]:
    """Three nodes of one pool; two pods of one workload on each of a and b, none on c."""
    label = {"labels": {"nodepool": "web"}}
    nodes = [node(name, **label) for name in ("a", "b", "c")]
    pods = [pod(f"web-{number}", on="ab"[number % 2]) for number in range(4)]
    return (*nodes, *pods, *more)


def trimtab(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def told(*arguments: str | Path) -> dict[str, Any]:
    """The report, as JSON."""
    result = trimtab(*arguments, "-o", "json")
    assert result.exit_code == 0, (result.output, result.exception)
    document: dict[str, Any] = json.loads(result.stdout)
    return document
