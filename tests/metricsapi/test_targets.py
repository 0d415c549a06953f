"""Which page of which pod is scraped, and with which token."""

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.api.pod import ScrapedPod, ScrapedPodStatus
from trimtab.metricsapi.pod_addresses import AddressRules
from trimtab.metricsapi.rules import BearerToken, MetricKind, MetricRule, SampleSource, ScrapeEndpoint
from trimtab.metricsapi.targets import RunningPod, filters_of_target, find_targets, retain_pod


def rule(name: str, *namespaces: str, token: BearerToken | None = None, port: int = 8080) -> MetricRule:
    return MetricRule(
        name=name,
        source=SampleSource.SCRAPE,
        kind=MetricKind.RATE,
        namespaces=namespaces or ("*",),
        series=name,
        pod_labels={"app": "web"},
        endpoint=ScrapeEndpoint(port=port),
        token=token,
    )


def pod(name: str, namespace: str = "shop", ip: str = "10.0.0.1", app: str = "web") -> RunningPod:
    return RunningPod(namespace, name, f"uid-{name}", ip, {"app": app})


def test_rules_with_one_endpoint_share_a_scrape_and_others_do_not() -> None:
    scrape_targets = find_targets([rule("a"), rule("b"), rule("c", port=9090)], [pod("web-0")])
    assert [(target.endpoint.port, target.metrics) for target in scrape_targets] == [(8080, ("a", "b")), (9090, ("c",))]


def test_only_pods_of_the_rule_with_an_address_are_scraped() -> None:
    pods = [pod("web-0"), pod("db-0", app="db"), pod("web-1", namespace="other"), pod("web-2", ip="")]
    assert [target.uid for target in find_targets([rule("a", "shop")], pods)] == ["uid-web-0"]


def test_a_token_goes_only_to_the_namespaces_that_it_names_whatever_a_pod_is_labelled() -> None:
    secret = BearerToken(file="token", namespaces=frozenset({"shop"}))
    pods = [pod("web-0"), pod("thief", namespace="elsewhere", ip="10.0.0.2")]
    scrape_targets = find_targets([rule("a", token=secret)], pods)
    assert {target.uid: target.token_file for target in scrape_targets} == {"uid-web-0": "token", "uid-thief": ""}


def test_rules_with_and_without_a_token_do_not_share_a_scrape() -> None:
    secret = BearerToken(file="token", namespaces=frozenset({"shop"}))
    scrape_targets = find_targets([rule("a", token=secret), rule("b")], [pod("web-0")])
    assert [(target.token_file, target.metrics) for target in scrape_targets] == [("token", ("a",)), ("", ("b",))]


def test_filters_are_in_the_order_of_the_targets_metrics() -> None:
    rules = {"b": rule("b"), "a": rule("a")}
    [target] = find_targets(rules.values(), [pod("web-0")])
    assert tuple(one.name for one in filters_of_target(target, rules)) == target.metrics == ("b", "a")


def test_a_pod_with_such_an_address_is_kept_for_queries_and_never_scraped() -> None:
    shape = ScrapedPod(
        metadata=Metadata(name="web-0", namespace="shop", uid="u", labels={"app": "web"}),
        status=ScrapedPodStatus(phase="Running", pod_ip="169.254.169.254"),
    )
    retained = retain_pod(shape, AddressRules())
    assert retained == RunningPod("shop", "web-0", "u", "", {"app": "web"})
    assert find_targets([rule("a")], [retained]) == ()
