"""Finds the pod templates in a manifest, and builds the pods that the manifest's controller would create.

For a Pod, that is the Pod itself. An object with a pod template (Deployment, StatefulSet, DaemonSet, Job, CronJob, and
custom kinds that contain something with `spec.containers` at any depth) stands for the pods of its controller, with
names, owner and labels as the real controllers write them. A custom object may contain several templates. Some kinds
create pods without a template; for those, this module says why they are not read.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import msgspec

from trimtab.admission.referenced_templates import find_template_owner
from trimtab.cluster import scaled_objects
from trimtab.cluster.api.meta import Metadata, change, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.kinds import JOB, REPLICA_SET, STATEFUL_SET, GroupKind, built_in, group_kind, kind_name
from trimtab.cluster.owner import OwnerKey, reference_to
from trimtab.cluster.pod import FINISHED_PHASES
from trimtab.cluster.replicas import Replicas, replicas_of
from trimtab.cluster.snapshot import SHAPES_BY_KIND, decode_object
from trimtab.cluster.yaml_documents import Document, format_path, value_at
from trimtab.cluster.yaml_parser import Path
from trimtab.policy.cluster_facts import ClusterFacts

_BUILT_IN = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")


def template_paths(kind: str, value: Any) -> tuple[Path, ...]:
    """Returns the paths of the pod templates in a manifest of this kind; () stands for the manifest itself."""
    if kind == "Pod":
        return ((),)
    standard_path = ("spec", "jobTemplate", "spec", "template") if kind == "CronJob" else ("spec", "template")
    if _has_containers(value_at(value, standard_path)):
        return (standard_path,)
    return () if kind in _BUILT_IN else tuple(_find_templates(value, ()))


def _find_templates(value: Any, path: Path) -> Iterator[Path]:
    """Yields every path below this one at which there is a value with `spec.containers`."""
    if isinstance(value, dict):
        if path and _has_containers(value):
            yield path
            return
        for key, item in value.items():
            yield from _find_templates(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_templates(item, (*path, index))


def _has_containers(value: Any) -> bool:
    spec = value.get("spec") if isinstance(value, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return isinstance(containers, list) and all(isinstance(container, dict) for container in containers)


def why_not_admitted(document: Document) -> str | None:
    """Returns why a manifest that creates pods is not read, or not read completely. None if it creates no pods or is
    read completely."""
    value, kind = document.value, document.kind
    if kind is None or kind == "CustomResourceDefinition":
        return None
    if (owner := find_template_owner(document)) is not None:
        return (
            f"{document.entry_name}: its pods have the template of {owner.described}, which is not among the objects "
            "that were read"
        )
    group, is_read = group_of(document), bool(template_paths(kind, value))
    if kind_name(kind) in _POD_CREATING_KINDS.get(group, ()):
        if is_read:
            return (
                f"{document.entry_name}: the operator of this object may create more pods than the manifest has "
                "templates for"
            )
        return (
            f"{document.entry_name}: the operator of this object creates the pods, and the manifest has no pod template"
        )
    if is_read:
        return None
    if kind_name(kind) in _INSTALLER_KINDS.get(group, ()):
        return (
            f"{document.entry_name}: the object installs manifests from another source; render them, then run "
            "`trimtab admit` on the result"
        )
    if kind not in _BUILT_IN and kind != "ConfigMap" and _holds_images(value):
        return f"{document.entry_name}: the object has containers outside of a pod template"
    return None


def is_unknown_kind(document: Document) -> bool:
    """Returns whether the kind is unknown, so that its operator may create pods that are not considered. False for
    Kubernetes' own groups, and for kinds that `why_not_admitted` or `template_paths` know."""
    kind, group = document.kind, group_of(document)
    if kind is None or "." not in group or group.endswith(".k8s.io") or group == "trimtab.dev":
        return False
    if (group, kind) in _SCALING_KINDS:
        return False
    return why_not_admitted(document) is None and not template_paths(kind, document.value)


def group_of(document: Document) -> str:
    """Returns the API group, or an empty string for the core group."""
    return str(document.value.get("apiVersion", "")).rpartition("/")[0]


