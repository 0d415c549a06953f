"""Names that a shell completes: policies, pools, nodes and namespaces of the cluster, and names of `explain`.

A shell asks between two keystrokes. So the cluster has two seconds to answer, and after any error there are no
completions: an error message would appear in the middle of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable

import click
import msgspec

READ_SECONDS = 2.0
MAX_NAMES = 500


def complete_namespaces(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns the namespaces of the cluster that begin with `incomplete`."""
    return _filter(_list_names(context, "/api/v1/namespaces"), incomplete)


def complete_nodes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns the nodes of the cluster whose names begin with `incomplete`."""
    return _filter(_list_names(context, "/api/v1/nodes"), incomplete)


def complete_pools(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns the pools that have a ConfigMap and whose names begin with `incomplete`."""
    namespace = "".join(context.params.get("namespace") or ()) or "trimtab-system"
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return _filter(_list_names(context, path, label="trimtab.dev/pool"), incomplete)


def complete_policies(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns the policies of --policies, or the shipped ones, whose names begin with `incomplete`."""
    from trimtab.inputs.command_faults import UsageError
    from trimtab.inputs.given_policies import load_given_policies

    try:
        policies = load_given_policies(tuple(context.params.get("policies") or ()))
    except UsageError:
        return []
    return _filter([policy.name for policy in policies.all], incomplete)


def complete_explained_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Returns the names that `trimtab explain` knows and that begin with `incomplete`."""
    from trimtab.cli.catalog import load_catalog

    return _filter(dict.fromkeys(entry.name for entry in load_catalog()), incomplete)


def _filter(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:MAX_NAMES]


class _Metadata(msgspec.Struct):
    name: str = ""
    labels: dict[str, str] | None = None


class _Item(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    items: list[_Item]


def _list_names(context: click.Context, path: str, *, label: str = "") -> list[str]:
    """Returns the names of all objects, or with `label` the values of that label; an empty list if the cluster does not
    answer in time."""
    from trimtab.kube.client import Deadlines, connect_to_cluster
    from trimtab.kube.errors import KubeFault

    deadlines = Deadlines(connect=READ_SECONDS, read=READ_SECONDS)
    try:
        client = connect_to_cluster(
            context.params.get("kubeconfig"), context.params.get("context"), deadlines=deadlines
        )
        try:
            query: dict[str, str | int | None] = {"limit": MAX_NAMES, **({"labelSelector": label} if label else {})}
            listed = msgspec.json.decode(client.get(path, query), type=_List)
        finally:
            client.close()
    except (KubeFault, msgspec.DecodeError):
        return []
    return [(item.metadata.labels or {}).get(label, "") if label else item.metadata.name for item in listed.items]
