"""What is counted and logged of a review."""

import io
import json

from prometheus_client import CollectorRegistry

from tests.build import admission_context, facts, policies, policy, review
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.runtime import log
from webhook.metrics import MAX_LOGGED_FIELDS, MAX_RECORDS, DecisionLogger, WebhookMetrics

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}}}]}}
NO_LIMITS = policies(policy("{limits: {cpu: remove}}", name="no-limits"))


def told(*bodies, by=NO_LIMITS, level="info"):
    """The scrape and the log lines after these reviews."""
    out, memory = io.StringIO(), ResponseCache()
    teller = DecisionLogger(WebhookMetrics(CollectorRegistry()), log.build_logger(level, "json", out), memory.lookups)
    for body in bodies:
        teller.log_review(answer_review(body, admission_context(by, facts(), memory=memory)))
    return teller.render_metrics().decode(), [json.loads(line) for line in out.getvalue().splitlines()]


def test_each_of_many_reviews_is_counted_and_has_its_own_line():
    scrape, lines = told(*(review(POD, uid=f"u-{n}", dryRun=n == 2) for n in range(3)))
    assert 'trimtab_decisions_total{action="limits.cpu",policy="no-limits",reason="limit-removed"} 3.0' in scrape
    assert 'trimtab_review_outcomes_total{dry_run="false",outcome="changed"} 2.0' in scrape
    assert 'trimtab_review_outcomes_total{dry_run="true",outcome="changed"} 1.0' in scrape
    assert "trimtab_patch_bytes_count 3.0" in scrape
    assert [line["uid"] for line in lines] == ["u-0", "u-1", "u-2"]
    assert {line["event"] for line in lines} == {"pod changed"}
    assert lines[0]["policies"] == ["no-limits"]


def test_how_decisions_were_found_is_counted_once():
    out, memory = io.StringIO(), ResponseCache()
    teller = DecisionLogger(WebhookMetrics(CollectorRegistry()), log.build_logger("info", "json", out), memory.lookups)
    context = admission_context(NO_LIMITS, facts(), memory=memory)
    for pod in (POD, POD, {**POD, "metadata": {"name": "shop"}}):
        teller.log_review(answer_review(review(pod), context))
    for _ in range(2):
        scrape = teller.render_metrics().decode()
        for result in ("first", "same-pod", "similar-pod"):
            assert f'trimtab_decision_lookups_total{{result="{result}"}} 1.0' in scrape


def test_the_line_of_a_controllers_pod_names_its_owner_and_the_changed_fields():
    """The API server generates the pod's name after admission."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop-5d4f", "uid": "u", "controller": True}
    metadata = {"generateName": "shop-5d4f-", "labels": {"pod-template-hash": "5d4f"}, "ownerReferences": [owner]}
    _, [line] = told(review({**POD, "metadata": metadata}))
    assert (line["owner"], line["pod"]) == ("Deployment/shop", "shop-5d4f-")
    assert line["fields"] == ["containers[app].requests.cpu", "containers[app].limits.cpu"]


def test_a_line_names_the_first_fields_of_very_many():
    containers = [{"name": f"c{n}", "resources": {"limits": {"cpu": "1"}}} for n in range(60)]
    _, [line] = told(review({"metadata": {"name": "web"}, "spec": {"containers": containers}}))
    assert len(line["fields"]) == MAX_LOGGED_FIELDS
    assert line["owner"] == ""


def test_a_line_per_pod_is_a_matter_of_volume():
    assert told(review(POD), level="warning")[1] == []


def test_more_records_than_are_held_back_are_all_counted():
    pods = ({**POD, "metadata": {"name": f"web-{n}"}} for n in range(MAX_RECORDS + 10))
    scrape, _ = told(*map(review, pods))
    assert f'outcome="changed"}} {MAX_RECORDS + 10}.0' in scrape


def test_an_amount_that_is_no_quantity_is_the_pods_mistake_not_ours():
    scrape, lines = told(review({"spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "x"}}}]}}))
    assert 'reason="not-a-quantity"} 1.0' in scrape
    assert 'outcome="failed"' not in scrape
    assert lines == []
