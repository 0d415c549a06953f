"""A field of a pod that is decoded has its words and its default.

Who adds a field to `PodSpec`, or to a type that it contains, decides two more things: whether its text is a word of the
API or a name (`READABLE_FIELDS` in trimtab/cluster/anonymize.py), and what the API server writes if it is missing
(trimtab/admission/apiserver/defaulting.py). Both are derived from the decoded types here, so a new field fails until it
stands in one of these modules or in a list below.
"""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec

from trimtab.admission.apiserver.defaulting import set_defaults
from trimtab.cluster import anonymize
from trimtab.cluster.api.pod import Container, ContainerPort, MountingPod, Pod, PodSpec, Resources
from trimtab.policy.cluster_facts import ClusterFacts

NAMES = {
    *("args", "claims", "claimName", "command", "containerName", "csi", "ephemeral", "gmsaCredentialSpecName"),
    *("hostIP", "image", "name", "namespaces", "nodeName", "podGroup", "podGroupName", "podGroupReplicaKey"),
    *("resourceClaimName", "resourceClaimTemplateName", "runAsUserName", "schedulerName", "schedulingGates"),
    *("serviceAccountName", "value", "values"),
}
"""The fields whose text may be a name: it is replaced in a capture that is shared."""
MISSING_IS_ENOUGH = {
    "Affinity": {"node_affinity", "pod_affinity", "pod_anti_affinity"},
    "ClaimVolume": {"claim_name"},
    "Container": {
        *("name", "image", "command", "args", "env", "ports", "restart_policy", "restart_policy_rules"),
        *("volume_mounts", "runtime_signs", "security_context"),
        "resize_policy",  # the server writes NotRequired, which means the same as none
    },
    "ContainerPort": {"container_port", "host_ip", "protocol"},  # the protocol is TCP as soon as it is decoded
    "ContainerSecurityContext": {"windows_options"},
    "DownwardAPI": {"items"},
    "DownwardItem": {"resource_field_ref"},
    "EmptyDir": {"medium", "size_limit"},
    "Env": {"name", "value", "value_from"},
    "EnvSource": {"resource_field_ref"},
    "LabelSelector": {"match_labels", "match_expressions"},
    "NodeAffinity": {"required", "preferred"},
    "NodeSelector": {"node_selector_terms"},
    "NodeSelectorTerm": {"match_expressions", "match_fields"},
    "PodAffinity": {"required", "preferred"},
    "PodAffinityTerm": {
        *("topology_key", "label_selector", "namespaces", "namespace_selector", "match_label_keys"),
        "mismatch_label_keys",
    },
    "PodClaim": {"name", "resource_claim_name", "resource_claim_template_name"},
    "PodOS": {"name"},
    "PodSecurityContext": {"windows_options", "supplemental_groups_policy"},
    "PodSpec": {
        *("runtime_class_name", "node_selector", "affinity", "topology_spread_constraints", "priority_class_name"),
        *("node_name", "volumes", "service_account_name", "host_network", "os", "host_users"),
        *("active_deadline_seconds", "scheduling_gates", "resource_claims", "scheduling_group", "workload_ref"),
        *("overhead", "tolerations", "priority", "preemption_policy"),  # admission plugins set them: pod_classes.py
    },
    "PreferredTerm": {"weight", "preference"},
    "Projected": {"sources"},
    "ProjectedSource": {"downward_api"},
    "ResizePolicy": {"resource_name", "restart_policy"},
    "ResourceField": {"container_name", "resource"},
    "Resources": {"claims"},
    "RestartRule": {"action"},
    "RuntimeSign": {"runtime", "shown_by", "frees"},  # no field of the API
    "SchedulingGroup": {"pod_group_name"},
    "SelectorRequirement": {"key", "operator", "values"},
    "Toleration": {"key", "operator", "value", "effect", "toleration_seconds"},
    "TopologySpreadConstraint": {
        *("max_skew", "topology_key", "when_unsatisfiable", "label_selector", "min_domains", "match_label_keys"),
        *("node_affinity_policy", "node_taints_policy"),
    },
    "Volume": {
        *("name", "host_path", "persistent_volume_claim", "ephemeral", "csi", "downward_api", "projected"),
        "empty_dir",  # the server writes {} for a volume without a source, which is in no node's memory either
    },
    "VolumeMount": {"recursive_read_only"},
    "WeightedPodAffinityTerm": {"weight", "pod_affinity_term"},
    "WindowsOptions": {"host_process", "gmsa_credential_spec_name", "run_as_user_name"},
    "WorkloadReference": {"name", "pod_group", "pod_group_replica_key"},
}
"""The fields that the API server's defaulting leaves as they are (`SetDefaults_PodSpec`, pkg/apis/core/v1/defaults.go,
1.36), or whose default means the same as a missing field."""


