"""What a replay takes from kube-state-metrics: what is missing is refused or named, and nothing is made up for it."""

import re
from collections.abc import Callable

import pytest

from tests.autoscaling.replay.simulated_scrapes import Samples, record_scrapes
from tests.inputs.scraped_series import answer_from
from tests.usage.fake_prometheus import serving
from trimtab.autoscaling.churn.churn_cluster import EPOCH
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.autoscaling.replay.scraped_rounds import ScrapedCluster
from trimtab.cli.replay.missing_inputs import ABSENT_METRICS
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.scraped_cluster import WATCHED_METRICS, WITHOUT_UID, read_scraped_cluster
from trimtab.usage.http_client import HttpApi
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.state_history import StateHistory

CHURN = draw_churn(ChurnOptions(hours=1, cores=30, seed=2), generate_shapes())
BEGIN, EVERY = 300, 60
Points = list[tuple[int, float]]
Change = Callable[[str, str, Points], list[tuple[str, Points]]]


@pytest.fixture(scope="module")
def samples() -> Samples:
    return record_scrapes(CHURN, BEGIN, EVERY)


def read(samples: Samples) -> ScrapedCluster:
    with serving(answer_from(samples)) as server:
        begin, end = EPOCH + BEGIN, EPOCH + CHURN.seconds
        return read_scraped_cluster(StateHistory(Prometheus(HttpApi(server.url), QueryPlan()), begin, end, EVERY))


def changed(samples: Samples, change: Change) -> Samples:
    """Returns the samples of which this function makes others: (metric, labels, points) → (labels, points) of each."""
    return {
        metric: dict(row for labels, points in series.items() for row in change(metric, labels, points))
        for metric, series in samples.items()
    }


def test_what_was_scraped_is_read(samples: Samples) -> None:
    cluster = read(samples)
    assert (cluster.begin, cluster.end, cluster.gaps) == (EPOCH + BEGIN, EPOCH + CHURN.seconds, ())
    assert len({pod.uid for pod in cluster.pods}) == len(cluster.pods) == len(samples["kube_pod_created"])
    assert all(pod.requests for pod in cluster.pods)


@pytest.mark.parametrize(
    "metric",
    ["kube_node_info", "kube_pod_info", "kube_pod_container_resource_requests", "kube_node_status_allocatable"],
)
def test_without_what_pods_request_and_nodes_hold_nothing_is_answered(samples: Samples, metric: str) -> None:
    with pytest.raises(UsageError, match=metric):
        read({name: series for name, series in samples.items() if name != metric})


def test_other_series_that_are_missing_are_named(samples: Samples) -> None:
    without = ("kube_pod_status_phase", "kube_node_status_condition", "kube_replicaset_owner")
    cluster = read({name: series for name, series in samples.items() if name not in without})
    # The simulation has neither tolerations nor node selectors.
    assert set(cluster.absent_metrics) == {*without, "kube_pod_tolerations", "kube_pod_nodeselectors"}
    assert set(ABSENT_METRICS) == {*WATCHED_METRICS, "kube_replicaset_owner", WITHOUT_UID}


