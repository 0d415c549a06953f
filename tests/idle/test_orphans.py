"""Orphans: what is found, what never is."""

import pytest

from tests.idle.cluster_with_orphans import PLANTED, TEAMS, cluster_objects, item, workload
from tests.reasons import assert_reason
from trimtab.idle.orphans import LOAD_BALANCER_WITHOUT_ENDPOINTS, find_orphans
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues

POD = item("Pod", "shop", "p", spec={"containers": [{"name": "c", "args": ["x"]}]})


def names(*objects: dict[str, object], **more: object) -> set[tuple[str, str, str]]:
    return {orphan.name for orphan in find_orphans([POD, *objects], **more).orphans}  # type: ignore[arg-type]


def test_all_planted_orphans_are_found_and_nothing_else() -> None:
    objects = cluster_objects()
    report = find_orphans(objects)
    assert {orphan.name for orphan in report.orphans} == PLANTED
    assert len(objects) - len(PLANTED) >= 500
    assert report.unknown == ()


def test_at_least_two_of_each_kind_are_planted() -> None:
    kinds = [kind for kind, _, _ in PLANTED]
    assert all(kinds.count(kind) >= 2 for kind in kinds)


def test_what_may_be_read_by_an_operator_is_left_out_with_the_reason() -> None:
    left = {
        unjudged_map.name: unjudged_map.reason.code.name for unjudged_map in find_orphans(cluster_objects()).unjudged
    }
    assert left["Secret", "argocd", "repo-1"] == "orphan-operator-label"
    assert left["ConfigMap", "argocd", "argocd-cm"] == "orphan-read-through-the-api"
    assert left["Secret", "policy", "policy-webhook-ca"] == "orphan-webhook-certificate"
    assert left["Secret", "monitoring", "prometheus-generated"] == "orphan-controller-writes-it"
    assert left["Secret", TEAMS[0], "sh.helm.release.v1.web.v3"] == "orphan-helm-release"
    assert left["ConfigMap", TEAMS[0], "kube-root-ca.crt"] == "orphan-of-the-platform"


def test_the_manager_of_a_person_is_no_reader() -> None:
    managed = {"managedFields": [{"manager": "kubectl-client-side-apply"}, {"manager": "Helm"}]}
    assert names(item("ConfigMap", "shop", "old", metadata=managed)) == {("ConfigMap", "shop", "old")}


def test_nothing_of_trimtab_is_listed_wherever_it_is_installed() -> None:
    """Neither what is installed, nor what processes write, nor pools, rules and keys that users create for it."""
    for namespace in ("trimtab-system", "shop"):
        installed = render_manifests(InstallValues(namespace=namespace, metrics_api=True))
        written = [
            item("ConfigMap", namespace, "pool-web", metadata={"labels": {"trimtab.dev/pool": "web"}}, data={"a": "b"}),
            item("ConfigMap", namespace, "trimtab-state-web", metadata={"labels": {"trimtab.dev/state": "web"}}),
            item("ConfigMap", namespace, "trimtab-metrics", data={"rules.yaml": "rules: []"}),
            item("Secret", namespace, "trimtab-metrics-scrape"),
        ]
        report = find_orphans([POD, *installed, *written])
        assert (report.orphans, report.unjudged) == ((), ())


def test_a_mark_of_trimtab_makes_no_object_of_a_user_its_own() -> None:
    mine = item("ConfigMap", "shop", "old", metadata={"annotations": {"trimtab.dev/lint-ignore": "L35 x"}})
    claim = item("PersistentVolumeClaim", "shop", "data", metadata={"labels": {"trimtab.dev/team": "a"}})
    assert names(mine, claim) == {("ConfigMap", "shop", "old"), ("PersistentVolumeClaim", "shop", "data")}


def test_own_label_domains_select_nothing() -> None:
    mine = item("ConfigMap", "shop", "old", metadata={"labels": {"acme.example/team": "web"}})
    assert names(mine) == set()
    assert names(mine, own_domains=["acme.example"]) == {("ConfigMap", "shop", "old")}


def test_a_config_map_does_not_name_itself_nor_its_secret_of_the_same_name() -> None:
    both = [item("ConfigMap", "shop", "old", data={"me": "old"}), item("Secret", "shop", "old")]
    assert ("ConfigMap", "shop", "old") in names(*both)


def test_names_of_another_namespace_do_not_count() -> None:
    other = workload("Deployment", "other", "web", {"containers": [{"name": "c", "args": ["--config=settings"]}]})
    assert names(other, item("ConfigMap", "shop", "settings")) == {("ConfigMap", "shop", "settings")}


