"""The recommender's permissions and its Deployment."""

from collections.abc import Iterator

from trimtab.cluster.processes import RECOMMENDER
from trimtab.cluster.published_reservations import RESERVATIONS_LABEL
from trimtab.cluster.recommendation import RECOMMENDATIONS_LABEL
from trimtab.cluster.request_parameters import PARAMETERS_LABEL, PARAMETERS_NAME
from trimtab.installation.access_rule import (
    FOR_OWN_LEASE,
    WATCH,
    WHEN_FIRST_OBJECT,
    WHEN_NO_LEASE,
    WHEN_VPA,
    Rule,
    lease_rule,
)
from trimtab.installation.demotion_access import render_demotion_access
from trimtab.installation.deployments import worker_environment
from trimtab.installation.installed_process import InstalledProcess, WorkerDeployment
from trimtab.installation.names import InstallValues, Manifest
from trimtab.installation.parameter_access import render_parameter_access
from trimtab.installation.vpa_status_access import render_vpa_status_access, restrict_vpa_status
from trimtab.installation.write_policy import (
    CREATE,
    DELETE,
    UPDATE,
    Place,
    WriteCondition,
    WritePolicy,
    annotation_path,
    label_path,
    restrict_config_maps,
    restrict_lease,
)
from trimtab.machines.expander_map import MAP_NAME
from trimtab.recommender.reservations import HISTORY_LABEL, HISTORY_PREFIX, RESERVATIONS_NAME
from trimtab.recommender.sharded_configmaps import DAMAGED_LABEL, RECOMMENDATION_NAMES, USAGE_LABEL, USAGE_NAMES
from trimtab.runtime.environment import variable_name
from trimtab.sizing.ranking.demotion import BASE_ANNOTATION, DEMOTIONS_ANNOTATION

_NAME = RECOMMENDER.name
STORED_NAMES = (
    f"{RECOMMENDATION_NAMES}-",
    f"{USAGE_NAMES}-",
    RESERVATIONS_NAME,
    f"{HISTORY_PREFIX}-",
    f"{PARAMETERS_NAME}.",
)
"""How the names of the ConfigMaps begin in which the recommender stores something."""

PROMETHEUS_LOGIN_PATH = "/var/run/trimtab/prometheus"
"""The folder of the files that the recommender's `TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN_FILE` and `_CA_FILE` may
name."""


def _environment(values: InstallValues) -> dict[str, str]:
    names = values.parameter_namespaces
    parameters = {variable_name(_NAME, "parameter_namespaces"): ":".join(names)} if names else {}
    demotion = {
        "TRIMTAB_AUTOSCALER_NAMESPACE": values.autoscaler_namespace,
        "TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP": values.autoscaler_status,
        variable_name(_NAME, "demote_groups"): "true",
    }
    vpa_status = {variable_name(_NAME, "write_vpa_status"): "true" if values.writes_vpa_status else "false"}
    return {
        **worker_environment(_NAME, values),
        **parameters,
        **(demotion if values.demote_groups else {}),
        **vpa_status,
    }


PROCESS = InstalledProcess(
    name=_NAME,
    cluster_rules=(
        # Pods show their owners and OOM kills.
        Rule("", ("pods", "replicationcontrollers"), WATCH),
        Rule("apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), WATCH),
        Rule("batch", ("jobs", "cronjobs"), WATCH),
        Rule("metrics.k8s.io", ("pods",), ("list",)),
        Rule("autoscaling.k8s.io", ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"), ("list",)),
    ),
    namespace_rules=(
        lease_rule(_NAME),
        Rule("", ("configmaps",), ("list", "create", "patch", "delete")),
        # In a Role it is the namespace itself.
        Rule("", ("namespaces",), ("get",)),
    ),
    conditions={
        ("create", "leases"): WHEN_NO_LEASE,
        ("list", "verticalpodautoscalers"): WHEN_VPA,
        ("list", "verticalpodautoscalercheckpoints"): WHEN_VPA,
        ("get", "namespaces"): "the recommender recommends for VPAs",
        ("list", "pods"): "the recommender collects usage itself, without a Prometheus",
        ("create", "configmaps"): WHEN_FIRST_OBJECT,
        ("patch", "configmaps"): "there is usage, so checkpoints and recommendations are written",
        ("delete", "configmaps"): "workloads were deleted, and a shard of the recommender is empty",
    },
    cluster_purposes={
        "pods": "to read the owners of containers, and OOM kills",
        **dict.fromkeys(
            ("replicationcontrollers", "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"),
            "to read the owners of pods, because usage is stored for each owner",
        ),
        "pods.metrics.k8s.io": "to read what containers use now, if there is no Prometheus",
        **dict.fromkeys(
            ("verticalpodautoscalers", "verticalpodautoscalercheckpoints"), "to read the usage that a VPA has stored"
        ),
        "verticalpodautoscalers/status": "to write the recommendation of VPAs that name Trimtab",
    },
    namespace_purposes={
        "leases": FOR_OWN_LEASE,
        "configmaps": "to store the recommender's checkpoints and the recommendations",
        "namespaces": "to read whether Trimtab is paused, before it writes the status of a VPA",
    },
    write_policies=(
        restrict_lease(_NAME),
        restrict_config_maps(
            _NAME,
            STORED_NAMES,
            (RECOMMENDATIONS_LABEL, USAGE_LABEL, DAMAGED_LABEL, RESERVATIONS_LABEL, HISTORY_LABEL, PARAMETERS_LABEL),
        ),
        WritePolicy(
            process=_NAME,
            subject="parameters",
            group="",
            kinds=("configmaps",),
            operations=(CREATE, UPDATE, DELETE),
            place=Place.OTHER_NAMESPACES,
            excluded_name=MAP_NAME,
            may_change=(("data",), ("binaryData",), label_path(PARAMETERS_LABEL)),
            what=f"write the data of ConfigMap {PARAMETERS_NAME} in another namespace",
            conditions=(
                WriteCondition(
                    f"request.name == '{PARAMETERS_NAME}' && request.operation != 'DELETE'",
                    f"in other namespaces this account may write only ConfigMap {PARAMETERS_NAME}",
                ),
            ),
        ),
        WritePolicy(
            process=_NAME,
            subject="priorities",
            group="",
            kinds=("configmaps",),
            names=(MAP_NAME,),
            place=Place.OTHER_NAMESPACES,
            may_change=(("data",), annotation_path(BASE_ANNOTATION), annotation_path(DEMOTIONS_ANNOTATION)),
            what="write the data of the autoscaler's priority map, and two annotations of it",
        ),
        restrict_vpa_status(_NAME),
    ),
    environment=_environment,
    worker=WorkerDeployment(
        # When it stops, it still writes its checkpoints.
        grace_seconds=60,
        # An empty folder until the Secret is created, so that the Deployment needs no change for it.
        volumes=(
            {
                "name": "prometheus",
                "secret": {"secretName": "trimtab-prometheus", "defaultMode": 0o440, "optional": True},
            },
        ),
        volume_mounts=({"name": "prometheus", "mountPath": PROMETHEUS_LOGIN_PATH, "readOnly": True},),
    ),
)


def render_access_on_request(values: InstallValues) -> Iterator[Manifest]:
    """Yields the permissions to write outside of Trimtab's namespace, which the installation grants on request."""
    yield from render_vpa_status_access(_NAME, values)
    yield from render_parameter_access(_NAME, values)
    yield from render_demotion_access(_NAME, values)
