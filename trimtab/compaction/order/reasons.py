"""Reasons of the drain that a user orders with `trimtab drain`: one code per rule."""

from trimtab.cluster.reason import Code

# ── pods that cannot move ────────────────────────────────────────────────
BARE_POD = Code(
    "order-pod-without-owner",
    "An eviction deletes the pod for good, because no controller recreates it.",
    "Create it from a Deployment, or evict it with --force (in a DrainOrder: `force: true`).",
)
LOCAL_DATA = Code(
    "order-local-data",
    "The eviction deletes the data of an emptyDir on the node's disk.",
    "Use --delete-emptydir-data if the data may be lost (in a DrainOrder: `deleteEmptyDirData: true`).",
)
PROTECTED_POD = Code(
    "order-pod-protected",
    "An annotation protects the pod from evictions.",
    "Remove it, or use --override-protection (in a DrainOrder: `overrideProtection: true`). The message names the "
    "annotation.",
)
PROTECTED_GROUP = Code(
    "order-group-protected",
    "The pods of the group run only together, so this eviction stops all of them. They are on several nodes.",
    "Wait until the group has ended, or use --override-protection (in a DrainOrder: `overrideProtection: true`).",
)
UNHEALTHY_POD = Code(
    "order-unhealthy-pod",
    "The pod is not ready, and its PodDisruptionBudget has too few healthy pods. With unhealthyPodEvictionPolicy: "
    "IfHealthyBudget, the default, the API server rejects the eviction for as long as that is so, which may be for "
    "ever.",
    "Repair or delete the pod, or set unhealthyPodEvictionPolicy: AlwaysAllow in the budget. The message names the "
    "budget.",
)
RETURNS = Code(
    "order-pod-returns",
    "The pod's owner creates it on the same cordoned node again. Its template names the node (nodeName), so the "
    "drain would evict such pods without end.",
    "Remove nodeName from the template, or scale the workload to 0 for the drain.",
)
# ── pods that move, and what their owners should know ────────────────────
JOB_RESTARTS = Code(
    "order-job-restarts",
    "The pod's Job starts again from the beginning. The eviction counts against its backoffLimit, unless its "
    "podFailurePolicy ignores the condition DisruptionTarget.",
    "Wait until the Job has ended, or let its podFailurePolicy ignore DisruptionTarget.",
)
OUTAGE = Code(
    "order-only-replica",
    "The workload is unavailable until the successor of its only replica is ready.",
    "Scale it to two replicas for the time of the drain.",
)
UNKNOWN_OWNER = Code(
    "order-owner-unknown",
    "It is not known whether the pod's owner creates a successor. The owner is of a kind that Trimtab does not know.",
    "Ask the operator of the workload. Trimtab does not wait for the successor of such a pod.",
)
LONG_GRACE = Code(
    "order-long-grace",
    "The pod may take long to stop, because of its termination grace period.",
    "Nothing to do: the drain waits as long.",
)
TERMS_OVERRIDDEN = Code(
    "order-against-own-terms",
    "The order evicts a pod against the terms that the pod names. It overrides protection: the pod is outside of its "
    "windows, or has reached its number of evictions in 24 hours.",
    "Tell the workload's team, or leave out --override-protection.",
)
BUDGET_WAITS = Code(
    "order-budget-waits",
    "The drain waits until the pod's PodDisruptionBudget allows an eviction.",
    "Make the other pods of the budget ready. The drain waits until its time limit (--timeout, `timeout`).",
)
# ── nodes ────────────────────────────────────────────────────────────────
ORDERED = Code("order-node", "A user ordered the drain of the node.", "Nothing.")
STAYS = Code(
    "order-node-blocked",
    "A pod on the node cannot move.",
    "See the message: it names the pod and what would permit the move.",
)
PROTECTED_NODE = Code(
    "order-node-protected",
    "An annotation protects the node from drains.",
    "Remove it, or use --override-protection (in a DrainOrder: `overrideProtection: true`). The message names the "
    "annotation.",
)
OTHER_ORDER = Code(
    "order-of-another",
    "Another order drains the node, according to its record. Two orders do not share a node.",
    "Continue that order with `trimtab drain --resume NODE`, or end it with `--release --yes NODE`.",
)
COMPACTOR_DRAINS = Code(
    "order-compactor-drains",
    "Another compactor drains the node, or its annotation is not authentic, so the order waits. A DrainOrder does "
    "not wait for its own compactor.",
    "Wait, or end that drain with `trimtab compactor release --yes NODE`. Remove an annotation that is not authentic.",
)
SURGE_NOT_PERMITTED = Code(
    "order-surge-not-permitted",
    "The pod's Deployment would need more additional pods than the command permits. The budget of the pod allows no "
    "eviction.",
    "Use --surge-pods with the number that the message names, or change the budget.",
)
NO_ROOM = Code(
    "order-no-room",
    "The node's pods do not fit on the nodes outside of the order.",
    "Add nodes, or order fewer; --keep-going drains the nodes whose pods fit. In a DrainOrder, it is `keepGoing: "
    "true`.",
)
TOO_FEW_DISRUPTIONS = Code(
    "order-moves-conflict",
    "The node's pods fit on other nodes only together, not in the turns of their budgets.",
    "Order fewer nodes at once.",
)
# ── while the order is carried out ───────────────────────────────────────
WAITS_FOR_WAVE = Code(
    "order-waits-for-wave",
    "The node is cordoned until the nodes of the present wave are empty.",
    "Nothing to do: --at-once (in a DrainOrder: `atOnce`) says how many nodes are drained at a time.",
)
SKIPPED = Code(
    "order-node-skipped",
    "The order left the node out, because it could not be emptied at the beginning. `trimtab drain` gives it a soft "
    "taint, so that successors prefer other nodes, until the order ends.",
    "`trimtab drain NODE --dry-run` says what keeps it.",
)
LEFT_ALONE = Code(
    "order-node-left",
    "Another client has taken over the node, so the order leaves it. It is deleting the node, has created it again, "
    "or has released it after the order emptied it.",
    "Nothing.",
)
RECORD_REMOVED = Code(
    "order-record-removed",
    "Another client removed the order's record from the node before it was empty. `trimtab drain --release` and "
    "`trimtab compactor release` do so. The order does not cordon the node again.",
    "Ask who released the node; `trimtab drain --resume` goes on with the others. For a DrainOrder, delete it and "
    "create another one.",
)
NOT_EMPTY = Code(
    "order-node-not-empty",
    "A pod runs on a node that was emptied, according to its record. It was bound there in spite of the cordon, or "
    "another client wrote the record.",
    "End the order on the node, and drain it again. Use `trimtab drain --release --yes NODE`, or delete the "
    "DrainOrder.",
)
NOT_PERMITTED = Code(
    "order-eviction-not-permitted",
    "The login may not evict pods in the pod's namespace. A further attempt would fail as well.",
    "Give it the right to create pods/eviction there; `trimtab drain --resume` goes on.",
)
EVICTION_DENIED = Code(
    "order-eviction-denied",
    "The API server denies the eviction, and not because of the pod's budget. An admission webhook or policy denies "
    "it or does not answer, its namespace is being deleted, or several budgets select the pod. A denial that may end "
    "is waited for as long as --pod-timeout (in a DrainOrder: `podTimeout`).",
    "Remove the cause that the message names; `trimtab drain --resume` goes on. Delete a DrainOrder, and create it "
    "again.",
)
STOPPED = Code(
    "order-stopped",
    "The user stopped the command, and the nodes stay cordoned. No further pod is evicted.",
    "Run `trimtab drain --resume` to go on, or `trimtab drain --release` to uncordon the nodes.",
)
TIMED_OUT = Code(
    "order-timed-out",
    "The order reached its time limit, and the nodes stay cordoned. The limit is --timeout (`timeout`). No further "
    "pod is evicted.",
    "Run `trimtab drain --resume` to go on, or `trimtab drain --release` to uncordon the nodes. To delete a "
    "DrainOrder uncordons them; create another one to go on.",
)
UNTIL_REACHED = Code(
    "order-until-reached",
    "The time of --until (`until`) is reached, and the waiting nodes stay cordoned. No further node is begun.",
    "Run `trimtab drain --resume` to go on, or `trimtab drain --release` to uncordon the nodes. To delete a "
    "DrainOrder uncordons them; create another one to go on.",
)
UNSEEN = Code(
    "order-cluster-not-read",
    "The cluster could not be read for too long, so no further pod is evicted.",
    "Check the connection; `trimtab drain --resume` goes on.",
)
# ── an order that the compactor carries out ──────────────────────────────
ACCEPTED = Code(
    "order-accepted",
    "The compactor has accepted the DrainOrder, and empties its nodes.",
    "Nothing. To end it, delete the DrainOrder: its nodes are uncordoned.",
)
COMPLETE = Code(
    "order-complete",
    "All nodes of the order are empty or gone, and stay cordoned.",
    "Delete the DrainOrder when you are done, which uncordons them.",
)
RELEASED = Code(
    "order-released",
    "The order has ended on the node, which is uncordoned. The compactor has removed its annotation, because the "
    "DrainOrder was deleted or has ended, or because the compactor's state does not know the order. The node stays "
    "cordoned if another client had cordoned it before.",
    "Nothing.",
)
UNPROVEN = Code(
    "order-author-unproven",
    "It is not certain that the named user created the DrainOrder. The admission policy that ensures it was not in "
    "force.",
    "Run `trimtab install`, wait some seconds, and create the order again. It writes the policy; delete the old "
    "order first.",
)
AUTHOR_MAY_NOT = Code(
    "order-author-not-permitted",
    "The author of the DrainOrder lacks permissions that the order needs. So the compactor does not do it for them. "
    "The nodes that were cordoned are uncordoned.",
    "Give the author the permissions that the message names, and create the order again. Delete it first.",
)
FOREIGN_POD = Code(
    "order-pod-not-permitted",
    "A new pod on the node is in a namespace in which the order's author may not evict. The node had no pod of this "
    "namespace when the order was accepted. The order goes on with its other nodes.",
    "Delete or move the pod, or give the author the permission. To delete the DrainOrder uncordons the nodes.",
)
TOO_OLD = Code(
    "order-too-old",
    "The DrainOrder is too old for its author to be believed. It names groups in which the author was when it was "
    "created. Nothing more is evicted, and the nodes that were cordoned are uncordoned.",
    "Create the DrainOrder again.",
)
UNSIGNED_RECORD = Code(
    "order-unsigned-record",
    "A node has the unsigned record of `trimtab drain`, which the DrainOrder disregards.",
    "Ask who drains the node with `trimtab drain`. That drain and the order evict within the same budgets.",
)
RIGHTS_UNKNOWN = Code(
    "order-rights-unknown",
    "It is not known whether the order's author has the permissions that it needs. The API server did not say so, "
    "and nothing more is done for now.",
    "Nothing to do: the compactor asks again. The message has the words of the API server.",
)
WRONG_NODES = Code(
    "order-wrong-nodes",
    "The DrainOrder names nodes that do not exist or may not be drained. Those are nodes of the control plane or of "
    "Karpenter, or all nodes of the cluster.",
    "Delete it, and create one with other nodes.",
)
UNREADABLE_ORDER = Code(
    "order-unreadable",
    "This version of Trimtab cannot read a field of the DrainOrder.",
    "Create the order again; `kubectl explain drainorder.spec` names the fields. Delete it first.",
)
CHANGED_ORDER = Code(
    "order-changed",
    "The DrainOrder's spec changed after it was accepted, so no further pod is evicted. The definition of DrainOrder "
    "does not permit such a change.",
    "Run `trimtab install` to write the definition again, and create the order again. Delete it first.",
)
TOO_MANY_ORDERS = Code(
    "order-too-many",
    "There are too many DrainOrders that have not been deleted.",
    "Delete DrainOrders that have ended. The order is accepted then.",
)
SHARED_NODE = Code(
    "order-waits-for-order",
    "Another DrainOrder has a node of this order, so this one waits. It is carried out, or has ended and keeps its "
    "nodes cordoned. Two orders do not share a node.",
    "Wait until the other one has ended, and delete it.",
)
WAITS_FOR_COMPACTOR = Code(
    "order-waits-for-compactor",
    "The compactor drains a node of the order to save it. That drain is ended first.",
    "Nothing to do.",
)
PAUSED = Code(
    "order-paused",
    "The compactor is paused or only rehearses, so no orders are carried out.",
    "See the setting that the message names; `trimtab compactor resume` ends a pause.",
)
POOL_MODE = Code(
    "order-pool-mode",
    "A node's pool is disabled or in mode rehearse, so the compactor changes nothing there.",
    "Set `mode: act` in the pool, or drain the node yourself with `trimtab drain`. The message names the pool.",
)
WINDOW_CLOSED = Code(
    "order-window-closed",
    "A pool's windows do not permit a drain now, so the order waits.",
    "Wait for the window, or create the DrainOrder with `override: [Windows]`.",
)
POOL_LIMIT = Code(
    "order-pool-limit",
    "A pool's limit permits no further drain or eviction now, so the order waits.",
    "Wait, or create the DrainOrder with `override: [Limits]`.",
)
OVERRIDES = Code(
    "order-overrides",
    "The order disregards a pool's setting, as its author says in `override`.",
    "Nothing.",
)