def test_a_pod_label_or_a_volume_name_is_no_mention() -> None:
    web = workload("Deployment", "shop", "settings", {"volumes": [{"name": "settings", "emptyDir": {}}]})
    assert names(web, item("ConfigMap", "shop", "settings")) == {("ConfigMap", "shop", "settings")}


def left_out(*objects: dict[str, object]) -> dict[str, str]:
    """Name → why the object is not judged."""
    return {one.name[2]: one.reason.code.name for one in find_orphans([POD, *objects]).unjudged}


GATEWAY = {"apiVersion": "networking.istio.io/v1", "spec": {"servers": [{"tls": {"credentialName": "wild"}}]}}


def test_a_certificate_may_be_read_where_the_pods_of_a_gateway_run() -> None:
    """Istio reads the Secret in the namespace of the gateway's pods, which is mostly another one than the Gateway's."""
    gateway = item("Gateway", "echo", "gw", **GATEWAY)
    assert left_out(gateway, item("Secret", "istio-system", "wild")) == {"wild": "orphan-named-in-another-namespace"}


def test_a_field_for_secrets_counts_also_if_several_namespaces_have_the_name() -> None:
    secrets = [item("Secret", namespace, "wild") for namespace in ("istio-system", "echo")]
    assert names(item("Gateway", "echo", "gw", **GATEWAY), *secrets) == set()


@pytest.mark.parametrize(
    ("spec", "is_judged"),
    [
        ({"note": "uses wild here"}, False),
        ({"secretRef": {"name": "wild"}}, False),
        ({"wild": "x"}, True),
        ({"note": "wilder"}, True),
    ],
)
def test_a_word_of_a_custom_resource_may_name_a_secret_whose_name_is_unique(
    spec: dict[str, object], is_judged: bool
) -> None:
    custom = item("Thing", "echo", "t", apiVersion="acme.example/v1", spec=spec)
    assert bool(names(custom, item("Secret", "istio-system", "wild"))) is is_judged


def test_a_word_that_many_secrets_have_as_their_name_names_none_elsewhere() -> None:
    custom = item("Thing", "echo", "t", apiVersion="acme.example/v1", spec={"mode": "web"})
    assert len(names(custom, item("Secret", "a", "web"), item("Secret", "b", "web"))) == 2


