"""Where does a manifest hold pod templates, and does it make pods without one?

Which pods would this manifest make?

A Pod is itself. Anything with a pod template (Deployment, StatefulSet, DaemonSet, Job, CronJob, and custom kinds
that hold something with `spec.containers` at any depth) stands for the pods its controller would create: names, owner
and labels as the real controllers write them. A custom kind may hold several templates.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from trimtab.cluster.api.meta import Metadata, OwnerReference, change, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.owner import Owner
from trimtab.cluster.replicas import Replicas, replicas_of
from trimtab.cluster.snapshot import KINDS, decode
from trimtab.cluster.yaml_documents import Document, dotted
from trimtab.cluster.yaml_parser import Path
from trimtab.policy.cluster_facts import ClusterFacts

_OWN = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")


def template_paths(kind: str, value: Any) -> tuple[Path, ...]:
    """Where the pod templates stand in a manifest of this kind; () is the manifest itself."""
    if kind == "Pod":
        return ((),)
    usual = ("spec", "jobTemplate", "spec", "template") if kind == "CronJob" else ("spec", "template")
    if _has_containers(inside(value, usual)):
        return (usual,)
    return () if kind in _OWN else tuple(_found(value, ()))


def _found(value: Any, path: Path) -> Iterator[Path]:
    """Every place below this one that has `spec.containers`."""
    if isinstance(value, dict):
        if path and _has_containers(value):
            yield path
            return
        for key, item in value.items():
            yield from _found(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _found(item, (*path, place))


def _has_containers(value: Any) -> bool:
    spec = value.get("spec") if isinstance(value, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return isinstance(containers, list) and all(isinstance(found, dict) for found in containers)


def inside(value: Any, path: Path) -> Any:
    """What stands at this place; None where nothing does."""
    for step in path:
        if isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def left_as_written(document: Document) -> str | None:
    """Why a manifest that makes pods is not read, or not whole; None where it makes none, or is read whole."""
    value, kind = document.value, document.kind
    if kind is None or kind == "CustomResourceDefinition":
        return None
    group, is_read = group_of(document), bool(template_paths(kind, value))
    if kind in _MADE_BY_OPERATORS.get(group, ()):
        if is_read:
            return f"{document.entry}: its operator may make more pods of it than it holds templates for"
        return f"{document.entry}: its operator makes pods of it, and it holds no pod template"
    if is_read:
        return None
    if kind in _INSTALLS.get(group, ()):
        return f"{document.entry}: what it installs is written elsewhere; render that, and admit it"
    if kind not in _OWN and kind != "ConfigMap" and _holds_images(value):
        return f"{document.entry}: it holds containers, and no pod template around them"
    return None


def is_unknown_kind(document: Document) -> bool:
    """Is it of a kind that is nobody's here, so that its operator may make pods of it unseen? Not of Kubernetes' own
    groups, nor of one of which something is said."""
    kind, group = document.kind, group_of(document)
    if kind is None or "." not in group or group.endswith(".k8s.io") or group == "trimtab.dev":
        return False
    return left_as_written(document) is None and not template_paths(kind, document.value)


def group_of(document: Document) -> str:
    """The API group; empty for the core one."""
    return str(document.value.get("apiVersion", "")).rpartition("/")[0]


_MADE_BY_OPERATORS = {
    "acid.zalan.do": ("postgresql",),
    "agent.k8s.elastic.co": ("Agent",),
    "apm.k8s.elastic.co": ("ApmServer",),
    "argoproj.io": (
        "ArgoCD", "ClusterWorkflowTemplate", "CronWorkflow", "EventBus", "EventSource", "Sensor", "Workflow",
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
        "Kafka", "KafkaBridge", "KafkaConnect", "KafkaMirrorMaker", "KafkaMirrorMaker2", "KafkaNodePool",
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
}  # fmt: skip
"""API group → kinds whose operators write the pods."""
_INSTALLS = {
    "argoproj.io": ("Application", "ApplicationSet"),
    "helm.cattle.io": ("HelmChart",),
    "helm.toolkit.fluxcd.io": ("HelmRelease",),
    "kustomize.toolkit.fluxcd.io": ("Kustomization",),
}
"""API group → kinds that install what a chart or another repository holds."""


def _holds_images(value: Any) -> bool:
    """Is there a container in here, by the words `containers`, `container` or `steps`, with an image?"""
    if isinstance(value, list):
        return any(map(_holds_images, value))
    if not isinstance(value, dict):
        return False
    for key in ("containers", "container", "initContainers", "steps"):
        held = value.get(key)
        if any(isinstance(each, dict) and "image" in each for each in (held if isinstance(held, list) else [held])):
            return True
    return any(map(_holds_images, value.values()))


_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of generated names (apimachinery util/rand)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplateLocation:
    """A manifest that makes pods."""

    document: Document
    kind: str
    name: str
    namespace: str
    path: Path
    """Where the pod stands in the document: () for a Pod, else the pod template."""
    part: str = ""
    """The place as people read it, such as spec.workerGroupSpecs[0].template, where the document has several."""
    pod: Pod
    """One pod as its controller would send it to the API server."""
    replicas: int = 1
    """How many of them; 1 where that is the cluster's to say (DaemonSet) or each run's (Job)."""
    owners: Mapping[tuple[str, str, str], Owner | None]
    """Owners that would exist with it, for the facts."""
    wanted: Mapping[tuple[str, str, str], Replicas] = field(default_factory=dict)
    """How many pods these owners want, as far as the manifest says."""

    def facts(self, facts: ClusterFacts) -> ClusterFacts:
        """The facts of a cluster in which this manifest's controllers stand."""
        if not self.owners:
            return facts
        found = replace(facts, owners={**facts.owners, **self.owners})
        return replace(found, replicas={**facts.replicas, **self.wanted}) if self.wanted else found


