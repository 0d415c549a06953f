"""What does a cluster look like?

Nouns as values, in Kubernetes' own words. Nothing here acts, asks or waits:

    quantity               "100m", "1.5Gi", "250u" → exact integers, and back
    timestamps             Kubernetes' times as whole seconds
    api/                   what the API server writes, as far as we read it (msgspec shapes)
    snapshot               everything `kubectl get … -o yaml|json` printed, as one value
    cluster_state          the same, ready to be planned with
    pod, resources         a pod to a planner; what it requests, summed as the scheduler sums it; its QoS class
    owner, replicas        who made this pod, and how many pods an owner keeps
    node, node_shapes,     a node to a planner; which kinds there are; room kept for pods that do not exist yet
    capacity_buffer
    dynamic_resources,     devices of a claim; where the data of a claim can be reached
    volume_claims
    pdb, schedulers,       disruption budgets; how schedulers place pods; labels, tolerations, name patterns
    selectors
    limit_ranges           what a LimitRange demands, what a ResourceQuota counts
    pool, pool_config,     a node pool; its ConfigMap; that as a JSON Schema
    pool_schema
    cluster_autoscaler,    what the autoscaler says of itself; an estafette node-compactor's configuration
    estafette
    recommendation,        what a container used; which number of it becomes the request
    usage_rule
    yaml_documents,        bytes of YAML or JSON → values that know their lines, as Kubernetes reads them
    yaml_parser
    yaml_format,           where each value is in the text; a document changed in place
    yaml_edit
    config_error           what is wrong with what an author wrote, and where
    reason                 a code, a sentence, a page: why something happened or did not
    signature              signatures of what Trimtab writes into objects that others may write
    anonymize              the same cluster with nobody's names in it
"""
