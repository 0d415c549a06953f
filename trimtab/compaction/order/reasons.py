"""Reasons of the drain that a user orders with `trimtab drain`: one code per rule."""

from trimtab.cluster.reason import Code

# ── pods that cannot move ────────────────────────────────────────────────
BARE_POD = Code(
    "order-pod-without-owner",
    "The pod has no controller that would recreate it, so an eviction deletes it for good.",
    "Create the pod from a Deployment, or evict it with --force (in a DrainOrder: `force: true`).",
)
LOCAL_DATA = Code(
    "order-local-data",
    "The pod has an emptyDir on the disk of the node, whose data an eviction deletes.",
    "If the data may be lost, use --delete-emptydir-data (in a DrainOrder: `deleteEmptyDirData: true`).",
)
PROTECTED_POD = Code(
    "order-pod-protected",
    "An annotation of the pod says that it must not be evicted.",
    "Remove the annotation that the message names, or evict the pod with --override-protection (in a DrainOrder: "
    "`overrideProtection: true`).",
)
PROTECTED_GROUP = Code(
    "order-group-protected",
    "The pod belongs to a group of pods on several nodes that run only together, so its eviction stops all of them.",
    "Wait until the group has ended, or evict the pod with --override-protection (in a DrainOrder: "
    "`overrideProtection: true`).",
)
UNHEALTHY_POD = Code(
    "order-unhealthy-pod",
    "The pod is not ready, and its PodDisruptionBudget has too few healthy pods. With unhealthyPodEvictionPolicy: "
    "IfHealthyBudget, the default, the API server rejects the eviction for as long as that is so, which may be for "
    "ever.",
    "Repair the pod or delete it, or set unhealthyPodEvictionPolicy: AlwaysAllow in the budget that the message names.",
)
RETURNS = Code(
    "order-pod-returns",
    "After the eviction of a pod its owner created another one on the same cordoned node, because the pod template "
    "names the node (nodeName). The drain would evict such pods without end.",
    "Remove nodeName from the pod template, or scale the workload to 0 for the time of the drain.",
)
# ── pods that move, and what their owners should know ────────────────────
JOB_RESTARTS = Code(
    "order-job-restarts",
    "The pod belongs to a Job. The Job starts another pod from the beginning, and the eviction counts against its "
    "backoffLimit, unless its podFailurePolicy ignores the condition DisruptionTarget.",
    "Wait until the Job has ended, or add a rule to podFailurePolicy that ignores DisruptionTarget.",
)
OUTAGE = Code(
    "order-only-replica",
    "The pod is the only replica of its workload, which is not available until the successor is ready.",
    "Scale the workload to two replicas for the time of the drain.",
)
UNKNOWN_OWNER = Code(
    "order-owner-unknown",
    "The owner of the pod is of a kind that Trimtab does not know, so it is not known whether a successor is created.",
    "Ask the operator of the workload. Trimtab does not wait for the successor of such a pod.",
)
LONG_GRACE = Code(
    "order-long-grace",
    "The pod may take long to stop, because of its termination grace period.",
    "Nothing to do: the drain waits as long.",
)
TERMS_OVERRIDDEN = Code(
    "order-against-own-terms",
    "The order overrides protection, and evicts a pod outside of the windows that the pod names, or beyond the number "
    "of evictions in 24 hours that it permits.",
    "Tell the team of the workload, or leave out --override-protection.",
)
BUDGET_WAITS = Code(
    "order-budget-waits",
    "At present the PodDisruptionBudget of the pod allows no eviction, so the drain waits for it.",
    "Make the other pods of the budget ready. The drain waits until its time limit (--timeout, `timeout`).",
)
# ── nodes ────────────────────────────────────────────────────────────────
ORDERED = Code("order-node", "A user ordered the drain of the node.", "Nothing.")
STAYS = Code(
    "order-node-blocked",
    "The node cannot be emptied, because one of its pods cannot move.",
    "The message names the first such pod and what would permit the move.",
)
PROTECTED_NODE = Code(
    "order-node-protected",
    "An annotation of the node says that it must not be drained.",
    "Remove the annotation that the message names, or drain the node with --override-protection (in a DrainOrder: "
    "`overrideProtection: true`).",
)
OTHER_ORDER = Code(
    "order-of-another",
    "According to the record on the node, another order drains it. Two orders do not share a node.",
    "Go on with that order (`trimtab drain --resume NODE`), or end it with `trimtab drain --release --yes NODE`.",
)
COMPACTOR_DRAINS = Code(
    "order-compactor-drains",
    "According to an annotation of the node, Trimtab's compactor drains it. A DrainOrder finds this only where the "
    "annotation is of another compactor, or not authentic, and waits.",
    "Wait for the end of that drain, or end it with `trimtab compactor release --yes NODE`. Remove an annotation that "
    "is not authentic.",
)
SURGE_NOT_PERMITTED = Code(
    "order-surge-not-permitted",
    "The budget of a pod allows no eviction, and its Deployment would need more additional pods than the command line "
    "permits.",
    "Use --surge-pods with the number that the message names, or change the budget.",
)
NO_ROOM = Code(
    "order-no-room",
    "The pods of the node do not fit on the nodes outside the order.",
    "Add nodes, or order fewer nodes. --keep-going (in a DrainOrder: `keepGoing: true`) drains the nodes "
    "whose pods fit.",
)
TOO_FEW_DISRUPTIONS = Code(
    "order-moves-conflict",
    "The pods of the node fit on other nodes only together, and not in the turns that their budgets allow.",
    "Order fewer nodes at once.",
)
# ── while the order is carried out ───────────────────────────────────────
WAITS_FOR_WAVE = Code(
    "order-waits-for-wave",
    "The node is cordoned and waits until the nodes of the present wave are empty.",
    "Nothing to do. --at-once (in a DrainOrder: `atOnce`) says how many nodes are drained at a time.",
)
SKIPPED = Code(
    "order-node-skipped",
    "The node could not be emptied when the order began, so the order left it out. `trimtab drain` gives it a soft "
    "taint, so that successors prefer other nodes, until the order ends.",
    "`trimtab drain NODE --dry-run` says what keeps it.",
)
LEFT_ALONE = Code(
    "order-node-left",
    "Another client is deleting the node, has created it again, or has released it after the order emptied it. The "
    "order leaves the node to that client.",
    "Nothing.",
)
RECORD_REMOVED = Code(
    "order-record-removed",
    "Another client removed the record of the order from the node, as `trimtab drain --release` and `trimtab compactor "
    "release` do, before the node was empty. The order does not cordon the node again.",
    "Ask who released the node. `trimtab drain --resume` goes on with the other nodes of the order; for a DrainOrder, "
    "delete it and create another one.",
)
NOT_EMPTY = Code(
    "order-node-not-empty",
    "The record on the node says that the order emptied it, but a pod runs on it: it was bound there in spite of the "
    "cordon, or another client wrote the record.",
    "End the order on the node (`trimtab drain --release --yes NODE`, or delete the DrainOrder), and drain the node "
    "again.",
)
NOT_PERMITTED = Code(
    "order-eviction-not-permitted",
    "The login may not evict pods in the namespace of the pod, so a further attempt would fail as well.",
    "Give the login the right to create pods/eviction in the namespace; `trimtab drain --resume` goes on.",
)
EVICTION_DENIED = Code(
    "order-eviction-denied",
    "The API server denies the eviction for another reason than the budget of the pod: an admission webhook or policy "
    "denies it or does not answer, its namespace is being deleted, or several budgets select the pod. A denial that "
    "may end is waited for as long as --pod-timeout (in a DrainOrder: `podTimeout`).",
    "The message has the words of the API server. Remove the cause; `trimtab drain --resume` goes on. Delete a "
    "DrainOrder, and create it again.",
)
STOPPED = Code(
    "order-stopped",
    "The user stopped the command. No further pod is evicted, and the nodes stay cordoned.",
    "`trimtab drain --resume` goes on, and `trimtab drain --release` uncordons the nodes.",
)
TIMED_OUT = Code(
    "order-timed-out",
    "The order took longer than its time limit (--timeout, `timeout`). No further pod is evicted, and the nodes stay "
    "cordoned.",
    "`trimtab drain --resume` goes on, and `trimtab drain --release` uncordons the nodes. To delete a DrainOrder "
    "uncordons them; create another one to go on.",
)
UNTIL_REACHED = Code(
    "order-until-reached",
    "The time of --until (`until`) is reached, so no further node is begun. The nodes that wait stay cordoned.",
    "`trimtab drain --resume` goes on, and `trimtab drain --release` uncordons the nodes. To delete a DrainOrder "
    "uncordons them; create another one to go on.",
)
UNSEEN = Code(
    "order-cluster-not-read",
    "The cluster could not be read for too long, so no further pod is evicted.",
    "Check the connection to the API server; `trimtab drain --resume` goes on.",
)
# ── an order that the compactor carries out ──────────────────────────────
ACCEPTED = Code(
    "order-accepted",
    "The compactor has accepted the DrainOrder, and empties its nodes.",
    "Nothing. To end it, delete the DrainOrder: its nodes are uncordoned.",
)
COMPLETE = Code(
    "order-complete",
    "All nodes of the order are empty or gone. They stay cordoned.",
    "When you are done with the nodes, delete the DrainOrder: they are uncordoned.",
)
RELEASED = Code(
    "order-released",
    "The compactor has removed the annotation of the order from the node, because the DrainOrder was deleted or has "
    "ended, or because the compactor's state does not know the order. The node is uncordoned, unless another client "
    "had cordoned it before.",
    "Nothing.",
)
UNPROVEN = Code(
    "order-author-unproven",
    "It is not certain that the DrainOrder was created by the user whom it names, because the admission policy that "
    "ensures it was not in force.",
    "Run `trimtab install` to write the policy again, wait some seconds, delete the DrainOrder, and create it again.",
)
AUTHOR_MAY_NOT = Code(
    "order-author-not-permitted",
    "The author of the DrainOrder may not do all that the order needs, so the compactor does not do it for them. The "
    "nodes that were cordoned are uncordoned.",
    "Give the author the permissions that the message names, delete the DrainOrder, and create it again.",
)
FOREIGN_POD = Code(
    "order-pod-not-permitted",
    "A pod on the node is in a namespace in which the author of the DrainOrder may not evict pods. The node had no pod "
    "of this namespace when the order was accepted. The order goes on with its other nodes.",
    "Delete or move the pod, or give the author the permission; or delete the DrainOrder, which uncordons the nodes.",
)
TOO_OLD = Code(
    "order-too-old",
    "The DrainOrder is so old that its author is not believed any more: it names groups in which the author was when "
    "it was created. Nothing more is evicted, and the nodes that were cordoned are uncordoned.",
    "Create the DrainOrder again.",
)
UNSIGNED_RECORD = Code(
    "order-unsigned-record",
    "A node of the DrainOrder has the record of `trimtab drain`, which is not signed, so the order disregards it.",
    "Ask who drains the node with `trimtab drain`. That drain and the order evict within the same budgets.",
)
RIGHTS_UNKNOWN = Code(
    "order-rights-unknown",
    "The API server did not say whether the author of the DrainOrder has the permissions that the order needs, so "
    "nothing more is done for now.",
    "Nothing: the compactor asks again. The message has the words of the API server.",
)
WRONG_NODES = Code(
    "order-wrong-nodes",
    "The DrainOrder names nodes that do not exist or that may not be drained: nodes of the control plane or of "
    "Karpenter, or all nodes of the cluster.",
    "Delete the DrainOrder, and create one with other nodes.",
)
UNREADABLE_ORDER = Code(
    "order-unreadable",
    "The DrainOrder has a field that this version of Trimtab cannot read.",
    "Delete the DrainOrder, and create it again. `kubectl explain drainorder.spec` names the fields.",
)
CHANGED_ORDER = Code(
    "order-changed",
    "The spec of the DrainOrder has changed since it was accepted, which the definition of DrainOrder does not permit. "
    "No further pod is evicted.",
    "Run `trimtab install` to write the definition again, delete the DrainOrder, and create it again.",
)
TOO_MANY_ORDERS = Code(
    "order-too-many",
    "There are too many DrainOrders that have not been deleted.",
    "Delete DrainOrders that have ended. The order is accepted then.",
)
SHARED_NODE = Code(
    "order-waits-for-order",
    "Another DrainOrder has a node of this order: it is carried out, or has ended and keeps its nodes cordoned. Two "
    "orders do not share a node, so this one waits.",
    "Wait until the other DrainOrder has ended, and delete it.",
)
WAITS_FOR_COMPACTOR = Code(
    "order-waits-for-compactor",
    "The compactor drains a node of the order to save it. That drain is ended first.",
    "Nothing to do.",
)
PAUSED = Code(
    "order-paused",
    "The compactor is paused, or only rehearses, so it does not carry out orders.",
    "The message names the setting. `trimtab compactor resume` ends a pause.",
)
POOL_MODE = Code(
    "order-pool-mode",
    "A node of the order belongs to a pool that is disabled or in mode rehearse, in which the compactor changes "
    "nothing.",
    "Set `mode: act` in the settings of the pool that the message names; or drain the node with your own login "
    "(`trimtab drain`).",
)
WINDOW_CLOSED = Code(
    "order-window-closed",
    "The windows of a pool do not permit a drain now, so the order waits.",
    "Wait for the window, or create the DrainOrder with `override: [Windows]`.",
)
POOL_LIMIT = Code(
    "order-pool-limit",
    "A limit of a pool permits no further drain or eviction now, so the order waits.",
    "Wait, or create the DrainOrder with `override: [Limits]`.",
)
OVERRIDES = Code(
    "order-overrides",
    "The order disregards a setting of a pool, because its author says so in `override`.",
    "Nothing.",
)
