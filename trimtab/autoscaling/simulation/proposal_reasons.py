"""The reasons for which a VPA is proposed, changed, kept, removed or not proposed."""

from trimtab.cluster.reason import Code

VPA_WORTH_IT = Code(
    "vpa-worth-it",
    "The usage of the workload is large and varies, but no VPA adapts its requests.",
    "Apply the proposed VPA.",
)
VPA_TOO_SMALL = Code(
    "vpa-too-small",
    "The usage of the workload is so small that a VPA would save less than its evictions cost.",
    "Delete the VPA, or do not add one. Give the workload a static request at the 95th percentile of its usage "
    "(`trimtab recommend`).",
)
VPA_TOO_STEADY = Code(
    "vpa-too-steady",
    "The usage of the workload hardly varies, so a static request is as good as a VPA.",
    "Delete the VPA, or do not add one. Give the workload a static request at the 95th percentile of its usage "
    "(`trimtab recommend`).",
)
VPA_DIFFERS = Code(
    "vpa-differs",
    "The VPA has no bounds although usage and nodes suggest them, changes limits, or evicts pods that could be "
    "resized in place.",
    "Apply the proposed VPA.",
)
VPA_FITS = Code("vpa-fits", "The VPA is already the one that Trimtab would propose.", "Nothing.")
VPA_NEEDS_HISTORY = Code(
    "vpa-needs-history",
    "There is less than a day of usage, or there are fewer than 100 samples.",
    "Provide a longer history of usage.",
)
VPA_OWNED_BY_HPA = Code(
    "vpa-owned-by-hpa",
    "An HPA scales on the utilization of every resource that a VPA would change, so the VPA and the HPA would "
    "react to each other.",
    "Let the HPA scale on averageValue or on a custom metric, then add a VPA.",
)
VPA_POD_LEVEL = Code(
    "vpa-pod-level-resources",
    "The pod sets resources for the pod as a whole (`spec.resources`). A VPA changes only the containers, so the API "
    "server refuses a pod as soon as the sum of the containers is above the pod-level request.",
    "Size the containers together with the pod (`trimtab recommend --patch`), or remove the pod-level resources and "
    "add a VPA then.",
)
VPA_REFUSED = Code(
    "vpa-requests-refused",
    "The API server would refuse the pods with requests that the VPA may set, because of a LimitRange that the VPA "
    "does not respect. The VPA would evict pods, and their successors could not be created.",
    "Change the LimitRange or the limits of the containers, then add a VPA.",
)
VPA_QUOTA = Code(
    "vpa-exceeds-quota",
    "A ResourceQuota of the namespace has no room for all pods of the workload with what they use at least. "
    "The VPA would evict pods, and the API server would refuse their successors.",
    "Raise the ResourceQuota, then add a VPA.",
)
VPA_CONTRADICTS_LINT = Code(
    "vpa-contradicts-lint",
    "With the proposed VPA, `trimtab lint` would report an error: mostly because the pods start with a request below "
    "the least one that the VPA sets, so that the VPA evicts each new pod.",
    "Correct what the finding names (`trimtab recommend --patch` raises a request), then add the VPA.",
)