_POD_CREATING_KINDS = {
    "acid.zalan.do": ("postgresql",),
    "agent.k8s.elastic.co": ("Agent",),
    "apm.k8s.elastic.co": ("ApmServer",),
    "argoproj.io": (
        "ArgoCD",
        "ClusterWorkflowTemplate",
        "CronWorkflow",
        "EventBus",
        "EventSource",
        "Sensor",
        "Workflow",
        "WorkflowTemplate",
    ),
    "beat.k8s.elastic.co": ("Beat",),
    "cassandra.datastax.com": ("CassandraDatacenter",),
    "elasticsearch.k8s.elastic.co": ("Elasticsearch",),
    "enterprisesearch.k8s.elastic.co": ("EnterpriseSearch",),
    "flink.apache.org": ("FlinkDeployment",),
    "grafana.integreatly.org": ("Grafana",),
    "k8s.mariadb.com": ("MariaDB", "MaxScale"),
    "kafka.strimzi.io": (
        "Kafka",
        "KafkaBridge",
        "KafkaConnect",
        "KafkaMirrorMaker",
        "KafkaMirrorMaker2",
        "KafkaNodePool",
    ),
    "kibana.k8s.elastic.co": ("Kibana",),
    "kubevirt.io": ("VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceReplicaSet"),
    "logstash.k8s.elastic.co": ("Logstash",),
    "monitoring.coreos.com": ("Alertmanager", "Prometheus", "PrometheusAgent", "ThanosRuler"),
    "mysql.oracle.com": ("InnoDBCluster",),
    "operator.victoriametrics.com": ("VLogs", "VMAgent", "VMAlert", "VMAlertmanager", "VMCluster", "VMSingle"),
    "opentelemetry.io": ("OpenTelemetryCollector", "TargetAllocator"),
    "postgresql.cnpg.io": ("Cluster", "Pooler"),
    "pxc.percona.com": ("PerconaXtraDBCluster",),
    "rabbitmq.com": ("RabbitmqCluster",),
    "redis.redis.opstreelabs.in": ("Redis", "RedisCluster", "RedisReplication", "RedisSentinel"),
    "serving.kserve.io": ("InferenceGraph", "InferenceService"),
    "sparkoperator.k8s.io": ("ScheduledSparkApplication", "SparkApplication"),
    "tekton.dev": ("Pipeline", "PipelineRun", "Task", "TaskRun"),
    "trainer.kubeflow.org": ("TrainJob",),
}
"""API group → kinds whose operators create pods."""
_INSTALLER_KINDS = {
    "argoproj.io": ("Application", "ApplicationSet"),
    "helm.cattle.io": ("HelmChart",),
    "helm.toolkit.fluxcd.io": ("HelmRelease",),
    "kustomize.toolkit.fluxcd.io": ("Kustomization",),
}
"""API group → kinds that install the content of a chart or of another repository."""


_SCALING_KINDS = frozenset({(scaled_objects.GROUP, scaled_objects.KIND)})
"""Group and kind of objects that scale a workload and create no pods."""


def _holds_images(value: Any) -> bool:
    """Returns whether the value contains a container with an image, under `containers`, `container`, `initContainers`
    or `steps`."""
    if isinstance(value, list):
        return any(map(_holds_images, value))
    if not isinstance(value, dict):
        return False
    for key in ("containers", "container", "initContainers", "steps"):
        containers = value.get(key)
        if any(
            isinstance(container, dict) and "image" in container
            for container in (containers if isinstance(containers, list) else [containers])
        ):
            return True
    return any(map(_holds_images, value.values()))


