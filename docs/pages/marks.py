"""docs/reference/marks.md: the annotations, labels and taints that Trimtab writes or reads on objects."""

from dataclasses import dataclass

from docs.pages.sentences import first_sentence, summarize_advice

ANNOTATION, LABEL, TAINT = "annotation", "label", "taint"
_HEAD = """\
# Annotations, labels and taints

The keys that Trimtab writes on objects of a cluster, and those that you write for it: in brackets what has the key, and
who writes it. `trimtab explain KEY` prints more, without a network.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One key."""

    name: str
    kind: str
    on: str
    """The objects that have it."""
    by: str
    """The writer: a process of Trimtab, a command, or you."""
    means: str
    todo: str = ""


def _mark(name: str, kind: str, on: str, by: str, means: str, todo: str = "") -> Mark:
    return Mark(name=f"trimtab.dev/{name}", kind=kind, on=on, by=by, means=means, todo=todo)


MARKS = (
    _mark(
        "changed",
        ANNOTATION,
        "pods",
        "the webhook",
        "Which policies changed which fields of the pod when it was admitted, signed by the webhook.",
        "`trimtab why pod NAMESPACE/NAME` shows it with the author's values and the reasons.",
    ),
    _mark(
        "written-requests",
        ANNOTATION,
        "pods and manifests",
        "the webhook; `trimtab admit -o yaml`",
        "What the author wrote where a policy takes a share of a request: a later admission takes the share of that.",
        "Nothing; delete it together with the field that you set anew.",
    ),
    Mark(
        name="compiled.trimtab.dev/POLICY",
        kind=ANNOTATION,
        on="pods",
        by="compiled policies, in the API server",
        means="The fields that a compiled policy changed, with their values.",
    ),
    _mark(
        "opt-out",
        LABEL,
        "namespaces, pods (there as an annotation as well)",
        "you",
        "Policies leave the pods alone, as far as each policy's `optOut` allows that.",
    ),
    _mark(
        "paused",
        ANNOTATION,
        "Trimtab's namespace (as a label as well)",
        "you; `trimtab compactor pause`",
        "All changes are stopped: pods are admitted unchanged, and no node is drained. The value is the reason.",
        "`kubectl annotate namespace trimtab-system trimtab.dev/paused-`, or `trimtab compactor resume`, ends it.",
    ),
    _mark(
        "min-replicas-before",
        ANNOTATION,
        "HorizontalPodAutoscalers",
        "the compactor; `trimtab drain --surge-pods`",
        "`minReplicas` is raised while a pod of the workload moves: `2-4` means that it was 2 and is 4 now.",
        "Nothing: both go when the pod has moved. Another value that you write meanwhile stays.",
    ),
    _mark(
        "vpa-cpu",
        ANNOTATION,
        "VPAs whose recommender is Trimtab",
        "you",
        "The rule for cpu of the VPA's recommendation, such as `p95 +10%`. The default is `adaptive`.",
        "docs/reference/vpa-fields.md lists the annotations of VPAs.",
    ),
    _mark(
        "vpa-memory",
        ANNOTATION,
        "VPAs whose recommender is Trimtab",
        "you",
        "The rule for memory of the VPA's recommendation, such as `max +15%`. The default is `adaptive`.",
        "docs/reference/vpa-fields.md lists the annotations of VPAs.",
    ),
    _mark(
        "vpa-window-days",
        ANNOTATION,
        "VPAs whose recommender is Trimtab",
        "you",
        "The number of days of usage from which the VPA's recommendation is computed. The default is all days.",
        "docs/reference/vpa-fields.md lists the annotations of VPAs.",
    ),
    _mark(
        "do-not-disrupt",
        ANNOTATION,
        "nodes and pods",
        "you",
        'With the value "true" the compactor leaves the node, or the pod and so its node, as it is.',
    ),
    _mark(
        "disruption-cost",
        ANNOTATION,
        "pods",
        "you; a policy",
        "As how many further evictions the eviction of the pod counts in the order of drains, up to podTerms.maxCost of"
        " the pool.",
        "docs/how-to/terms-of-pods.md describes it.",
    ),
    _mark(
        "disruption-windows",
        ANNOTATION,
        "pods",
        "you; a policy",
        "The weekly windows in which the compactor may evict the pod, within podTerms.maxDelay of the pool.",
        "docs/how-to/terms-of-pods.md describes it.",
    ),
    _mark(
        "disruptions-per-day",
        ANNOTATION,
        "pods",
        "you; a policy",
        "How many pods of the workload the compactor may evict in 24 hours, within podTerms.maxDelay of the pool.",
        "docs/how-to/terms-of-pods.md describes it.",
    ),
    _mark(
        "keep",
        ANNOTATION,
        "nodes and pods",
        "you, for an earlier version",
        "The earlier name of trimtab.dev/do-not-disrupt. It still counts, with a reason that names the new one.",
        "Replace it.",
    ),
    _mark(
        "cordoned-for",
        ANNOTATION,
        "nodes",
        "the compactor",
        "The drain for which the compactor cordoned the node: its pool, its begin, the pods to evict. It is signed.",
        "`trimtab why node NODE` shows it; `trimtab compactor release --yes NODE` uncordons the node and removes it.",
    ),
    _mark(
        "drain-order",
        ANNOTATION,
        "nodes",
        "`trimtab drain`",
        "The order for which a user drains the node: who ordered it, why, and its nodes. It is not signed.",
        "`trimtab drain --release` shows it; with `--yes` it uncordons the node and removes the annotation.",
    ),
    _mark(
        "drain-order-pending",
        TAINT,
        "nodes",
        "`trimtab drain --keep-going`",
        "An order could not begin this node, so the scheduler avoids it. The effect is PreferNoSchedule: no pod is"
        " rejected.",
        "Nothing: the command removes it at its end; after its death, `trimtab drain --release --yes` does.",
    ),
    _mark(
        "drain-candidate",
        TAINT,
        "nodes",
        "the compactor",
        "The plan drains the node soon, so the scheduler avoids it. The effect is PreferNoSchedule: no pod is"
        " rejected.",
        "Nothing: the compactor removes it. `trimtab compactor pause` removes it from all nodes.",
    ),
    _mark(
        "reserved-target",
        TAINT,
        "nodes",
        "the compactor",
        "The plan needs the free capacity of the node for a later wave, or drains the node soon, so the scheduler"
        " avoids it. The effect is PreferNoSchedule: no pod is rejected.",
        "Nothing: the compactor removes it. `trimtab compactor pause` removes it from all nodes.",
    ),
    _mark(
        "leaving",
        TAINT,
        "nodes",
        "the compactor of an earlier version",
        "The earlier name of trimtab.dev/drain-candidate.",
        "Nothing: the compactor removes it.",
    ),
    _mark(
        "legacy",
        TAINT,
        "nodes",
        "you, as `trimtab machines legacy` proposes",
        "The node belongs to a pool that is migrated to another one: drains of it wait for no room in the pool.",
    ),
    _mark(
        "placeholder",
        LABEL,
        "pods",
        "`trimtab machines legacy`",
        "The pod holds room in the new pool for pods that move there; the value is the pool that they leave.",
        "Nothing: the command deletes it.",
    ),
    _mark(
        "placeholder-for",
        ANNOTATION,
        "pods",
        "`trimtab machines legacy`",
        "The pod (NAMESPACE/NAME) for which the placeholder holds room.",
    ),
    _mark(
        "pool",
        LABEL,
        "ConfigMaps",
        "you",
        "The ConfigMap has the settings of the pool that the value names.",
        "`trimtab pools check --cluster live` checks the settings.",
    ),
    _mark(
        "state",
        LABEL,
        "ConfigMaps",
        "the compactor",
        "The ConfigMap has the compactor's state of the pool that the value names: its plan, drains and decisions.",
        "`trimtab compactor status` and `trimtab compactor history` show it.",
    ),
    _mark(
        "resumed-at",
        ANNOTATION,
        "ConfigMaps with a pool's state",
        "`trimtab compactor resume --pool`",
        "When the pool was opened again after failures had closed it.",
    ),
    _mark(
        "unreadable-state",
        LABEL,
        "ConfigMaps",
        "the compactor",
        "A copy of a pool's state that could not be read, or was not authentic.",
        "Delete the copy when you do not need it any more.",
    ),
    _mark(
        "unread-state",
        LABEL,
        "ConfigMaps",
        "the compactor of an earlier version",
        "The earlier name of trimtab.dev/unreadable-state.",
        "Delete the copy when you do not need it any more.",
    ),
    _mark(
        "policy",
        LABEL,
        "admission policies and their bindings",
        "`trimtab policies compile`",
        "The object was compiled from the PodPolicy that the value names; the API server evaluates it.",
        "`trimtab policies list --cluster live` lists them.",
    ),
    _mark(
        "recommendations",
        LABEL,
        "ConfigMaps",
        "the recommender",
        "The ConfigMap has recommendations of requests, which the webhook reads.",
    ),
    _mark("usage", LABEL, "ConfigMaps", "the recommender", "The ConfigMap has a part of the stored usage."),
    _mark(
        "damaged",
        LABEL,
        "ConfigMaps",
        "the recommender",
        "A copy of stored usage that could not be read. No process reads it.",
        "Delete the copy when you do not need it any more.",
    ),
    _mark(
        "parameters",
        LABEL,
        "ConfigMaps",
        "the recommender",
        "The ConfigMap has requests that compiled policies read as parameters in the API server.",
    ),
    _mark(
        "reservations",
        LABEL,
        "ConfigMaps",
        "the recommender",
        "The ConfigMap has the reservations of nodes that were measured.",
    ),
    _mark("overhead", LABEL, "ConfigMaps", "the recommender", "The ConfigMap has the measured overhead of nodes."),
    _mark(
        "managed",
        ANNOTATION,
        "the autoscaler's priority map",
        "`trimtab machines priorities --apply`; the recommender",
        "Trimtab wrote the priorities.",
    ),
    _mark(
        "base-priorities",
        ANNOTATION,
        "the autoscaler's priority map",
        "the recommender",
        "The priorities without demotions of node groups that are out of stock.",
    ),
    _mark(
        "demoted-until",
        ANNOTATION,
        "the autoscaler's priority map",
        "the recommender",
        "The node groups that are demoted, each with the time at which that ends.",
    ),
    _mark(
        "previous-priorities",
        ANNOTATION,
        "the autoscaler's priority map",
        "`trimtab machines priorities --apply`",
        "The map as it was before Trimtab wrote it.",
    ),
    _mark(
        "price", LABEL, "nodes", "you", "The price of the node in micro-dollars an hour. It counts before list prices."
    ),
    _mark(
        "price-per-gib-month",
        ANNOTATION,
        "StorageClasses",
        "you",
        "The price of a GiB in a month, in dollars, for `trimtab idle`.",
    ),
    _mark(
        "lint-ignore",
        ANNOTATION,
        "any object that `trimtab lint` reads",
        "you",
        "The rules (L35, N01, …) whose findings about the object are left out.",
    ),
    _mark(
        "probe",
        ANNOTATION,
        "pods of a dry run",
        "`trimtab doctor`",
        "The webhook answers with a warning that shows that it was called.",
    ),
)


def page() -> str:
    """Returns the page's text."""
    return _HEAD + "".join(map(_describe, sorted(MARKS, key=lambda mark: mark.name)))


def _describe(mark: Mark) -> str:
    text = " ".join(filter(None, (first_sentence(mark.means), summarize_advice(mark.todo))))
    return f"- `{mark.name}` ({mark.kind} of {mark.on}; by {mark.by}): {text}\n"