def templates(document: Document) -> tuple[PodTemplateLocation | ConfigError, ...]:
    """The pods of one document, in the order of their templates; a Mistake where they cannot be read."""
    kind = document.kind
    if kind is None:
        return ()
    paths = template_paths(kind, document.value)
    return tuple(_read(document, kind, path, is_one_of_many=len(paths) > 1) for path in paths)


def _read(document: Document, kind: str, path: Path, *, is_one_of_many: bool) -> PodTemplateLocation | ConfigError:
    found = inside(document.value, path)
    if path and is_knative(document.value):
        found = _named(found)
    found = _with_sources(found)
    pod = decode(Document(file=document.file, index=document.index, value=found, node=None), Pod)
    if isinstance(pod, ConfigError):
        steps = tuple(_steps(pod.field))
        return document.mistake((*path, *steps), pod.expected, pod.got, pod.todo)
    if path and kind not in KINDS:
        for place, container in enumerate(pod.spec.containers):
            if not container.image:
                where = (*path, "spec", "containers", place, "image")
                return document.mistake(where, "a value", "nothing", f"the operator of {kind} completes it")
    return _template(document, kind, path, pod, is_one_of_many=is_one_of_many)


def is_knative(value: Any) -> bool:
    """Is this served by Knative, which names containers itself?"""
    return str(value.get("apiVersion", "")).startswith("serving.knative.dev/")


def _named(template: Any) -> Any:
    """With the name that Knative gives a container without one (serving pkg/apis/serving/v1 revision_defaults.go)."""
    spec = template["spec"]
    single = len(spec["containers"]) == 1
    named = [
        {"name": "user-container" if single else f"user-container-{place}", **found}
        for place, found in enumerate(spec["containers"])
    ]
    return {**template, "spec": {**spec, "containers": named}}


def _with_sources(pod: Any) -> Any:
    """With an emptyDir in each volume that names no source, as the API server fills it in (`SetDefaults_Volume` in
    pkg/apis/core/v1/defaults.go, 1.36)."""
    spec: Any = pod.get("spec") if isinstance(pod, Mapping) else None
    volumes: Any = spec.get("volumes") if isinstance(spec, Mapping) else None
    if not isinstance(volumes, list) or not any(map(_has_no_source, volumes)):
        return pod
    filled = [{**volume, "emptyDir": {}} if _has_no_source(volume) else volume for volume in volumes]
    return {**pod, "spec": {**spec, "volumes": filled}}


def _has_no_source(volume: Any) -> bool:
    return isinstance(volume, Mapping) and all(value is None for key, value in volume.items() if key != "name")


def _steps(field: str) -> list[str | int]:
    parts = field.replace("[", ".[").split(".")
    return [int(part[1:-1]) if part.startswith("[") else part for part in parts if part]


