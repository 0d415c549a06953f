"""What a scrape tells."""

from prometheus_client import CollectorRegistry

from tests.webhook.worlds import review, service
from trimtab.policy.recommendation_age import RecommendationAges
from webhook.handlers import answer_review
from webhook.metrics import WebhookMetrics


def test_reviews_are_counted_by_path_and_status() -> None:
    meters = WebhookMetrics(CollectorRegistry())
    watched = service(observe=meters.observe_review)
    answer_review(watched, "/mutate", "application/json", review())
    answer_review(watched, "/mutate", "text/plain", review())
    text = meters.render_text().decode()
    assert 'trimtab_reviews_total{code="200",path="/mutate"} 1.0' in text
    assert 'trimtab_reviews_total{code="415",path="/mutate"} 1.0' in text
    assert 'trimtab_review_duration_seconds_count{path="/mutate"} 2.0' in text


def test_a_thousand_policies_do_not_make_a_thousand_series() -> None:
    meters = WebhookMetrics(CollectorRegistry())
    for number in range(1000):
        meters.count_decision(f"policy-{number}", "limits", "removed")
    assert meters.render_text().decode().count("trimtab_decisions_total{") == 201


def test_decisions_failures_patches_and_ages_are_told() -> None:
    meters = WebhookMetrics(CollectorRegistry())
    meters.count_decision("burstable", "limits", "removed")
    meters.count_failure("self-check")
    meters.observe_patch(300)
    meters.add_certificate_expiry(lambda: 1.9e9)
    meters.add_facts_age(lambda: 3.0)
    meters.add_recommendations(lambda: RecommendationAges(fresh=3, aging=2))
    text = meters.render_text().decode()
    for expected in (
        'trimtab_decisions_total{action="limits",policy="burstable",reason="removed"} 1.0',
        'trimtab_errors_total{kind="self-check"} 1.0',
        "trimtab_patch_bytes_sum 300.0",
        "trimtab_certificate_expiry_timestamp_seconds 1.9e+09",
        "trimtab_facts_age_seconds 3.0",
        'trimtab_recommended_containers{age="aging"} 2.0',
        'trimtab_recommended_containers{age="ended"} 0.0',
    ):
        assert expected in text


def test_two_services_in_one_process_do_not_share_a_counter() -> None:
    one, two = WebhookMetrics(CollectorRegistry()), WebhookMetrics(CollectorRegistry())
    one.count_failure("edge")
    assert 'kind="edge"' not in two.render_text().decode()
