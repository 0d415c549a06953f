"""API objects as msgspec structs, with the fields that Trimtab reads.

Each struct keeps quantities as they are written and drops all other fields. An absent field is `UNSET`,
which is not the
same as empty: a patch depends on whether `resources` is absent or `{}`.

Every change to a pod, by Trimtab or by a simulated step of the API server, is made on these structs (`change`),
and a patch
is the difference of two of them; so every field that may change is named here.

    meta                   metadata of all objects; label selectors
    pod                    Pod and its parts
    core                   Namespace, RuntimeClass, LimitRange, ResourceQuota, PriorityClass, Node
    workload               owners of pods: ReplicaSet, Deployment, Job, …; PodDisruptionBudget
    autoscaling            VerticalPodAutoscaler, HorizontalPodAutoscaler, CapacityBuffer
    storage                PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode
    devices                ResourceClaim, ResourceSlice, DeviceClass
    admissionregistration  webhook configurations
"""