_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names (apimachinery util/rand)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplateLocation:
    """A place in a manifest from which pods are created."""

    document: Document
    kind: GroupKind
    name: str
    namespace: str
    path: Path
    """The path of the pod in the document: () for a Pod, otherwise the path of the pod template."""
    part: str = ""
    """The path as it is displayed, such as spec.workerGroupSpecs[0].template, if the document has several templates;
    otherwise empty."""
    pod: Pod
    """One pod as its controller would send it to the API server."""
    replicas: int = 1
    """The number of such pods; 0 for a pod or Job that has ended, and 1 if the manifest does not say how many there are
    (a DaemonSet without a status)."""
    owners: Mapping[OwnerKey, OwnerKey | None]
    """Owner → its controller, for the owners that would exist together with the manifest. The facts need them."""
    wanted: Mapping[OwnerKey, Replicas] = field(default_factory=dict)
    """Owner → the number of pods that it wants, as far as the manifest says."""

    @property
    def key(self) -> OwnerKey:
        """The identity of the object that the manifest describes. For a manifest with `generateName`, the name is one
        that the API server may generate."""
        return next(iter(self.owners), OwnerKey(self.namespace, self.kind, self.name))

    def with_owners(self, facts: ClusterFacts) -> ClusterFacts:
        """Returns the facts of a cluster in which the owners of this manifest exist."""
        if not self.owners:
            return facts
        with_owners = replace(facts, owners={**facts.owners, **self.owners})
        return replace(with_owners, replicas={**facts.replicas, **self.wanted}) if self.wanted else with_owners


def read_templates(document: Document) -> tuple[PodTemplateLocation | ConfigError, ...]:
    """Returns the pods of one document, in the order of their templates; a ConfigError in place of each that cannot be
    read."""
    kind = document.kind
    if kind is None:
        return ()
    paths = template_paths(kind, document.value)
    return tuple(_read_template(document, kind, path, is_one_of_many=len(paths) > 1) for path in paths)


def _read_template(
    document: Document, kind: GroupKind, path: Path, *, is_one_of_many: bool
) -> PodTemplateLocation | ConfigError:
    template = value_at(document.value, path)
    if path and is_knative(document.value):
        template = _with_knative_names(template)
    template = _with_volume_sources(template)
    pod = decode_object(Document(file=document.file, index=document.index, value=template, node=None), Pod)
    if isinstance(pod, ConfigError):
        parts = pod.field.replace("[", ".[").split(".")
        steps = tuple([int(part[1:-1]) if part.startswith("[") else part for part in parts if part])
        return document.error_at((*path, *steps), pod.expected, pod.got, pod.todo)
    if path and kind not in SHAPES_BY_KIND:
        for index, container in enumerate(pod.spec.containers):
            if not container.image:
                where = (*path, "spec", "containers", index, "image")
                return document.error_at(
                    where, "a value", "nothing", f"nothing, because the operator of {kind} completes the template"
                )
    if path and not pod.spec.scheduler_name and (scheduler := _scheduler_of(document, path)):
        pod = change(pod, spec=change(pod.spec, scheduler_name=scheduler))
    return _build_location(document, kind, path, pod, is_one_of_many=is_one_of_many)


def _scheduler_of(document: Document, path: Path) -> str:
    """Returns the scheduler that the object names above the template, or an empty string. Its controller writes it into
    pods whose template names none (Volcano, pkg/controllers/job/job_controller_util.go)."""
    schedulers = (value_at(document.value, (*path[:end], "schedulerName")) for end in range(len(path) - 1, 0, -1))
    return next((scheduler for scheduler in schedulers if isinstance(scheduler, str)), "")


def is_knative(value: Any) -> bool:
    """Returns whether Knative handles this object, because Knative names containers itself."""
    return str(value.get("apiVersion", "")).startswith("serving.knative.dev/")


def _with_knative_names(template: Any) -> Any:
    """Returns the template with the name that Knative gives to a container without one (serving pkg/apis/serving/v1
    revision_defaults.go)."""
    spec = template["spec"]
    single = len(spec["containers"]) == 1
    named = [
        {"name": "user-container" if single else f"user-container-{index}", **container}
        for index, container in enumerate(spec["containers"])
    ]
    return {**template, "spec": {**spec, "containers": named}}


