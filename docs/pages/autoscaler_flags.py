"""docs/reference/autoscaler-flags.md: what Trimtab does with each flag of the cluster autoscaler."""

from collections.abc import Iterable

from trimtab.cluster.autoscaler_flags import OBEYED_FLAGS, UNUSED_FLAGS, AutoscalerFlag

_HEAD = """\
# The cluster autoscaler's flags

The cluster autoscaler removes the nodes that Trimtab drains. So its flags about the removal of nodes matter to a plan:
Trimtab follows them, or this page says why it does not. Each flag stands here with its default.

Trimtab knows the flags from these places; the first one that names a flag counts:

- an option of the node group, for the pools that set `groupOptions` ([pool settings](pool.md));
- `--autoscaler-flags` of a command, and `TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS` of the compactor;
- for a command, the Pods or Deployments of the autoscaler in the snapshot. A capture contains no command lines;
- the autoscaler's defaults.

If a cluster has several autoscalers, each has flags of its own. Separate them by semicolons. An autoscaler whose status
has another name than the default names it:

```sh
trimtab plan --cluster snapshot.yaml --autoscaler-flags="--scale-down-unneeded-time=5m; \\
  --status-config-map-name=status-spot --skip-nodes-with-local-storage=false"
```

A node follows the flags of the autoscaler that reports its node group. If the node's group is not known, the most
careful of the autoscalers counts.

## Flags that Trimtab follows

"""
_UNUSED = """
## Flags that Trimtab does not use

"""


def page() -> str:
    return _HEAD + _list(OBEYED_FLAGS) + _UNUSED + _list(UNUSED_FLAGS)


def _list(flags: Iterable[AutoscalerFlag]) -> str:
    """Returns an entry for each effect, with the flags that have it."""
    names: dict[str, list[str]] = {}
    for flag in flags:
        names.setdefault(flag.effect, []).append(f"`--{flag.name}{f'={flag.default}' if flag.default else ''}`")
    return "".join(f"- {', '.join(own)}: {effect}\n" for effect, own in names.items())
