"""Where custom kinds hold pod templates, and what is said of those that hold none."""

import re

import pytest
import yaml

from trimtab.admission.pod_templates import PodTemplateLocation, is_unknown_kind, read_templates, why_not_admitted
from trimtab.cluster.api.meta import UNSET
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_documents import Document, read_documents

POD = {"spec": {"containers": [{"name": "app", "image": "x"}]}}


def document(kind: str, spec: dict, version: str = "example.com/v1") -> Document:
    value = {"apiVersion": version, "kind": kind, "metadata": {"name": "it", "namespace": "shop"}, "spec": spec}
    (document,) = read_documents("it.yaml", yaml.safe_dump(value).encode()).documents
    return document


def read_of(kind: str, spec: dict, version: str = "example.com/v1") -> list[tuple[str, int, list[str]]]:
    locations = read_templates(document(kind, spec, version))
    assert all(isinstance(each, PodTemplateLocation) for each in locations)
    return [
        (t.part, t.replicas, [owner.kind for owner in _owners(t)])
        for t in locations
        if isinstance(t, PodTemplateLocation)
    ]


def _owners(location: PodTemplateLocation) -> list:  # type: ignore[type-arg]
    from trimtab.policy.cluster_facts import ClusterFacts as Facts
    from trimtab.policy.pod_context import PodContext as Subject

    return list(Subject(pod=location.pod, namespace=location.namespace, facts=location.with_owners(Facts())).owners)


def test_a_ray_cluster_holds_a_head_and_groups_of_workers():
    spec = {
        "headGroupSpec": {"template": POD},
        "workerGroupSpecs": [{"replicas": 3, "template": POD}, {"replicas": 2, "template": POD}],
    }
    assert read_of("RayCluster", spec, "ray.io/v1") == [
        ("spec.headGroupSpec.template", 1, ["RayCluster"]),
        ("spec.workerGroupSpecs[0].template", 3, ["RayCluster"]),
        ("spec.workerGroupSpecs[1].template", 2, ["RayCluster"]),
    ]


def test_a_ray_job_makes_a_ray_cluster():
    spec = {"rayClusterSpec": {"headGroupSpec": {"template": POD}}}
    assert read_of("RayJob", spec, "ray.io/v1") == [("", 1, ["RayCluster", "RayJob"])]


@pytest.mark.parametrize(("own", "scheduler"), [({}, "volcano"), ({"schedulerName": "other"}, "other")])
def test_a_pod_without_a_scheduler_has_that_of_its_object(own: dict, scheduler: str):
    job = {"schedulerName": "volcano", "tasks": [{"template": {"spec": {**POD["spec"], **own}}}]}
    for kind, spec in (("Job", job), ("CronJob", {"jobTemplate": {"spec": job}})):
        (location,) = read_templates(document(kind, spec, "batch.volcano.sh/v1alpha1"))
        assert isinstance(location, PodTemplateLocation)
        assert location.pod.spec.scheduler_name == scheduler


def test_a_job_set_holds_jobs():
    job = {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 4, "template": POD}}}
    assert read_of("JobSet", {"replicatedJobs": [job]}, "jobset.x-k8s.io/v1alpha2") == [("", 8, ["Job", "JobSet"])]


def test_a_leader_has_size_less_one_workers():
    spec = {"replicas": 3, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": POD, "workerTemplate": POD}}
    assert [count for _, count, _ in read_of("LeaderWorkerSet", spec, "leaderworkerset.x-k8s.io/v1")] == [3, 9]


def test_a_strimzi_pod_set_lists_pods():
    assert len(read_of("StrimziPodSet", {"pods": [POD, POD]}, "core.strimzi.io/v1beta2")) == 2


def test_a_training_job_holds_a_template_for_each_role():
    spec = {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 5, "template": POD}}}
    assert [count for _, count, _ in read_of("PyTorchJob", spec, "kubeflow.org/v1")] == [1, 5]


def test_a_ray_service_makes_a_ray_cluster():
    spec = {"rayClusterConfig": {"headGroupSpec": {"template": POD}}}
    assert read_of("RayService", spec, "ray.io/v1") == [("", 1, ["RayCluster", "RayService"])]


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
def test_a_training_runtime_holds_jobs(kind: str):
    job = {"name": "node", "template": {"spec": {"template": POD}}}
    locations = read_templates(
        document(kind, {"template": {"spec": {"replicatedJobs": [job]}}}, "trainer.kubeflow.org/v1alpha1")
    )
    assert [isinstance(each, PodTemplateLocation) for each in locations] == [True]


def test_a_pod_template_stands_for_its_pod():
    value = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "it"}, "template": POD}
    (document,) = read_documents("it.yaml", yaml.safe_dump(value).encode()).documents
    assert [each.path for each in read_templates(document) if isinstance(each, PodTemplateLocation)] == [("template",)]


