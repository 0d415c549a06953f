"""Every metric is told of well enough to be understood on a bad night."""

import re
from collections import Counter

import pytest

from deploy.observe.exported import Metric, everything

FOUND = everything()


@pytest.mark.parametrize("metric", FOUND, ids=lambda metric: metric.name)
def test_a_metric_says_what_it_counts_and_in_which_unit(metric: Metric) -> None:
    assert re.fullmatch(r"[A-Z01].{15,}\.", metric.says), metric.says
    assert metric.unit, f"{metric.name}: add how its name ends to deploy/observe/exported.py"


def test_a_name_belongs_to_one_process_but_for_the_version_that_runs() -> None:
    times_by_name = Counter(metric.name for metric in FOUND)
    assert {name: times for name, times in times_by_name.items() if times > 1} == {"trimtab_build_info": 5}


def test_every_process_tells_something() -> None:
    assert {metric.process for metric in FOUND} == {"webhook", "compactor", "watchdog", "recommender", "metrics-api"}


def test_labels_are_those_that_are_scraped() -> None:
    labels = {metric.name: metric.labels for metric in FOUND}
    assert labels["trimtab_compactor_pool_full_nodes"] == ("pool", "resource")
    assert labels["trimtab_review_duration_seconds"] == ("path",)
    assert labels["trimtab_compactor_drains_total"] == ("pool", "how", "reason")