def _template(document: Document, kind: str, path: Path, pod: Pod, *, is_one_of_many: bool) -> PodTemplateLocation:
    outer = document.value.get("metadata") or {}
    name = str(outer.get("name") or outer.get("generateName") or "")
    namespace = str(outer.get("namespace") or "default")
    made, owners = (pod, {}) if not path else _owned(kind, name, namespace, pod)
    return PodTemplateLocation(
        document=document, kind=kind, name=name, namespace=namespace, path=path,
        part=dotted(path) if is_one_of_many else "", pod=made, owners=owners,
        replicas=_replicas(kind, document.value, path),
        wanted=_wanted(document, kind, namespace, owners),
    )  # fmt: skip


def _replicas(kind: str, value: Any, path: Path) -> int:
    """How many pods the manifest asks for by this template; 1 where that is the cluster's to say, or each run's."""
    if kind in ("DaemonSet", "Job", "CronJob") or not path:
        return 1
    counts = [inside(value, (*path[:end], "replicas")) for end in range(len(path), 0, -1)]
    count = next((count for count in counts if isinstance(count, int)), 1)
    if kind == "JobSet":
        parallelism = inside(value, (*path[:-1], "parallelism"))
        count *= parallelism if isinstance(parallelism, int) else 1
    if kind == "LeaderWorkerSet" and path[-1] == "workerTemplate":
        group = inside(value, path[:-1])
        size = group.get("size")
        count *= (size if isinstance(size, int) else 1) - ("leaderTemplate" in group)
    return max(count, 0)


def _wanted(
    document: Document, kind: str, namespace: str, owners: Mapping[tuple[str, str, str], Owner | None]
) -> dict[tuple[str, str, str], Replicas]:
    """Of the manifest's own object, or of the Job that a CronJob makes."""
    value, key = document.value, next(iter(owners), None)
    if kind == "CronJob" and key is not None:
        kind, key = "Job", list(owners)[-1]
        value = {"spec": inside(value, ("spec", "jobTemplate", "spec"))}
    owner = decode(Document(file=document.file, index=document.index, value=value, node=None), Workload)
    found = None if key is None or isinstance(owner, ConfigError) else replicas_of(kind, owner)
    return {} if key is None or found is None else {key: found}


_BETWEEN = {
    "Elasticsearch": "StatefulSet", "JobSet": "Job", "LeaderWorkerSet": "StatefulSet", "RayJob": "RayCluster",
    "RayService": "RayCluster", "Rollout": "ReplicaSet",
}  # fmt: skip
"""Custom kinds whose pods belong to something that they make."""


def _owned(kind: str, name: str, namespace: str, pod: Pod) -> tuple[Pod, dict[tuple[str, str, str], Owner | None]]:
    """The pod as the controller of this kind makes it, and the owners between the two."""
    top = Owner(kind, name)
    suffix = _hash(pod)
    if kind == "Deployment":
        middle, labels = Owner("ReplicaSet", f"{name}-{suffix}"), {"pod-template-hash": suffix}
    elif kind in _BETWEEN:
        middle, labels = Owner(_BETWEEN[kind], f"{name}-{suffix}"), {}
    elif kind == "CronJob":
        middle, labels = Owner("Job", f"{name}-29383200"), {"batch.kubernetes.io/job-name": f"{name}-29383200"}
    elif kind == "Job":
        middle, labels = top, {"batch.kubernetes.io/job-name": name}
    else:
        middle, labels = top, {}
    owners: dict[tuple[str, str, str], Owner | None] = {(namespace, kind, name): None}
    if middle != top:
        owners[namespace, middle.kind, middle.name] = top
    return _with(pod, middle, labels, ordinal=kind == "StatefulSet"), owners


def _with(pod: Pod, owner: Owner, labels: dict[str, str], *, ordinal: bool) -> Pod:
    metadata: Metadata = pod.metadata
    written = {**get(metadata.labels, {}), **labels}
    return change(
        pod,
        metadata=change(
            metadata,
            name=f"{owner.name}-0" if ordinal else "",
            generate_name=f"{owner.name}-",
            labels=written or metadata.labels,
            owner_references=(OwnerReference(kind=owner.kind, name=owner.name, controller=True),),
        ),
    )


def _hash(pod: Pod) -> str:
    """Ten characters that change with the template, as the Deployment controller's do."""
    drawn = hashlib.blake2b(msgspec.json.encode(pod, order="sorted"), digest_size=10).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in drawn)
