"""Every right each account has, asked of the real authorizer: what its roles say, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.snapshots import trimtab
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed
from trimtab.cluster.processes import account_name
from trimtab.inputs.capture_series import SeriesReader, find_series_files
from trimtab.installation.access_rule import Rule
from trimtab.installation.installed_processes import CLUSTER_RULES, NAMESPACE_RULES
from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, PROCESSES
from trimtab.installation.processes.captures import CAPTURE, render_captures
from webhook import cert_manager

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
EVERYBODYS = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
}
"""Who is logged in may ask what it may (`system:basic-user`)."""


@dataclass(frozen=True)
class Question:
    """May this process do that? `namespace` empty: everywhere."""

    process: str
    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def granted(self, own: str) -> bool:
        """What its roles say."""
        if self.verb == "create" and (self.group, self.resource) in EVERYBODYS:
            return True
        rules: Iterable[Rule] = CLUSTER_RULES[self.process]
        if self.namespace == own:
            rules = (*rules, *NAMESPACE_RULES[self.process])
        return any(self._by(rule) for rule in rules)

    def _by(self, rule: Rule) -> bool:
        named = not rule.names or self.name in rule.names
        return rule.group == self.group and self.resource in rule.resources and self.verb in rule.verbs and named

    def asked(self, own: str) -> dict[str, Any]:
        resource, _, sub = self.resource.partition("/")
        what = {"verb": self.verb, "group": self.group, "resource": resource, "subresource": sub}
        where = {"namespace": self.namespace, "name": self.name}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{own}", "system:authenticated"]
        user = f"system:serviceaccount:{own}:{account_name(self.process)}"
        spec = {"user": user, "groups": groups, "resourceAttributes": {**what, **where}}
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def resources(cluster: Cluster) -> set[tuple[str, str]]:
    """(group, resource) of all there is, subresources too."""
    groups = cluster.api.request("GET", "/apis")["groups"]
    served = {f"/apis/{version['groupVersion']}": group["name"] for group in groups for version in group["versions"]}
    return {
        (group, resource["name"])
        for path, group in {"/api/v1": "", **served}.items()
        for resource in cluster.api.request("GET", path)["resources"]
    }


def questions(process: str, everything: set[tuple[str, str]], own: str) -> Iterator[Question]:
    for group, resource in sorted(everything):
        for verb in VERBS:
            yield Question(process, verb, group, resource)
            yield Question(process, verb, group, resource, own)
    for verb in VERBS:
        for name in (CERTIFICATE_SECRET, CONFIGURATION_NAME, "another"):
            yield Question(process, verb, "", "secrets", own, name)
            for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
                yield Question(process, verb, "admissionregistration.k8s.io", kind, "", name)
    for verb, group, resource in (
        ("impersonate", "", "users"),
        ("impersonate", "", "serviceaccounts"),
        ("*", "*", "*"),
        ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
        ("bind", "rbac.authorization.k8s.io", "clusterroles"),
        ("sign", "certificates.k8s.io", "signers"),
    ):
        yield Question(process, verb, group, resource)


@pytest.fixture(scope="module")
def captures(here: Installed) -> Iterator[str]:
    """The account of the CronJob, which exists on request."""
    manifests = [item for item in render_captures(here.values) if item["kind"] != "CronJob"]
    here.cluster.apply(manifests)
    yield CAPTURE
    for item in reversed(manifests):
        here.cluster.delete(item["kind"], item["metadata"]["name"], namespace=item["metadata"].get("namespace"))


@pytest.mark.usefixtures("captures")
@pytest.mark.parametrize("process", [*PROCESSES, CAPTURE])
def test_an_account_may_do_exactly_what_its_roles_say(here: Installed, process: str) -> None:
    own, path = here.values.namespace, "/apis/authorization.k8s.io/v1/subjectaccessreviews"

    def allowed(question: Question) -> bool:
        return bool(here.cluster.api.request("POST", path, question.asked(own))["status"]["allowed"])

    objects = list(questions(process, resources(here.cluster), own))
    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(objects, pool.map(allowed, objects), strict=True))
    assert len(objects) > 1500
    assert [one for one, yes in answers.items() if yes != one.granted(own)] == []


def test_no_role_has_a_wildcard() -> None:
    rules = [rule for process in (*PROCESSES, CAPTURE) for rule in (*CLUSTER_RULES[process], *NAMESPACE_RULES[process])]
    assert not [rule for rule in rules if any("*" in word for word in (rule.group, *rule.resources, *rule.verbs))]


@pytest.fixture(scope="module")
def webhooks(here: Installed) -> Cluster:
    """The cluster as the webhook's account sees it."""
    return Cluster(here.login, here.values.namespace)


