"""docs/reference/nodes.md: how Trimtab knows what a node is, and to which pool it belongs."""

from collections.abc import Mapping

from trimtab.cluster.node_nature import SIGN_RULES, NodeKind, SignRule
from trimtab.cluster.pool_labels import PLATFORM_LABELS, POOL_LABEL
from trimtab.compaction import reasons as r

_HEAD = f"""\
# What a node is

Not every Node object is a machine whose removal saves money. Trimtab decides in one place what a node is, and every
command and process uses the answer.

| a node that is | is drained | receives pods | counts in sums of nodes, cores and money |
|---|---|---|---|
| an ordinary machine | yes | yes | yes |
| no machine (serverless) | never: `{r.NO_MACHINE.name}` | only pods that select it | no |
| an edge or hybrid node | never: `{r.EDGE_NODE.name}` | only pods that select it | yes |
| a node of the control plane | never: `{r.CONTROL_PLANE.name}` | if it accepts pods | yes |
| a node of Karpenter | never: `{r.KARPENTER.name}` | yes | yes |
| a host of a TPU slice | never: `{r.AS_A_WHOLE.name}` | yes | yes |
| a simulated node (KWOK) | yes, so that plans can be tried | yes | yes; a note of the plan says that it costs nothing |

A pod *selects* such nodes if its node selector or required node affinity names a label that shows what they are, or
matches no ordinary machine. A toleration alone does not select a node.

The policy engine asks something else: whether any node could hold a pod. A node that is no machine can.

## Signs

"""
_GENERAL = """
Some signs are general, so that they also show platforms that the list lacks:

- a label or taint with the word `virtual-kubelet` or `virtual-node` in its key, or as the value of a key that ends in
  `type`, `role` or `provider`: no machine;
- a version of the kubelet with `vk` or `virtual-kubelet`, such as `v1.31.1-vk-azure-aci-1.6.2`: no machine;
- a capacity of one pod, as on AWS Fargate, or more than 4096 cores or 64 TiB of memory: no machine;
- a name that begins with `gk3-`, on Google Cloud: GKE Autopilot, which bills pods;
- a version of the kubelet with `kubeedge`, or the roles `edge` and `agent` together: an edge node;
- a TPU topology with more chips than the node has: a host of a slice.

"""
_POOLS = f"""\
## Labels that name pools

If a pool has no `nodes.labels`, its nodes are those whose label has the pool's name. The first of these labels that a
node has counts; an annotation counts only if no label names the pool.

To name a pool of your own, set the label `{POOL_LABEL}` on its nodes, or set `nodes.labels` in
[the pool's settings](pool.md) to labels that your nodes have. If no node has one of these labels, `trimtab plan` treats
all nodes as one pool, and a note names the labels that divide the nodes into groups.

"""
_NAMES = {
    NodeKind.SERVERLESS: "no machine",
    NodeKind.EDGE: "edge node",
    NodeKind.CONTROL_PLANE: "control plane",
    NodeKind.KARPENTER: "Karpenter",
    NodeKind.FAKE: "a simulated node",
}


def page() -> str:
    signs: dict[str, dict[str, list[str]]] = {}
    for rule in SIGN_RULES:
        signs.setdefault(_NAMES[rule.kind], {}).setdefault(rule.platform, []).append(_describe_sign(rule))
    labels: dict[str, list[str]] = {}
    for one in PLATFORM_LABELS:
        labels.setdefault(one.platform, []).append(f"`{one.key}`{' (annotation)' if one.is_annotation else ''}")
    kinds = "".join(f"- {kind}: {_join_platforms(platforms)}\n" for kind, platforms in signs.items())
    return f"{_HEAD}{kinds}{_GENERAL}{_POOLS}" + "".join(
        f"- {platform}: {', '.join(keys)}\n" for platform, keys in labels.items()
    )


def _join_platforms(platforms: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{platform} ({', '.join(signs)})" for platform, signs in platforms.items())


def _describe_sign(rule: SignRule) -> str:
    values = " or ".join(f"`{rule.key}={value}`" if value else f"`{rule.key}`" for value in rule.values)
    return f"{rule.place} {values or f'`{rule.key}`'}"
