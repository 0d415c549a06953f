"""Values that describe a cluster, in the words of the Kubernetes API.

Nothing here acts on the cluster, reads from it, or waits:

    quantity               "100m", "1.5Gi", "250u" → exact integers, and back
    timestamps             Kubernetes' times as whole seconds
    api/                   API objects as msgspec structs, with the fields that Trimtab reads
    snapshot               the output of `kubectl get … -o yaml|json` as one value
    cluster_state          the inventory that a planner reads from a snapshot
    pod, resources         a pod for a planner; its requests, summed as the scheduler sums them; its QoS class
    owner, replicas        the controllers above a pod, and how many pods an owner keeps
    node, node_shapes      a node for a planner; the node shapes of a cluster
    expected_pods          pods that DaemonSets and CapacityBuffers will bring
    claims                 devices of ResourceClaims (DRA); nodes that can reach the volume of a claim
    pdb, schedulers,       PodDisruptionBudgets; how schedulers place pods; labels, tolerations, name patterns
    selectors
    limit_ranges,          what LimitRanges demand of containers and pods; what a ResourceQuota counts
    resource_quotas
    documents/             the declared fields of documents that authors write, and what follows from them
    pool, pool_values,     a node pool and its settings; what they take; the ConfigMap of a pool
    pool_config
    cluster_autoscaler,    the cluster autoscaler's status and flags; an estafette node-compactor's configuration
    estafette
    utilization_metrics,   the metrics of an HPA that are relative to requests; the HPAs of KEDA's ScaledObjects
    scaled_objects
    recommendation,        the usage of a container; the rule that turns usage into a request
    usage_rule
    own_objects            which objects of a cluster are Trimtab's own
    measured_use           what pods that request nothing use now, by owner
    published_reservations what kubelets and container runtimes were measured to need
    yaml_documents,        bytes of YAML or JSON → values that know their lines, as Kubernetes reads them
    yaml_parser
    yaml_format,           the place of each value in a YAML text; a document edited in place
    yaml_edit
    config_error           a mistake in what an author wrote, and its place
    reason                 a code, a sentence, a page: why something happened or did not happen
    signature              signatures of what Trimtab writes into objects that others may write
    anonymize              a capture with all names replaced
"""