def test_knative_names_containers_itself():
    spec = {"template": {"spec": {"containers": [{"image": "x"}]}}}
    (location,) = read_templates(document("Service", spec, "serving.knative.dev/v1"))
    assert isinstance(location, PodTemplateLocation)
    assert location.pod.spec.containers[0].name == "user-container"


def test_a_template_that_an_operator_completes_is_left_and_told():
    spec = {"nodeSets": [{"podTemplate": {"spec": {"containers": [{"name": "elasticsearch"}]}}}]}
    (location,) = read_templates(document("Elasticsearch", spec, "elasticsearch.k8s.elastic.co/v1"))
    assert isinstance(location, ConfigError)
    assert location.field == "spec.nodeSets[0].podTemplate.spec.containers[0].image"


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("Kafka", "kafka.strimzi.io/v1", {"kafka": {"replicas": 3}}),
        ("Elasticsearch", "elasticsearch.k8s.elastic.co/v1", {"nodeSets": [{"name": "a", "count": 3}]}),
        ("Workflow", "argoproj.io/v1alpha1", {"templates": [{"container": {"image": "x"}}]}),
        ("HelmRelease", "helm.toolkit.fluxcd.io/v2", {"chart": {"spec": {"chart": "x"}}}),
        ("Beat", "beat.k8s.elastic.co/v1beta1", {"type": "filebeat"}),
        ("Machinery", "example.com/v1", {"steps": [{"image": "x"}]}),
    ],
)
def test_a_kind_that_makes_pods_without_a_template_is_named(kind: str, version: str, spec: dict):
    actual_document = document(kind, spec, version)
    assert read_templates(actual_document) == ()
    assert str(why_not_admitted(actual_document)).startswith(f"{kind} it")


def test_an_operator_may_make_more_pods_than_there_are_templates():
    sets = [{"name": "hot", "podTemplate": POD}, {"name": "warm"}]
    actual_document = document("Elasticsearch", {"nodeSets": sets}, "elasticsearch.k8s.elastic.co/v1")
    assert (len(read_templates(actual_document)), "more pods" in str(why_not_admitted(actual_document))) == (1, True)


@pytest.mark.parametrize(
    ("kind", "version", "is_unknown"),
    [
        ("Widget", "example.com/v1", True),
        ("Kafka", "kafka.strimzi.io/v1", False),
        ("Service", "v1", False),
        ("Ingress", "networking.k8s.io/v1", False),
        ("Deployment", "apps/v1", False),
        ("PodPolicy", "trimtab.dev/v1alpha1", False),
    ],
)
def test_a_kind_that_nobody_knows_is_not_passed_over(kind: str, version: str, is_unknown: bool):
    assert is_unknown_kind(document(kind, {}, version)) is is_unknown
    assert not is_unknown_kind(document(kind, {"template": POD}, version))


def test_a_rollout_that_refers_to_a_template_elsewhere_is_named_and_known():
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    rollout = document("Rollout", {"workloadRef": reference}, "argoproj.io/v1alpha1")
    assert ("template of Deployment" in str(why_not_admitted(rollout)), is_unknown_kind(rollout)) == (True, False)


@pytest.mark.parametrize("kind", ["Service", "CustomResourceDefinition", "ConfigMap", "Deployment"])
def test_what_makes_no_pods_by_an_operator_is_not_named(kind: str):
    assert why_not_admitted(document(kind, {"ports": []}, "v1")) is None


@pytest.mark.parametrize(
    ("volume", "is_scratch"),
    [
        ({"name": "tmp"}, True),
        ({"name": "tmp", "emptyDir": None}, True),
        ({"name": "tmp", "configMap": {"name": "x"}}, False),
    ],
)
def test_a_volume_without_a_source_is_an_empty_dir_as_on_the_server(volume: dict, is_scratch: bool):
    template = {"spec": {**POD["spec"], "volumes": [volume, {"name": "data", "secret": {"secretName": "x"}}]}}
    (location,) = read_templates(document("Deployment", {"template": template}, "apps/v1"))
    assert isinstance(location, PodTemplateLocation)
    assert [v.name for v in location.pod.spec.volumes if v.empty_dir is not UNSET] == (["tmp"] if is_scratch else [])


def test_a_generated_name_has_the_characters_that_the_api_server_appends():
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "dra-"},
        "spec": {"template": {"spec": {"containers": [{"name": "app", "image": "i"}]}}},
    }
    (location,) = read_templates(Document(file="f", index=0, value=job))
    assert re.fullmatch("dra-[a-z0-9]{5}", location.key.name)
    assert location.pod.metadata.labels["batch.kubernetes.io/job-name"] == location.key.name
