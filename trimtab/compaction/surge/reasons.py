"""Reasons why a Deployment cannot have more pods for a while so that its budget allows an eviction: one code per
rule."""

from trimtab.cluster.reason import Code

OTHER_OWNER = Code(
    "surge-not-a-deployment",
    "The PodDisruptionBudget of the pod allows no disruption, and no Deployment owns the pod. Only a Deployment can "
    "have one more pod for a while.",
    "Run one replica more than minAvailable, or change the budget.",
)
UNKNOWN_DEPLOYMENT = Code(
    "surge-deployment-unknown",
    "The PodDisruptionBudget of the pod allows no disruption, and the Deployment of the pod, or the budget's spec, was "
    "not read. What is not known is not scaled.",
    "Take a snapshot with deployments, replicasets and poddisruptionbudgets of all namespaces.",
)
PAUSED = Code(
    "surge-deployment-paused",
    "The PodDisruptionBudget of the pod allows no disruption, and the rollout of its Deployment is paused.",
    "Resume the rollout with `kubectl rollout resume`.",
)
ROLLING = Code(
    "surge-rollout-in-progress",
    "The PodDisruptionBudget of the pod allows no disruption, and a rollout of its Deployment is in progress.",
    "Wait until the rollout has ended; `kubectl rollout status` shows it.",
)
RECREATES = Code(
    "surge-strategy-recreate",
    "The PodDisruptionBudget of the pod allows no disruption, and the strategy Recreate of its Deployment says that an "
    "old pod ends before a new one starts.",
    "If two pods may run at the same time, change the strategy to RollingUpdate.",
)
NO_SURGE = Code(
    "surge-max-surge-is-zero",
    "The PodDisruptionBudget of the pod allows no disruption, and maxSurge of its Deployment is 0: not even a rollout "
    "may have more pods than the Deployment wants.",
    "If more pods may run at the same time, raise maxSurge of the Deployment's strategy.",
)
AUTOSCALED = Code(
    "surge-autoscaler-owns-count",
    "The PodDisruptionBudget of the pod allows no disruption. The count of its Deployment is written by several "
    "HorizontalPodAutoscalers, or by one that scales to zero.",
    "Let one HorizontalPodAutoscaler with minReplicas of at least 1 scale the Deployment.",
)
AUTOSCALER_MANAGED = Code(
    "surge-autoscaler-managed",
    "The PodDisruptionBudget of the pod allows no disruption. A HorizontalPodAutoscaler writes the count of its "
    "Deployment, and KEDA, a tool that delivers from Git, or another owner would write its minReplicas back.",
    "Raise minReplicas by one where that owner reads it, so that the budget allows a disruption.",
)
AUTOSCALER_UNKNOWN = Code(
    "surge-autoscaler-unknown",
    "The PodDisruptionBudget of the pod allows no disruption. A HorizontalPodAutoscaler writes the count of its "
    "Deployment, and the snapshot does not show who writes its minReplicas. What is not known is not changed.",
    "Plan on the live cluster, or take the snapshot with `kubectl get --show-managed-fields`.",
)
AUTOSCALER_MOVING = Code(
    "surge-autoscaler-is-scaling",
    "The PodDisruptionBudget of the pod allows no disruption, and the HorizontalPodAutoscaler of its Deployment is "
    "changing the count now, or does not work.",
    "Wait until it has scaled. If it does not, `kubectl describe hpa` says why.",
)
AUTOSCALER_FULL = Code(
    "surge-autoscaler-at-maximum",
    "The PodDisruptionBudget of the pod allows no disruption, and the additional pods would be more than maxReplicas "
    "of the HorizontalPodAutoscaler permits.",
    "Raise maxReplicas, or change the budget.",
)
CONTROLLED = Code(
    "surge-controller-owns-count",
    "The PodDisruptionBudget of the pod allows no disruption, and another object controls its Deployment and would "
    "remove one more pod.",
    "Run one replica more in the object that the message names, or change the budget there.",
)
ONE_NODE_CLAIM = Code(
    "surge-claim-of-one-node",
    "The PodDisruptionBudget of the pod allows no disruption, and the pod uses a PersistentVolumeClaim that pods on "
    "two nodes cannot use at the same time.",
    "Use a volume with ReadWriteMany, or change the budget.",
)
TIED = Code(
    "surge-pod-tied-to-node",
    "The PodDisruptionBudget of the pod allows no disruption, and the pod is tied to its node: by a hostPath, a device "
    "claim, or a rule that names the node.",
    "Change the budget. No setting of the pool changes this.",
)
IN_PROGRESS = Code(
    "surge-in-progress",
    "The PodDisruptionBudget of the pod allows no disruption, and another drain gives its Deployment more pods now.",
    "Wait until that drain has ended.",
)
REVERTED = Code(
    "surge-was-reverted",
    "The PodDisruptionBudget of the pod allows no disruption. In the last day its Deployment was given more pods, and "
    "another client, such as a tool that delivers from Git, took them back.",
    "Run one replica more where that client reads the count, or change the budget.",
)
TOO_MANY = Code(
    "surge-too-large",
    "The PodDisruptionBudget of the pod allows no disruption, and the Deployment would need more additional pods than "
    "surge.extraPods of the pool permits.",
    "Raise surge.extraPods (at most 3), or change the budget as the message says.",
)
NO_QUOTA = Code(
    "surge-without-quota",
    "The PodDisruptionBudget of the pod allows no disruption, and a ResourceQuota of its namespace has no room for the "
    "additional pods.",
    "Raise the quota. No setting of the pool changes this.",
)
NO_RIGHT = Code(
    "surge-without-right",
    "The PodDisruptionBudget of the pod allows no disruption, and the compactor may not scale Deployments in its "
    "namespace.",
    "Grant the permission: `trimtab install --scale-namespace NAMESPACE`.",
)
NO_ROOM = Code(
    "surge-without-room",
    "The pods fit on other nodes, but the additional pods that run for a while before an eviction do not, so that the "
    "autoscaler would add a node for them.",
    "Wait until more capacity is free. The plan reserves no room of a node that it drains.",
)