POLICY_GROUP = "admissionregistration.k8s.io/v1"


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"])
@pytest.mark.parametrize(
    ("param", "used"),
    [
        ({"name": "params", "namespace": "shop"}, True),
        ({"name": "params"}, True),
        ({"selector": {"matchLabels": {"use": "yes"}}}, True),
        ({"selector": {"matchLabels": {"use": "no"}}}, False),
        ({"name": "params", "namespace": "other"}, False),
        ({"name": "other", "namespace": "shop"}, False),
    ],
)
def test_the_parameters_of_an_admission_policy_are_in_use(kind: str, param: dict[str, object], used: bool) -> None:
    policy = item(kind, "", "p", apiVersion=POLICY_GROUP, spec={"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}})
    binding = item(f"{kind}Binding", "", "b", apiVersion=POLICY_GROUP, spec={"policyName": "p", "paramRef": param})
    params = item("ConfigMap", "shop", "params", metadata={"labels": {"use": "yes"}})
    assert bool(names(policy, binding, params)) is not used


def test_parameters_of_an_unknown_kind_may_be_a_config_map() -> None:
    spec = {"policyName": "p", "paramRef": {"name": "params", "namespace": "shop"}}
    binding = item("ValidatingAdmissionPolicyBinding", "", "b", apiVersion=POLICY_GROUP, spec=spec)
    assert names(binding, item("ConfigMap", "shop", "params")) == set()


def test_parameters_of_another_kind_are_no_config_map() -> None:
    policy = item(
        "ValidatingAdmissionPolicy",
        "",
        "p",
        apiVersion=POLICY_GROUP,
        spec={"paramKind": {"apiVersion": "acme.example/v1", "kind": "Limit"}},
    )
    spec = {"policyName": "p", "paramRef": {"name": "params", "namespace": "shop"}}
    binding = item("ValidatingAdmissionPolicyBinding", "", "b", apiVersion=POLICY_GROUP, spec=spec)
    assert names(policy, binding, item("ConfigMap", "shop", "params")) == {("ConfigMap", "shop", "params")}


def test_the_parameters_of_an_ingress_class_are_in_use() -> None:
    parameters = {"kind": "ConfigMap", "name": "params", "namespace": "shop", "scope": "Namespace"}
    ingress_class = item("IngressClass", "", "c", apiVersion="networking.k8s.io/v1", spec={"parameters": parameters})
    used, other = item("ConfigMap", "shop", "params"), item("ConfigMap", "other", "params")
    assert names(ingress_class, used, other) == {("ConfigMap", "other", "params")}


def test_what_programs_read_by_a_fixed_name_or_label_is_left_out() -> None:
    part_of = {"labels": {"app.kubernetes.io/part-of": "argocd"}}
    assert left_out(
        item("ConfigMap", "argocd", "argocd-cm"),
        item("ConfigMap", "argocd", "extra", metadata=part_of),
        item("Secret", "argocd", "argocd-initial-admin-secret"),
        item("ConfigMap", "ingress-nginx", "ingress-controller-leader"),
        item("ConfigMap", "ingress-nginx", "ingress-controller-leader-nginx"),
    ) == {
        "argocd-cm": "orphan-read-by-name",
        "extra": "orphan-operator-label",
        "argocd-initial-admin-secret": "orphan-read-by-name",
        "ingress-controller-leader": "orphan-leader-lock",
        "ingress-controller-leader-nginx": "orphan-leader-lock",
    }


def test_a_leader_in_another_sense_is_no_lock() -> None:
    assert names(item("ConfigMap", "shop", "leaderboard")) == {("ConfigMap", "shop", "leaderboard")}


def test_young_objects_are_left_out() -> None:
    new = item("ConfigMap", "shop", "new", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    assert names(new, now=1767225600 + 60, min_age_seconds=3600) == set()
    assert names(new, now=1767225600 + 7200, min_age_seconds=3600) == {("ConfigMap", "shop", "new")}


@pytest.mark.parametrize(
    "behind",
    [
        item(
            "EndpointSlice",
            "shop",
            "edge-1",
            metadata={"labels": {"kubernetes.io/service-name": "edge"}},
            endpoints=[{"addresses": ["10.0.0.1"]}],
        ),
        item("Endpoints", "shop", "edge", subsets=[{"notReadyAddresses": [{"ip": "10.0.0.1"}]}]),
        item("Pod", "shop", "e", metadata={"labels": {"app": "edge", "more": "x"}}, spec={}),
        workload("Deployment", "shop", "edge", {}, replicas=2),
    ],
)
def test_a_load_balancer_with_something_behind_it_is_none(behind: dict[str, object]) -> None:
    edge = item("Service", "shop", "edge", spec={"type": "LoadBalancer", "selector": {"app": "edge"}})
    assert names(edge, behind) == set()


def test_a_load_balancer_of_a_workload_at_zero_names_the_workload() -> None:
    edge = item("Service", "shop", "edge", spec={"type": "LoadBalancer", "selector": {"app": "edge"}})
    (orphan,) = find_orphans([POD, edge, workload("Deployment", "shop", "edge", {}, replicas=0)]).orphans
    assert orphan.reason.code is LOAD_BALANCER_WITHOUT_ENDPOINTS
    assert_reason(orphan.reason, "load-balancer-without-endpoints", workload="Deployment edge", replicas="0 replicas")


def test_without_pods_nothing_is_said_of_what_pods_name() -> None:
    report = find_orphans([item("ConfigMap", "shop", "old"), item("PersistentVolumeClaim", "shop", "old")])
    assert report.orphans == ()
    assert [missing.reason.code.name for missing in report.unknown] == ["orphans-need-pods"]


def test_pods_of_a_capture_do_not_tell_what_they_name() -> None:
    bare = [item("Pod", "shop", f"p{n}", spec={"containers": [{"name": "c"}]}) for n in range(20)]
    assert find_orphans([*bare, item("ConfigMap", "shop", "old")]).orphans == ()


def test_nodes_without_any_group_do_not_stand_out() -> None:
    report = find_orphans([item("Node", "", "a"), item("Node", "", "b")])
    assert report.orphans == ()
    assert [missing.reason.code.name for missing in report.unknown] == ["orphans-need-node-groups"]


def test_the_data_of_a_secret_is_never_read() -> None:
    class Unreadable(dict[str, object]):
        def items(self):  # type: ignore[no-untyped-def, override]
            raise AssertionError("the data of a Secret was read")

        values = __iter__ = items  # type: ignore[assignment]

    secret = item("Secret", "shop", "s", data=Unreadable())
    assert names(secret) == {("Secret", "shop", "s")}