def decoded_types() -> dict[str, type[msgspec.Struct]]:
    """Every type of which a spec consists, by the name of the API's type: `MountingPod` decodes all fields."""
    types: dict[str, type[msgspec.Struct]] = {}

    def visit(hint: Any) -> None:
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            name = {"_MountingPodSpec": "PodSpec", "_MountingContainer": "Container"}.get(hint.__name__, hint.__name__)
            if name in types:
                return
            types[name] = hint
            for inner in get_type_hints(hint).values():
                visit(inner)
        for inner in get_args(hint):
            visit(inner)

    visit(get_type_hints(MountingPod)["spec"])
    return types


def holds_text(hint: Any) -> bool:
    return hint in (str, Any) or any(holds_text(inner) for inner in get_args(hint))


def test_each_text_of_a_pod_is_a_word_of_the_api_or_said_to_be_a_name() -> None:
    words = (
        anonymize.READABLE_FIELDS
        | anonymize.WORD_FIELDS
        | anonymize.PLAIN_FIELDS
        | anonymize.QUANTITY_MAPS
        | anonymize.MAPS
        | anonymize.PATHS
    )
    texts = {
        field.encode_name
        for decoded in decoded_types().values()
        for field in msgspec.structs.fields(decoded)
        if holds_text(get_type_hints(decoded)[field.name])
    }
    assert texts - words == NAMES
    assert not words & NAMES


def changed_fields(before: Any, after: Any) -> Iterator[tuple[str, str]]:
    """(type, field) of each field that differs, from the outside in."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        for one, other in zip(before, after, strict=True):
            yield from changed_fields(one, other)
    elif isinstance(before, msgspec.Struct):
        for name in before.__struct_fields__:
            one, other = getattr(before, name), getattr(after, name)
            if type(one) is not type(other) or not isinstance(one, tuple | msgspec.Struct):
                if one != other:
                    yield type(before).__name__, name
            else:
                yield from changed_fields(one, other)


def test_each_field_of_a_pod_gets_its_default_or_has_none() -> None:
    limits = {"cpu": "1"}
    bare = Container(name="app", ports=(ContainerPort(container_port=80),))
    limited = Container(name="limited", resources=Resources(limits=limits))
    # At the level of the pod, the limit of huge pages follows from the containers.
    huge = Container(name="huge", resources=Resources(limits={"hugepages-2Mi": "2Mi"}))
    spec = PodSpec(containers=(bare, limited, huge), host_network=True, resources=Resources(limits=limits))
    pod = Pod(spec=spec)
    defaulted = set(changed_fields(pod, set_defaults(pod, ClusterFacts(), "default")))
    # A container without resources has them as an object, and a pod's own are completed field by field.
    defaulted.add(("PodSpec", "resources"))
    defaulted |= {("PodSpec", name) for name in ("containers", "init_containers")}
    decoded = {(name, field) for name, cls in decoded_types().items() for field in cls.__struct_fields__}
    declared = {(name, field) for name, fields in MISSING_IS_ENOUGH.items() for field in fields}
    assert sorted(decoded - defaulted) == sorted(declared)
