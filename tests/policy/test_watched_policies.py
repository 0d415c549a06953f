"""One state behind the webhook, the watchdog and the compactor: policies, facts and the VPA's webhook."""

from trimtab.cluster.config_error import ConfigError
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.vpa_webhook import EVERYWHERE, Endpoints, WebhookTarget
from trimtab.policy.watched_facts import CONFIGURATION, LEASE, POLICY, SLICE, WatchedPolicies

SERVICE = ("kube-system", "vpa-webhook")
TEXT = b"""
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: no-limits}
spec: {actions: {limits: {cpu: remove}}}
"""


def policy(actions: bytes = b"limits: {cpu: remove}") -> PodPolicy:
    return load_policies([("page", TEXT.replace(b"limits: {cpu: remove}", actions))]).policies.all[0]


def test_a_policy_of_the_cluster_is_in_effect_until_it_is_dropped() -> None:
    watched = WatchedPolicies("trimtab-system")
    watched.put(POLICY, ("", "no-limits"), policy())
    assert [one.name for one in watched.policies.all] == ["no-limits"]
    watched.drop(POLICY, ("", "no-limits"))
    assert watched.policies.all == ()


def test_an_invalid_document_is_reported_and_leaves_the_last_valid_version() -> None:
    watched = WatchedPolicies("trimtab-system")
    watched.put(POLICY, ("", "no-limits"), policy())
    mistakes: tuple[ConfigError, ...] = ()
    watched.put(POLICY, ("", "no-limits"), mistakes)
    assert len(watched.policies.all) == 1
    assert dict(watched.invalid_documents()) == {"no-limits": mistakes}


def test_policies_of_files_are_used_instead_of_the_clusters() -> None:
    fixed = Policies()
    watched = WatchedPolicies("trimtab-system", fixed)
    watched.put(POLICY, ("", "no-limits"), policy())
    assert watched.policies is fixed


def test_the_vpas_webhook_reaches_pods_while_an_endpoint_is_ready() -> None:
    watched = WatchedPolicies("trimtab-system")
    watched.put(CONFIGURATION, ("", "vpa"), (WebhookTarget(SERVICE, trusted=True),))
    assert watched.vpa_services == {SERVICE}
    assert watched.build_facts().vpa_reach == ()
    watched.put(SLICE, ("kube-system", "vpa-webhook-1"), Endpoints(SERVICE, ready=True))
    assert watched.build_facts().vpa_reach == EVERYWHERE
    assert watched.build_facts(vpa_reach=()).vpa_reach == ()
    watched.forget_added_lists()
    assert watched.build_facts().vpa_reach == ()


def test_the_lease_of_a_scheduler_is_watched_where_a_policy_names_the_scheduler() -> None:
    watched = WatchedPolicies("trimtab-system")
    assert watched.scheduler_leases == frozenset()
    watched.put(POLICY, ("", "no-limits"), policy(b"schedulerName: {name: packs}"))
    assert watched.scheduler_leases == {("kube-system", "packs")}
    watched.put(POLICY, ("", "no-limits"), policy(b"schedulerName: {name: packs, lease: batch/leader}"))
    assert watched.scheduler_leases == {("batch", "leader")}
    watched.put(POLICY, ("", "no-limits"), policy(b"schedulerName: {name: packs, lease: none}"))
    assert watched.scheduler_leases == frozenset()


def test_a_lease_is_fresh_until_its_duration_after_the_last_renewal() -> None:
    watched = WatchedPolicies("trimtab-system")
    watched.put(LEASE, ("kube-system", "packs"), 1015)
    assert watched.build_facts(now=1015).fresh_leases == {"kube-system/packs"}
    assert watched.build_facts(now=1016).fresh_leases == frozenset()
    watched.put(LEASE, ("kube-system", "packs"), None)
    assert watched.build_facts(now=1000).fresh_leases == frozenset()


def test_a_renewal_alone_changes_no_facts() -> None:
    watched = WatchedPolicies("trimtab-system")
    watched.put(LEASE, ("kube-system", "packs"), 1015)
    before = watched.build_facts(now=1000)
    watched.put(LEASE, ("kube-system", "packs"), 1017)
    assert watched.build_facts(now=1002) is before
    watched.forget_added_lists()
    assert watched.build_facts(now=1002).fresh_leases == frozenset()


def test_without_a_time_no_lease_is_judged() -> None:
    assert WatchedPolicies("trimtab-system").build_facts().fresh_leases is None
