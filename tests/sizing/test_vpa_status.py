"""What a VPA's status says as history grows, as its recommender changes, and when it is written again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import owner_key
from tests.reasons import assert_reason, has_facts
from tests.sizing.vpa_worlds import (
    MI,
    NOW,
    WEB,
    add_use,
    after,
    conditions,
    entry,
    kill,
    present,
    use,
    vpa,
    wanted,
    written,
)
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.sizing.vpa.status import (
    LOW_CONFIDENCE,
    LeftAlone,
    WantedStatus,
    needs_write,
    read_used_until,
)
from trimtab.sizing.vpa.target_usage import TargetPods, shorten_window

MANY = {"days": 14, "cpu": 0.4, "memory": 800}


def cpu(status: dict[str, Any], field: str = "target") -> int:
    return quantity.scheduler_value("cpu", entry(status)[field].get("cpu", 0))


def memory(status: dict[str, Any]) -> int:
    return quantity.scheduler_value("memory", entry(status)["target"].get("memory", 0)) // MI


def sure(autoscaler: Any, history: LiveHistory | None = None, **more: Any) -> WantedStatus:
    result = wanted(autoscaler, history, **more)
    assert isinstance(result, WantedStatus)
    return result


# ── who recommends ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ([], "vpa-another-recommender"),
        (["default"], "vpa-another-recommender"),
        (["trimtab", "default"], "vpa-several-recommenders"),
        (["trimtab", "trimtab"], "vpa-several-recommenders"),
    ],
)
def test_a_vpa_that_does_not_name_us_alone_is_left_alone(names: list[str], code: str) -> None:
    result = wanted(vpa(recommenders=[{"name": name} for name in names]))
    assert isinstance(result, LeftAlone)
    assert_reason(result, code)


def test_a_target_that_another_controller_owns_is_not_supported() -> None:
    app = TargetPods(topmost=owner_key("App.example.com/front", "shop"), count=1, containers=frozenset({"app"}))
    result = sure(vpa(status=present("900m")), pods=app)
    assert_reason(result.conditions["ConfigUnsupported"], "vpa-target-has-owner")
    assert result.amounts is None, "what the VPA has stays"


@pytest.mark.parametrize(
    "annotations",
    [
        {"trimtab.dev/vpa-cpu": "p101"},
        {"trimtab.dev/vpa-memory": "enough"},
        {"trimtab.dev/vpa-window-days": "0"},
        {"trimtab.dev/vpa-window-days": "1"},
        {"trimtab.dev/vpa-window-days": "15"},
        {"trimtab.dev/vpa-window-days": "9" * 5000},
        {"trimtab.dev/vpa-window-days": "0001" + "0" * 5000},
        {"trimtab.dev/vpa-window-days": "00140"},
        {"trimtab.dev/vpa-window-days": "٣"},
    ],
)
def test_an_annotation_that_is_not_valid_changes_nothing_and_is_named(annotations: dict[str, str]) -> None:
    result = sure(vpa(status=present("900m"), annotations=annotations))
    assert result.amounts is None
    assert result.provided
    [name] = annotations
    assert has_facts(result.conditions["ConfigUnsupported"].sentence, name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("minAllowed", {"cpu": "-1"}),
        ("maxAllowed", {"memory": "-5"}),
        ("maxAllowed", {"cpu": "1e99999999"}),
        ("oomBumpUpRatio", "much"),
        ("oomMinBumpUp", "-1"),
    ],
)
def test_an_amount_that_is_no_amount_changes_nothing_and_is_named(field: str, value: Any) -> None:
    result = sure(vpa({"containerName": "app", field: value}, status=present("900m")))
    assert result.amounts is None
    assert has_facts(result.conditions["ConfigUnsupported"].sentence, field)


def test_of_thousands_of_invalid_fields_a_status_names_a_few() -> None:
    names = ("a" * 5000, *(f"app-{number}" for number in range(3000)))
    result = sure(vpa(*({"containerName": name, "minAllowed": {"cpu": "-1"}} for name in names)))
    sentence = result.conditions["ConfigUnsupported"].sentence
    assert len(sentence) < 1000
    assert has_facts(sentence, "app-3")
    assert not has_facts(sentence, "app-4")


@pytest.mark.parametrize(("names", "maximum"), [(("app", "app"), "1"), (("*", "*"), "2"), (("app", "*"), "1")])
def test_of_several_policies_the_one_that_the_vpas_processes_obey_counts(names: tuple[str, str], maximum: str) -> None:
    first, second = names
    policies = (
        {"containerName": first, "minAllowed": {"cpu": "1"}},
        {"containerName": second, "minAllowed": {"cpu": "2"}},
    )
    assert entry(written(vpa(*policies)))["target"]["cpu"] == maximum


# ── how much ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rule_and_window_are_the_vpas_own() -> None:
    history = use(days=10, cpu=1.0, memory=2000)
    add_use(history, days=3, cpu=0.2, memory=500, end=NOW + 3 * DAY)
    by = {
        "all of it": {},
        "three days": {"trimtab.dev/vpa-window-days": "3"},
        "more": {"trimtab.dev/vpa-cpu": "max +50%", "trimtab.dev/vpa-memory": "max +50%"},
    }
    status = {name: sure(vpa(annotations=one), history, now=NOW + 3 * DAY) for name, one in by.items()}
    targets = {name: one.amounts["app"]["cpu"].target for name, one in status.items() if one.amounts}
    assert targets["three days"] < 250 < 1000 < targets["more"]
    assert targets["more"] == pytest.approx(1500, rel=0.05)
    peaks = {name: one.amounts["app"]["memory"].target // MI for name, one in status.items() if one.amounts}
    assert peaks["three days"] < 700 < 2900 < peaks["more"]


def test_the_shortest_window_has_a_day_of_usage_at_any_hour() -> None:
    for hour in range(24):
        now, history = NOW + hour * 3600, LiveHistory()
        add_use(history, days=3, cpu=0.4, memory=800, end=now)
        result = sure(vpa(annotations={"trimtab.dev/vpa-window-days": "2"}), history, now=now)
        assert result.used_until is not None, hour


def test_a_shorter_window_is_a_copy_and_a_longer_one_is_the_window() -> None:
    history = use(days=10)
    [key] = {key for key, resource in history.windows if resource == "cpu"}
    window = history.get_window(key, "cpu")
    assert shorten_window(window, 14) is window
    assert shorten_window(window, 2).observed_days == 2
    assert window.observed_days == 11, "it begins and ends at noon"


@settings(max_examples=60, deadline=None)
@given(
    cpus=st.lists(st.floats(0.001, 40), min_size=1, max_size=3),
    memory_mib=st.integers(1, 100_000),
    days=st.floats(1.1, 14),
    minimum=st.integers(0, 5000),
    maximum=st.integers(0, 5000),
    killed=st.booleans(),
)
def test_the_target_is_between_its_bounds_and_all_are_within_the_policy(
    cpus: list[float], memory_mib: int, days: float, minimum: int, maximum: int, killed: bool
) -> None:
    history = LiveHistory()
    for number, cores in enumerate(cpus):
        add_use(history, days, cores, memory_mib, step=7200, name="app" if not number else f"side-{number}")
    if killed:
        kill(history, used=memory_mib)
    policy = {"containerName": "*", "minAllowed": {"cpu": f"{minimum}m"}, "maxAllowed": {"cpu": f"{maximum}m"}}
    pods = TargetPods(topmost=WEB, count=1)
    for amounts in (sure(vpa(policy), history, pods=pods).amounts or {}).values():
        for resource, amount in amounts.items():
            assert 0 <= amount.lower <= amount.target <= amount.upper
            if resource == "cpu":
                assert amount.target >= min(minimum, maximum or minimum)
                assert not maximum or amount.upper <= maximum


# ── too little history, and another recommender before ───────────────────────────────────────────────────────────


def test_without_a_day_of_usage_nothing_is_recommended() -> None:
    for history in (LiveHistory(), use(days=0.01), use(days=0.5)):
        result = sure(vpa(), history)
        assert result.amounts == {}
        assert not result.provided
        assert_reason(result.conditions[LOW_CONFIDENCE], "vpa-too-little-history")
        assert result.used_until is None


def test_what_another_recommender_said_stays_until_there_is_a_day_of_usage() -> None:
    for history in (LiveHistory(), use(days=0.5)):
        status = written(vpa(status=present("900m", "3Gi")), history)
        assert entry(status)["target"] == {"cpu": "900m", "memory": "3Gi"}
        assert conditions(status) == {"LowConfidence": "True", "RecommendationProvided": "True"}


def test_nothing_is_lowered_before_there_are_eight_days() -> None:
    before = vpa(status=present("900m", "3Gi"))
    young, old = written(before, use(days=5)), written(before, use(days=10))
    assert (cpu(young), memory(young)) == (900, 3072)
    assert conditions(young)["LowConfidence"] == "True"
    assert cpu(old) < 500 > 0
    assert memory(old) < 1000
    assert "LowConfidence" not in conditions(old)


def test_more_is_recommended_from_the_first_day_on() -> None:
    status = written(vpa(status=present("100m", "100Mi")), use(days=1.5))
    assert cpu(status) > 390
    assert memory(status) >= 800


def test_lost_history_lowers_nothing() -> None:
    before = after(vpa(), written(vpa(), use(**MANY)))
    for days in (0.01, 0.5, 2, 6):
        status = written(before, use(days=days, cpu=0.05, memory=50))
        assert (cpu(status), memory(status)) == (cpu(written(vpa())), memory(written(vpa()))), days


def test_a_policy_that_raised_what_the_other_said_is_not_part_of_what_is_not_lowered() -> None:
    texts = {"target": {"cpu": "2"}, "uncappedTarget": {"cpu": "500m"}, "lowerBound": {"cpu": "2"}}
    before = {"recommendation": {"containerRecommendations": [{"containerName": "app", **texts}]}}
    assert cpu(written(vpa(status=before), use(days=3))) == 500


@settings(max_examples=40, deadline=None)
@given(
    spans=st.lists(st.tuples(st.floats(0.01, 7.5), st.floats(0.01, 2), st.integers(20, 3000)), min_size=1, max_size=4),
    first=st.tuples(st.integers(10, 3000), st.integers(16, 5000)),
)
def test_a_switch_there_and_back_never_lowers_a_request_for_lack_of_history(
    spans: list[tuple[float, float, int]], first: tuple[int, int]
) -> None:
    """Whatever short histories follow each other, each with its own usage: no amount is ever below the one before."""
    autoscaler = vpa(status=present(f"{first[0]}m", f"{first[1]}Mi"))
    for days, cores, mib in spans:
        status = written(autoscaler, use(days=days, cpu=cores, memory=mib, step=7200))
        amounts = entry(status)["target"]
        old = autoscaler.status.recommendation.container_recommendations[0].target
        for resource in ("cpu", "memory"):
            new_amount, old_amount = (quantity.scheduler_value(resource, one[resource]) for one in (amounts, old))
            assert new_amount >= old_amount
        autoscaler = after(autoscaler, status)


def test_a_nightly_job_is_lowered_when_it_ran_on_nine_days() -> None:
    history = LiveHistory()
    for day in reversed(range(10)):
        add_use(history, days=0.01, cpu=0.3, memory=300, step=60, end=NOW - day * DAY)
    assert cpu(written(vpa(status=present("4")), history)) < 500


# ── when it is written ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_written_is_not_written_again() -> None:
    for history in (use(), use(days=0.5), use(days=3), LiveHistory()):
        for autoscaler in (vpa(), vpa(status=present("900m", "3Gi")), vpa({"containerName": "app", "mode": "Off"})):
            first = sure(autoscaler, history)
            assert needs_write(autoscaler, first, 0.05)
            stored = after(autoscaler, written(autoscaler, history))
            assert not needs_write(stored, sure(stored, history), 0.05)


def test_a_definition_without_observed_generation_causes_no_writes() -> None:
    status = written(vpa())
    pruned = {**status, "conditions": [{**c, "observedGeneration": None} for c in status["conditions"]]}
    del pruned["observedGeneration"]
    stored = after(vpa(), pruned)
    assert not needs_write(stored, sure(stored), 0.05)


def test_a_higher_target_is_written_however_small_the_difference_is() -> None:
    stored = after(vpa(), written(vpa()))
    history = use()
    history.windows.clear()
    history.open_peaks.clear()
    add_use(history, days=14, cpu=0.41, memory=810)
    more = sure(stored, history)
    assert needs_write(stored, more, 0.5)


def test_the_time_of_the_usage_is_written_once_an_hour() -> None:
    stored = after(vpa(), written(vpa()))
    assert read_used_until(stored) == NOW - 600
    history = use()
    add_use(history, days=0.03, cpu=0.4, memory=800, end=NOW + 1800)
    assert not needs_write(stored, sure(stored, history, now=NOW + 1800), 0.05)
    add_use(history, days=0.05, cpu=0.4, memory=800, end=NOW + 4800)
    assert needs_write(stored, sure(stored, history, now=NOW + 4800), 0.05)


def test_a_time_ahead_of_the_usage_is_written_again() -> None:
    """A clock that was two days ahead, or another writer: with such a time no status would ever count as old."""
    stored = after(vpa(), written(vpa()))
    ahead = [change(one, message=one.message.replace("2024-10-04", "2024-10-06")) for one in stored.status.conditions]
    skewed = change(stored, status=change(stored.status, conditions=tuple(ahead)))
    assert read_used_until(skewed) == NOW - 600 + 2 * DAY
    assert needs_write(skewed, sure(skewed), 0.05)


def test_what_is_not_supported_is_named_again_when_it_is_another_field() -> None:
    """The annotations of a VPA change without its generation."""
    both = {"trimtab.dev/vpa-cpu": "p101", "trimtab.dev/vpa-memory": "enough"}
    stored = after(vpa(annotations=both), written(vpa(annotations=both)))
    assert not needs_write(stored, sure(stored), 0.05)
    corrected = change(stored, metadata=vpa(annotations={"trimtab.dev/vpa-memory": "enough"}).metadata)
    assert needs_write(corrected, sure(corrected), 0.05)


def test_of_a_status_that_another_wrote_no_time_is_read() -> None:
    for message in ("", "Trimtab computed the recommendation from the usage until never", "x" * 100_000):
        condition = {"type": "RecommendationProvided", "status": "True", "message": message}
        assert read_used_until(vpa(status={"conditions": [condition]})) is None