def _with_volume_sources(pod: Any) -> Any:
    """Returns the pod with an emptyDir in each volume without a source, which is the API server's default
    (`SetDefaults_Volume` in pkg/apis/core/v1/defaults.go, 1.36)."""
    spec: Any = pod.get("spec") if isinstance(pod, Mapping) else None
    volumes: Any = spec.get("volumes") if isinstance(spec, Mapping) else None
    if not isinstance(volumes, list) or not any(map(_has_no_source, volumes)):
        return pod
    filled = [{**volume, "emptyDir": {}} if _has_no_source(volume) else volume for volume in volumes]
    return {**pod, "spec": {**spec, "volumes": filled}}


def _has_no_source(volume: Any) -> bool:
    return isinstance(volume, Mapping) and all(value is None for key, value in volume.items() if key != "name")


def _build_location(
    document: Document, kind: GroupKind, path: Path, pod: Pod, *, is_one_of_many: bool
) -> PodTemplateLocation:
    outer = document.value.get("metadata") or {}
    name = str(outer.get("name") or outer.get("generateName") or "")
    namespace = str(outer.get("namespace") or "default")
    # The API server appends five characters (`SimpleNameGenerator` in apiserver pkg/storage/names).
    top = OwnerKey(namespace, kind, name if outer.get("name") else f"{name}{_template_hash(pod)[:5]}")
    controller_pod, owners = (pod, {}) if not path else _with_owner(top, _controller_in(outer, namespace), pod)
    return PodTemplateLocation(
        document=document,
        kind=kind,
        name=name,
        namespace=namespace,
        path=path,
        part=format_path(path) if is_one_of_many else "",
        pod=controller_pod,
        owners=owners,
        replicas=_replica_count(kind, document.value, path),
        wanted=_wanted_replicas(document, kind, namespace, owners),
    )


def _replica_count(kind: str, value: Any, path: Path) -> int:
    """Returns the number of pods of this template that exist at once if everything runs that the manifest asks for; 1
    if the manifest does not say it."""
    if not path:
        return int(value_at(value, ("status", "phase")) not in FINISHED_PHASES)
    if kind == "DaemonSet":
        # Before its controller has looked, the status is empty.
        count = value_at(value, ("status", "desiredNumberScheduled"))
        return count if isinstance(count, int) and value_at(value, ("status", "observedGeneration")) else 1
    if kind in ("Job", "CronJob"):
        # Whether the conditions of a Job say that it has completed or failed.
        conditions = value_at(value, ("status", "conditions"))
        return (
            0
            if any(
                isinstance(condition, Mapping)
                and condition.get("type") in ("Complete", "Failed")
                and condition.get("status") == "True"
                for condition in (conditions if isinstance(conditions, list) else ())
            )
            else _parallel_pods(value_at(value, path[:-1]))
        )
    factors: list[int] = []
    for end in range(len(path) - 1, 0, -1):
        # Further out, a count is one of pods only if it repeats a template of several pods: replicas of a group of
        # jobs, each with pods in parallel. Beside anything else, it is that of another template.
        if not factors or "template" in str(path[end]).lower():
            factors += _counts_beside(value_at(value, path[:end]), path[end])
    return max(prod(factors), 0)


_COUNTS = ("replicas", "count", "numNodes", "numOfHosts")
"""Fields with a number of pods beside a pod template, by the names that Kubernetes and the kinds of operators use."""


def _counts_beside(value: Any, name: str | int) -> Iterator[int]:
    """Yields the numbers beside the field `name`, which has a pod template, that multiply its pods."""
    if not isinstance(value, Mapping):
        return
    yield from (count for field_name in _COUNTS if isinstance(count := value.get(field_name), int))
    if isinstance(value.get("parallelism"), int):
        yield _parallel_pods(value)
    # The size of a group (LeaderWorkerSet) counts its leader, which has a template of its own if `leaderTemplate` is
    # set.
    size = value.get("size")
    if isinstance(size, int) and name != "leaderTemplate":
        yield size - ("leaderTemplate" in value)


def _parallel_pods(job_spec: Any) -> int:
    """Returns how many pods of a Job run at once: `parallelism`, at most `completions`."""
    parallelism, completions = (value_at(job_spec, (name,)) for name in ("parallelism", "completions"))
    count = parallelism if isinstance(parallelism, int) else 1
    return max(0, min(count, completions) if isinstance(completions, int) else count)


