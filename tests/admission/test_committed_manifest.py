"""Changes that are committed are admitted again, until nothing changes any more."""

from typing import Any

from tests.build import NAMESPACE, facts, item, limit_range, policies, policy, priority_class
from tests.committing import previewer
from trimtab.admission.committed_manifest import MAX_COMMITS, preview_commits
from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.admission.preview import Preview, write_changes
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.podpolicy import Policies


def commits_of(value: Any, by: Policies, world: ClusterFacts) -> tuple[Preview, ...]:
    preview = previewer(by, world)
    (template,) = read_templates(Document(file="it.yaml", index=0, value=value))
    assert isinstance(template, PodTemplateLocation)
    return preview_commits(template, preview(template), preview)


def pod(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "app"}], **spec}}


def committed(value: dict[str, Any], commits: tuple[Preview, ...]) -> dict[str, Any]:
    for commit in commits:
        write_changes(value, (), commit)
    return value["spec"]


CLASSES = (priority_class("low", 10), priority_class("high", 1000))
TO_LOW = policy("{priorityClass: {name: low}}", name="a", match="{priorityClasses: [none]}")


def test_a_policy_that_applies_only_to_the_committed_manifest_is_committed_too() -> None:
    by = policies(TO_LOW, policy("{priorityClass: {name: high, override: true}}", name="b"))
    commits = commits_of(pod(), by, facts(*CLASSES))
    assert [{change.policy for change in commit.all_changes} for commit in commits] == [{"a"}, {"b"}]
    value = pod()
    assert committed(value, commits)["priorityClassName"] == "high"
    assert commits_of(value, by, facts(*CLASSES)) == ()


def test_policies_that_contradict_each_other_end() -> None:
    by = policies(
        policy("{priorityClass: {name: high, override: true}}", name="a", match="{priorityClasses: [low]}"),
        policy("{priorityClass: {name: low, override: true}}", name="b", match="{priorityClasses: [high]}"),
    )
    assert len(commits_of(pod(priorityClassName="low"), by, facts(*CLASSES))) == MAX_COMMITS


def test_a_request_that_only_a_limit_range_set_does_not_become_the_authors() -> None:
    by = policies(
        policy("{limits: {memory: request}}", name="a"),
        policy("{requests: {cpu: {from: request, min: 10m, percent: 50}}}", name="b"),
    )
    world = facts(limit_range(item(default_request={"cpu": "50m", "memory": "16Mi"})))
    commits = commits_of(pod(), by, world)
    assert committed(pod(), commits)["containers"][0]["resources"] == {
        # Beside the new limit, because the API server would copy the limit into the request.
        "requests": {"memory": "16Mi"},
        "limits": {"memory": "16Mi"},
    }
    assert len(commits) == 1
