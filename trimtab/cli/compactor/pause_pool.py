"""Pauses one pool by `mode: rehearse` in the ConfigMap with its settings, and says how a paused pool acts again."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool import DRY_RUN, MODE
from trimtab.cluster.pool_config import SETTINGS_KEY
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.yaml_edit import edit_yaml
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.inputs.command_faults import UsageError
from trimtab.kube import objects
from trimtab.kube.client import MERGE_PATCH, Client
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, collection_path, object_path


class _ConfigMaps(msgspec.Struct, frozen=True):
    items: list[ConfigMap]


def pause_pool(client: Client, namespace: str, pool: str) -> list[str]:
    """Set `mode: rehearse` in the pool's ConfigMap, and return the messages for the user.

    Raises UsageError if the pool has not exactly one ConfigMap, or if its settings cannot be changed in place.
    """
    name, version, text = _read_pool_settings(client, namespace, pool)
    changed = rehearse_settings(pool, text)
    if changed == text:
        return [f"pool {pool} is already paused: its ConfigMap {name} has `mode: rehearse`; nothing was changed"]
    # The version makes a change of another client since the read a conflict.
    body = {"metadata": {"resourceVersion": version}, "data": {SETTINGS_KEY: changed}}
    path = object_path(LIST_SOURCES["ConfigMap"], namespace, name)
    Writer(client=client, manager="trimtab-command").write(
        "PATCH", path, body, doing=f"pause pool {pool}", content_type=MERGE_PATCH
    )
    return [
        f"pool {pool} now has `mode: rehearse` in ConfigMap {name}: the compactor stops the pool's drains and "
        "starts no new one",
        "If GitOps or Helm manages that ConfigMap, also change the mode in its source, because the next "
        "synchronization overwrites the ConfigMap.",
        f"To end the pause, set `mode: act` again: {_edit_command(namespace, name)}",
    ]


def describe_reopening(client: Client, namespace: str, pool: str, before: PoolState | Unreadable) -> str:
    """Returns the message for the user after `resume --pool`. `before` is the stored state before the command.

    A pool that rehearses starts no drain although it is open, so the message says how to change the mode. If the
    pool's settings cannot be read, the message does not mention the mode.
    """
    was_closed = isinstance(before, Unreadable) or before.closed is not None or before.backoff is not None
    result = f"pool {pool} is open again" if was_closed else f"Pool {pool} was not closed"
    try:
        name, _, text = _read_pool_settings(client, namespace, pool)
        is_rehearsing = rehearse_settings(pool, text) == text
    except (KubeFault, UsageError):
        is_rehearsing = False
    if not is_rehearsing:
        return result
    return (
        f"{result}. It is in mode `rehearse`; to let it act, set `mode: act` in its ConfigMap: "
        f"{_edit_command(namespace, name)}"
    )


def _edit_command(namespace: str, name: str) -> str:
    return f"kubectl -n {namespace} edit configmap {name}"


def rehearse_settings(pool: str, text: str) -> str:
    """Returns the pool's settings with `mode: rehearse`. Raises UsageError if the text is not a mapping."""

    def change(settings: Any) -> Any:
        # `dryRun` says the same as `mode`; both together are a mistake.
        return {**{key: value for key, value in settings.items() if key != DRY_RUN.key}, MODE.key: "rehearse"}

    try:
        value = yaml.safe_load(text)
        if value is None or (isinstance(value, dict) and not {MODE.key, DRY_RUN.key} & value.keys()):
            return text  # without a mode, a pool rehearses
        if isinstance(value, dict):
            is_rehearsing = value.get(MODE.key) == "rehearse" or value.get(DRY_RUN.key) is True
            return text if is_rehearsing else edit_yaml(text, change)
    except yaml.YAMLError:
        pass
    expected = f"a pool with valid settings under {SETTINGS_KEY} of its ConfigMap"
    raise UsageError([ConfigError(file="--pool", expected=expected, got=pool)])


def _read_pool_settings(client: Client, namespace: str, pool: str) -> tuple[str, str, str]:
    """Returns the name, the version and the settings of the pool's ConfigMap."""
    doing = f"find the ConfigMap of pool {pool}"
    path = collection_path(LIST_SOURCES["ConfigMap"], namespace)
    body = client.get(path, {"labelSelector": f"{POOL_LABEL}={pool}"}, doing=doing)
    items = objects.decode_as(body, _ConfigMaps, doing).items
    if len(items) != 1 or SETTINGS_KEY not in items[0].data:
        expected = f"a pool with one ConfigMap labelled {POOL_LABEL}={pool} that has {SETTINGS_KEY}"
        raise UsageError([ConfigError(file="--pool", expected=expected, got=pool)])
    metadata = items[0].metadata
    return metadata.name, metadata.resource_version, items[0].data[SETTINGS_KEY]
