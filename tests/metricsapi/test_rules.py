"""Rules are validated whole: every mistake with its field, and no token that could travel to somebody else."""

import pytest

from trimtab.metricsapi.rules import MetricKind, MetricRule, SampleSource, ScrapeEndpoint, read_rules

SCRAPE = """
rules:
- name: http_requests
  from: scrape
  kind: rate
  namespaces: [shop, "team-*"]
  pods: {app: web}
  series: http_requests_total
"""
QUERY = """
rules:
- {name: depth, from: query, kind: gauge, maxAge: 2m, query: "sum by (namespace, pod) (depth)"}
"""
TLS = "  endpoint: {port: 8443, scheme: https, ca: shop.crt, serverName: web.shop.svc}\n"
TOKEN = "  token: {file: shop-token, namespaces: [shop]}\n"


def only(text: str) -> MetricRule:
    reading = read_rules("rules.yaml", text)
    assert reading.mistakes == ()
    [rule] = reading.rules
    return rule


def mistakes(text: str) -> list[str]:
    return [mistake.sentence for mistake in read_rules("rules.yaml", text).mistakes]


def test_a_scrape_has_defaults() -> None:
    rule = only(SCRAPE)
    assert (rule.source, rule.kind, rule.max_age_seconds) == (SampleSource.SCRAPE, MetricKind.RATE, 90)
    assert rule.endpoint == ScrapeEndpoint(port=8080, path="/metrics")


def test_a_query_has_its_own_age() -> None:
    assert only(QUERY).max_age_seconds == 120


def test_namespaces_are_patterns_and_labels_must_all_be_there() -> None:
    rule = only(SCRAPE)
    assert rule.selects_pod("team-a", {"app": "web", "x": "y"})
    assert not rule.selects_pod("kube-system", {"app": "web"})
    assert not rule.selects_pod("shop", {"app": "db"})


def test_a_token_is_for_the_namespaces_that_the_rule_names() -> None:
    rule = only(SCRAPE + TLS + TOKEN)
    assert (rule.token_for("shop"), rule.token_for("team-a")) == ("shop-token", "")


def test_no_rules_are_no_mistake() -> None:
    assert read_rules("rules.yaml", "").rules == ()
    assert read_rules("rules.yaml", "rules: []").rules == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SCRAPE + TOKEN, "endpoint.scheme: expected https, because `token` is set"),
        (
            SCRAPE + TLS + "  token: {file: shop-token, namespaces: ['*']}",
            "token.namespaces[0]: expected a list of names",
        ),
        (
            SCRAPE + TLS + "  token: {file: ../../serviceaccount/token, namespaces: [shop]}",
            "token.file: expected the name",
        ),
        (SCRAPE + TLS + "  token: {file: /etc/passwd, namespaces: [shop]}", "token.file: expected the name of a file"),
        (SCRAPE + TLS + "  token: {namespaces: [shop]}", "token.file: expected the name of a file"),
        (SCRAPE + "  endpoint: {ca: x.crt}", "endpoint.scheme: expected https, because `ca`"),
        (SCRAPE + "  endpoint: {port: 0}", "endpoint.port: expected a whole number from 1 to 65535"),
        (SCRAPE + '  endpoint: {path: "/a\\r\\nHost: x"}', "endpoint.path: expected a path"),
        (SCRAPE.replace("rate", "rates"), "kind: expected one of rate, gauge, got 'rates'; did you mean 'rate'?"),
        (SCRAPE.replace("series: http_requests_total", ""), "series: expected the name of a series"),
        (SCRAPE.replace("pods: {app: web}", ""), "pods: expected labels of the pods to scrape"),
        (SCRAPE + "  query: up", "query: expected only fields that belong to a rule with `from: scrape`"),
        (QUERY.replace("gauge", "rate"), "kind: expected gauge in a rule with `from: query`"),
        (QUERY.replace("depth, from", "a/b, from"), "name: expected a name of letters"),
        (QUERY.replace("2m", "2h"), "maxAge: expected a duration from 1s to 1h"),
        (SCRAPE + "  sereis: x", "did you mean 'series'?"),
        (
            SCRAPE + SCRAPE.replace("rules:\n", "").lstrip("\n"),
            "rules[1].name: expected a name that no earlier rule has",
        ),
        ("rules: {}", "rules: expected a list of rules"),
        ("rools: []", "did you mean 'rules'?"),
        (SCRAPE + "---" + QUERY, "expected one document"),
        ("rules: [", "expected"),
    ],
)
def test_a_mistake_is_named_with_its_field(text: str, expected: str) -> None:
    assert any(expected in mistake for mistake in mistakes(text)), mistakes(text)


def test_all_mistakes_are_reported_together() -> None:
    text = "rules:\n- {name: a/b, from: scrape, kind: x}\n- {from: query, kind: gauge, query: 5}\n"
    assert len(mistakes(text)) >= 5
    assert read_rules("rules.yaml", text).rules == ()


def test_an_endless_document_is_refused() -> None:
    assert "at most" in mistakes("#" * 300_000)[0]
