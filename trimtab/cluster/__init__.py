"""What does a cluster look like?

Nouns as values, in Kubernetes' own words. Nothing here acts, asks or waits:

    quantity    "100m", "1.5Gi", "250u" → exact integers, and back
    api/        what the API server writes, as far as we read it (msgspec shapes)
    resources   what a pod asks for, summed as the scheduler sums it; its QoS class
    selectors   labels, tolerations, name patterns: does this one match that one?
    owner       who made this pod, and who made them
    limits      what a LimitRange demands, what a ResourceQuota counts
    documents   bytes of YAML or JSON → values that know their lines (yaml_text: YAML as Kubernetes reads it)
    mistake     what is wrong with what somebody wrote, and where
    snapshot    everything `kubectl get … -o yaml|json` printed, as one value
    anonymous   the same cluster with nobody's names in it
    recommendation   what a container was seen to use, and how sure we are
    reason      a code, a sentence, a page: why something happened or did not
"""