def test_the_webhooks_account_reads_and_lists_what_it_needs(webhooks: Cluster) -> None:
    webhooks.get("Secret", CERTIFICATE_SECRET)
    for kind in cert_manager.CONFIGURATIONS:
        webhooks.get(kind, CONFIGURATION_NAME)
    for kind in ("Namespace", "Node", "LimitRange", "PodPolicy", "ReplicaSet", "RuntimeClass", "EndpointSlice"):
        webhooks.list(kind, everywhere=True)
    webhooks.list("ConfigMap")


NOT_ALLOWED = [
    ("GET", "/api/v1/namespaces/kube-system/secrets"),
    ("GET", "/api/v1/namespaces/{own}/secrets/another"),
    ("POST", "/api/v1/namespaces/{own}/secrets"),
    ("DELETE", "/api/v1/namespaces/{own}/secrets/" + CERTIFICATE_SECRET),
    ("POST", "/api/v1/namespaces/default/pods"),
    ("POST", "/api/v1/namespaces/default/pods/x/eviction"),
    ("PATCH", "/apis/trimtab.dev/v1alpha1/podpolicies/x/status"),
    ("PUT", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/another"),
    ("PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/trimtab-webhook"),
    ("POST", "/api/v1/namespaces/{own}/serviceaccounts/trimtab-compactor/token"),
]


@pytest.mark.parametrize(("method", "path"), NOT_ALLOWED)
def test_tried_with_its_own_token_it_is_refused(webhooks: Cluster, method: str, path: str) -> None:
    body = None if method in ("GET", "DELETE") else {}
    how = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refused:
        webhooks.api.request(method, path.format(own=webhooks.namespace), body, content_type=how)
    assert refused.value.status == 403


@pytest.mark.parametrize("process", ["watchdog", "compactor", "recommender"])
def test_who_works_behind_a_lease_is_refused_nothing(here: Installed, process: str) -> None:
    with here.working(process) as worker:
        time.sleep(4)  # some rounds
    lines = worker.log.read_text().splitlines()
    assert [line for line in lines if "orbidden" in line or '"level": "error"' in line] == []


def test_the_webhooks_were_refused_nothing(here: Installed) -> None:
    lines = [line for replica in here.replicas for line in replica.log if "forbidden" in str(line).lower()]
    assert lines == []


def test_the_account_of_captures_captures_and_is_refused_nothing(
    here: Installed, captures: str, tmp_path: Path
) -> None:
    login, folder = here.login_of(captures), tmp_path / "captures"
    words = ("--every", "1s", "--for", "2s", "--config-maps-in", here.values.namespace, "-O", str(folder))
    auditor = here.cluster.auditor
    result = trimtab("capture", *words, "--kubeconfig", str(login))
    assert result.exit_code == 0, result.output
    assert len(list(SeriesReader(find_series_files([str(folder)])).iterate_changes())) == 2
    user = f"system:serviceaccount:{here.values.namespace}:{account_name(captures)}"
    assert auditor.writes(user=user) == []


@pytest.mark.parametrize(("method", "path"), [*NOT_ALLOWED, ("GET", "/api/v1/configmaps"), ("GET", "/api/v1/secrets")])
def test_a_stolen_token_of_captures_changes_nothing(here: Installed, captures: str, method: str, path: str) -> None:
    stolen = Cluster(here.login_of(captures), here.values.namespace)
    body = None if method in ("GET", "DELETE") else {}
    how = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refused:
        stolen.api.request(method, path.format(own=stolen.namespace), body, content_type=how)
    assert refused.value.status == 403