def test_pods_without_uid_that_had_the_same_name_are_one_from_the_first_on(samples: Samples) -> None:
    pod = read(samples).pods[0]
    began, again = EPOCH + BEGIN, EPOCH + CHURN.seconds - 600

    def recreate(metric: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        labels = re.sub(r'uid="[^"]*",', "", labels)
        if f'pod="{pod.name}"' in labels and metric in ("kube_pod_created", "kube_pod_status_scheduled_time"):
            points = [(at, again if at >= again else began) for at, _ in points]
        return [(labels, points)]

    cluster = read(changed(samples, recreate))
    assert WITHOUT_UID in cluster.absent_metrics
    (one,) = [other for other in cluster.pods if (other.namespace, other.name) == (pod.namespace, pod.name)]
    assert (one.created, one.last) == (min(one.created, began), pod.last)
    assert one.bound is not None
    assert one.bound <= began + EVERY


def test_a_pod_on_several_nodes_is_refused(samples: Samples) -> None:
    def place_by_scraper(metric: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        if metric != "kube_pod_info":
            return [(labels, points)]
        return [(re.sub(r'node="[^"]*"', f'node="{node}"', labels), points) for node in ("master-1", "master-2")]

    with pytest.raises(UsageError, match="honor_labels"):
        read(changed(samples, place_by_scraper))


def test_two_replicas_of_kube_state_metrics_count_once(samples: Samples) -> None:
    def double(_: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        return [(labels, points), (labels.replace("10.0.0.1", "10.0.0.2"), [(at + 7, value) for at, value in points])]

    once, twice = read(samples), read(changed(samples, double))
    assert {pod.uid: pod.requests for pod in twice.pods} == {pod.uid: pod.requests for pod in once.pods}
    assert len(twice.nodes) == len(once.nodes)


def test_a_second_kube_state_metrics_without_labels_hides_none(samples: Samples) -> None:
    def add_plain(metric: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        if metric != "kube_node_labels":
            return [(labels, points)]
        name = next(part for part in labels.split(",") if part.startswith("node="))
        return [(labels, points), (f'{name},job="another"', points)]

    states = [state for node in read(changed(samples, add_plain)).nodes for state in node.states]
    assert states == [state for node in read(samples).nodes for state in node.states]


def test_a_short_hole_is_no_gap_and_a_long_one_is(samples: Samples) -> None:
    def without(begin: int, end: int) -> ScrapedCluster:
        def cut(_: str, labels: str, points: Points) -> list[tuple[str, Points]]:
            return [(labels, [(at, value) for at, value in points if not begin < at - EPOCH < end])]

        return read(changed(samples, cut))

    assert without(1200, 1400).gaps == ()
    assert len(without(1200, 2000).gaps) == 1


def test_a_node_that_comes_back_under_its_name_is_two_nodes(samples: Samples) -> None:
    name = max(read(samples).nodes, key=lambda node: node.last).name
    back = EPOCH + 1800

    def replace_node(metric: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        if metric != "kube_node_created" or f'node="{name}"' not in labels:
            return [(labels, points)]
        return [(labels, [(at, value if at < back else back) for at, value in points])]

    lives = [(node.created, node.last) for node in read(changed(samples, replace_node)).nodes if node.name == name]
    assert len(lives) == 2
    assert lives[0][1] < lives[1][0] == back


@pytest.mark.parametrize(("shown", "is_refused"), [('label_kubernetes_io_os="linux",', False), ("", True)])
def test_a_node_without_a_pool_among_others_is_no_reason_to_refuse(
    samples: Samples, shown: str, *, is_refused: bool
) -> None:
    name = read(samples).nodes[0].name

    def strip(metric: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        is_it = metric == "kube_node_labels" and f'node="{name}"' in labels
        return [(f'{shown}node="{name}"' if is_it else labels, points)]

    if is_refused:
        with pytest.raises(UsageError, match="metric-labels-allowlist"):
            read(changed(samples, strip))
    else:
        assert len(read(changed(samples, strip)).nodes) == len(read(samples).nodes)


def test_what_a_new_node_has_from_its_first_scrape_on_is_read(samples: Samples) -> None:
    """Series are looked at once a step, and a node is scraped at any second between two steps."""

    def scrape_later(metric: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        if not metric.startswith("kube_node"):
            return [(labels, points)]
        return [(labels, [(at + 20, value) for at, value in points])]

    for node in read(changed(samples, scrape_later)).nodes:
        assert node.states[0].is_ready, node.name


def test_what_is_scraped_in_the_first_step_was_there_before_if_nothing_says_when_it_was_created(
    samples: Samples,
) -> None:
    def scrape_later(metric: str, labels: str, points: Points) -> list[tuple[str, Points]]:
        is_left_out = metric in ("kube_node_created", "kube_pod_created", "kube_pod_status_scheduled_time")
        return [] if is_left_out else [(labels, [(at + 20, value) for at, value in points])]

    cluster = read(changed(samples, scrape_later))
    assert any(node.created == EPOCH + BEGIN for node in cluster.nodes)
    assert any(pod.created == EPOCH + BEGIN for pod in cluster.pods)
    assert all(pod.bound == pod.created for pod in cluster.pods if pod.created == EPOCH + BEGIN)