def _wanted_replicas(
    document: Document, kind: GroupKind, namespace: str, owners: Mapping[OwnerKey, OwnerKey | None]
) -> dict[OwnerKey, Replicas]:
    """Returns owner → the number of pods it wants, for the manifest's own object, or for the Job that a CronJob
    creates."""
    value, key = document.value, next(iter(owners), None)
    if kind == "CronJob" and key is not None:
        kind, key = JOB, list(owners)[-1]
        value = {"spec": value_at(value, ("spec", "jobTemplate", "spec"))}
    owner = decode_object(Document(file=document.file, index=document.index, value=value, node=None), Workload)
    replicas = None if key is None or isinstance(owner, ConfigError) else replicas_of(kind, owner)
    return {} if key is None or replicas is None else {key: replicas}


_INTERMEDIATE_KINDS = {
    built_in("Elasticsearch"): STATEFUL_SET,
    built_in("JobSet"): JOB,
    built_in("LeaderWorkerSet"): STATEFUL_SET,
    built_in("RayJob"): built_in("RayCluster"),
    built_in("RayService"): built_in("RayCluster"),
    built_in("Rollout"): REPLICA_SET,
}
"""Custom kinds that create another object, which then owns the pods."""


def _controller_in(outer: Any, namespace: str) -> OwnerKey | None:
    """Returns the controller that the metadata of a manifest name, or None if the object has none."""
    references = outer.get("ownerReferences") if isinstance(outer, Mapping) else None
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, Mapping) and reference.get("controller") is True:
            version, kind, name = (str(reference.get(key) or "") for key in ("apiVersion", "kind", "name"))
            return OwnerKey(namespace, group_kind(version, kind), name)
    return None


def _with_owner(top: OwnerKey, controller: OwnerKey | None, pod: Pod) -> tuple[Pod, dict[OwnerKey, OwnerKey | None]]:
    """Returns the pod as the controller of this kind creates it, and the owners that exist with it (owner → its
    controller). `controller` is that of the object itself."""
    namespace, kind, name = top
    suffix = _template_hash(pod)
    if kind == "Deployment":
        middle, labels = OwnerKey(namespace, REPLICA_SET, f"{name}-{suffix}"), {"pod-template-hash": suffix}
    elif kind in _INTERMEDIATE_KINDS:
        middle, labels = OwnerKey(namespace, _INTERMEDIATE_KINDS[kind], f"{name}-{suffix}"), {}
    elif kind == "CronJob":
        # The CronJob controller appends the scheduled time in minutes since 1970 (`getJobName`,
        # pkg/controller/cronjob); any will do.
        middle = OwnerKey(namespace, JOB, f"{name}-29383200")
        labels = {"batch.kubernetes.io/job-name": middle.name}
    elif kind == "Job":
        middle, labels = top, {"batch.kubernetes.io/job-name": name}
    else:
        middle, labels = top, {}
    owners: dict[OwnerKey, OwnerKey | None] = {top: controller}
    if middle != top:
        owners[middle] = top
    return _with_metadata(pod, middle, labels, ordinal=kind == "StatefulSet"), owners


def _with_metadata(pod: Pod, owner: OwnerKey, labels: dict[str, str], *, ordinal: bool) -> Pod:
    metadata: Metadata = pod.metadata
    new_labels = {**value_or(metadata.labels, {}), **labels}
    return change(
        pod,
        metadata=change(
            metadata,
            name=f"{owner.name}-0" if ordinal else "",
            generate_name=f"{owner.name}-",
            labels=new_labels or metadata.labels,
            owner_references=(reference_to(owner),),
        ),
    )


def _template_hash(pod: Pod) -> str:
    """Returns ten characters that change with the template, as the hash of the Deployment controller does."""
    digest = hashlib.blake2b(msgspec.json.encode(pod, order="sorted"), digest_size=10).digest()
    return "".join(_NAME_ALPHABET[byte % len(_NAME_ALPHABET)] for byte in digest)
