"""`trimtab machines profile` and `rank` as their users call them."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts

REGION = {"topology.kubernetes.io/region": "us-east-1"}


EQUAL = ("--performance", "off")
"""Every core counts as one, so that the order follows from prices and sizes alone."""


def fleet(*more: Item) -> tuple[Item, ...]:
    """Three nodes of two pools in one region; six pods at 2 cores to 3 GiB."""
    labels = {**REGION, "nodepool": "web", "node.kubernetes.io/instance-type": "m5.2xlarge"}
    nodes = [node(name, "8", "32Gi", labels=labels) for name in ("a", "b")]
    other = node("c", "8", "32Gi", labels={**labels, "nodepool": "batch"})
    pods = [pod(f"web-{number}", on="ab"[number % 2], cpu="2", memory="3Gi") for number in range(6)]
    return (*nodes, other, *pods, pod("batch-0", on="c", cpu="1", memory="8Gi"), *more)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return snapshot(tmp_path, *fleet())


def test_the_profile_of_a_pool(cluster: Path) -> None:
    report = told("machines", "profile", "--cluster", cluster, "--pool", "web")
    assert (report["workload"]["cores"], report["workload"]["gib"], report["workload"]["pods"]) == (12, 18, 6)
    assert report["workload"]["gibPerCore"] == 1.5
    assert report["fill"]["binding"] == "cpu"
    assert report["fill"]["instanceTypes"] == {"m5.2xlarge": 2}


def test_types_are_ranked_with_the_real_pods_packed(cluster: Path) -> None:
    report = told("machines", "rank", "--cluster", cluster, "--pool", "web", "--types", r"[cmr]7i\.2xlarge", *EQUAL)
    assert [row["name"] for row in report["types"]] == ["c7i.2xlarge", "m7i.2xlarge", "r7i.2xlarge"]
    assert report["winner"]["types"] == ["c7i.2xlarge"]
    assert report["winner"]["packedNodes"] == [2]
    assert {group["reason"]["code"] for group in report["leftOut"]} == {"machine-not-asked-for"}


def test_arm_types_are_left_out_unless_they_are_allowed(cluster: Path) -> None:
    arguments = ("machines", "rank", "--cluster", cluster, "--types", "[cm]7[gi].xlarge", "--no-pack")
    assert {row["architecture"] for row in told(*arguments)["types"]} == {"amd64"}
    both = told(*arguments, "--arch", "amd64", "--arch", "arm64")
    assert {row["architecture"] for row in both["types"]} == {"amd64", "arm64"}


def test_nodes_that_are_paid_for_are_filled_first(cluster: Path) -> None:
    arguments = ("machines", "rank", "--cluster", cluster, "--pool", "web", "--types", r"[cm]7i\.2xlarge")
    [half] = told(*arguments, "--commitment", "m5.2xlarge=1")["commitments"]
    assert (half["type"], half["nodes"], half["unused"]) == ("m5.2xlarge", 1, 0)
    report = told(*arguments, "--commitment", "m5.2xlarge=1")
    assert report["workload"]["gib"] == pytest.approx(18 * (1 - half["share"]), abs=0.01)
    # Three pods of two cores fit on the committed node, and three on the one that is bought.
    assert report["winner"]["packedNodes"] == [1]
    whole = told(*arguments, "--commitment", "m5.2xlarge=9")
    assert whole["winner"] is None
    assert whole["commitments"][0]["unused"] > 0


@pytest.mark.parametrize("text", ["m5.2xlarge", "=3", "m5.2xlarge=-1", "no-such-type=3"])
def test_a_commitment_that_cannot_be_counted_is_named(cluster: Path, text: str) -> None:
    answer = trimtab("machines", "rank", "--cluster", cluster, "--commitment", text)
    assert answer.exit_code == 2
    assert "--commitment" in answer.output


def test_a_price_file_precedes_list_prices(cluster: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly\n"
        ",us-east-1,node,,m7i.2xlarge,0.05\n"
    )
    report = told(
        "machines", "rank", "--cluster", cluster, "--prices", prices, "--types", "[cm]7i.2xlarge", "--no-pack"
    )
    assert report["types"][0]["name"] == "m7i.2xlarge"
    assert report["types"][0]["price"] == 0.05


def test_a_switch_is_told_only_when_it_pays(cluster: Path) -> None:
    of_pool = ("--cluster", cluster, "--pool", "web", "--types", "[cm]7i.2xlarge")
    arguments = ("machines", "rank", *of_pool, "--no-pack", *EQUAL)
    switch = told(*arguments, "--current", "c7i.2xlarge")["switch"]
    assert (switch["isSwitch"], switch["preferred"]) == (False, "c7i.2xlarge")
    switched = told(*arguments, "--current", "m7i.2xlarge", "--wins", "3")["switch"]
    assert (switched["isSwitch"], switched["preferred"]) == (True, "c7i.2xlarge")
    waits = told(*arguments, "--current", "m7i.2xlarge", "--wins", "2")["switch"]
    assert (waits["isSwitch"], waits["preferred"]) == (False, "m7i.2xlarge")


def test_the_present_type_is_shown_with_its_price_wherever_it_ranks(cluster: Path) -> None:
    arguments = ("machines", "rank", "--cluster", cluster, "--pool", "web", "--rows", "1", "--no-pack")
    [today] = told(*arguments)["today"]
    assert (today["type"], today["nodes"], today["price"]) == ("m5.2xlarge", 2, 0.384)
    output = trimtab(*arguments).output
    assert has_facts(output, 2, "m5.2xlarge", "$0.384", "$0.77")
    assert "m5.2xlarge (today)" in output


def test_one_run_says_what_a_switch_would_save_and_how_certain_that_is_but_not_to_switch(cluster: Path) -> None:
    arguments = ("machines", "rank", "--cluster", cluster, "--pool", "web", "--types", "(c7i|m5).2xlarge", "--no-pack")
    switch = told(*arguments)["switch"]
    assert (switch["current"], switch["best"], switch["isSwitch"]) == ("m5.2xlarge", "c7i.2xlarge", False)
    assert switch["saving"] > 0
    text = " ".join(trimtab(*arguments).output.split())
    saving = f"${switch['saving']:.2f}"
    assert has_facts(text, "c7i.2xlarge", "m5.2xlarge", saving, "sums of requests")
    assert has_facts(text, "Certainty", 1, "3 consecutive runs")
    assert "Switch to" not in text
    assert "Switch to c7i.2xlarge" in trimtab(*arguments, "--wins", "3").output


def test_the_share_that_one_node_may_hold_leaves_large_types_out(cluster: Path) -> None:
    report = told("machines", "rank", "--cluster", cluster, "--types", "c7i.*", "--max-node-share", "25", "--no-pack")
    assert all(row["nodeShare"] <= 0.25 for row in report["types"])
    assert "node-holds-too-much" in {group["reason"]["code"] for group in report["leftOut"]}


def test_the_table_names_the_best_type_and_what_was_left_out(cluster: Path) -> None:
    answer = trimtab("machines", "rank", "--cluster", cluster, "--types", "[cm]7i.2xlarge")
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("Cheapest: ")
    wide = trimtab("machines", "rank", "--cluster", cluster, "--types", "[cm]7i.2xlarge", "-o", "wide")
    assert "Best type:" in wide.output
    assert "types are left out" in wide.output


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("--reserved", "mine"), "--reserved"),
        (("--types", "["), "--types"),
        (("--pool", "nobody"), "a pool of"),
        (("--load-cap", "70"), "--load-cap together with --used-cores"),
    ],
)
def test_mistakes_are_named(cluster: Path, options: tuple[str, ...], mistake: str) -> None:
    answer = trimtab("machines", "rank", "--cluster", cluster, *options)
    assert answer.exit_code == 2
    assert mistake in answer.output


def test_a_workload_without_requests_has_no_ratio(tmp_path: Path) -> None:
    path = snapshot(tmp_path, node("a", labels=REGION), pod("web-0", on="a", cpu="", memory=""))
    answer = trimtab("machines", "profile", "--cluster", path)
    assert answer.exit_code == 2
    assert has_facts(answer.output, "requests for cpu, memory")


def test_of_two_regions_the_prices_are_those_of_most_nodes(tmp_path: Path) -> None:
    elsewhere = node("z", "8", "32Gi", labels={"topology.kubernetes.io/region": "westeurope"})
    answer = trimtab("machines", "rank", "--cluster", snapshot(tmp_path, *fleet(elsewhere)), "--rows", "1")
    assert answer.exit_code == 0, answer.output
    assert has_facts(answer.output, "us-east-1 and westeurope", "us-east-1")


@pytest.mark.parametrize("region", ["eu-central-1", "mars"])
def test_no_region_is_refused(cluster: Path, region: str) -> None:
    answer = trimtab("machines", "rank", "--cluster", cluster, "--region", region, "--rows", "1")
    assert answer.exit_code == 0, answer.output
    assert has_facts(answer.output, region, "us-east-1", "a guess")


def price_server(answers: dict[str, object]) -> ThreadingHTTPServer:
    """A server on loopback that answers a GET of these paths with JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            result = answers.get(self.path)
            self.send_response(404 if result is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(result or {"message": "no such page"}).encode())

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def test_prices_come_from_opencosts_api_or_from_prometheus(cluster: Path, tmp_path: Path) -> None:
    labels = {"node": "a", "instance_type": "m7i.2xlarge", "region": "us-east-1"}
    vector = {"data": {"resultType": "vector", "result": [{"metric": labels, "value": [1, "0.06"]}]}}
    asset = {
        "type": "Node",
        "properties": {"name": "a"},
        "nodeType": "m7i.2xlarge",
        "minutes": 60,
        "totalCost": 0.05,
        "labels": {"label_topology_kubernetes_io_region": "us-east-1"},
    }
    query = "/api/v1/query?query=node_total_hourly_cost"
    rank = ("machines", "rank", "--cluster", cluster, "--types", "[cm]7i.2xlarge", "--no-pack", "--prices")
    saved = tmp_path / "prometheus.json"
    saved.write_text(json.dumps(vector))
    with price_server({"/model/assets?window=1d": {"data": {"x": asset}}, query: vector}) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        for source, price in ((f"{address}/model/assets?window=1d", 0.05), (address + query, 0.06), (saved, 0.06)):
            best = told(*rank, source)["types"][0]
            assert (best["name"], best["price"]) == ("m7i.2xlarge", price)
        missing = trimtab(*rank, f"{address}/nothing")
        assert (missing.exit_code, "no such page" in missing.output) == (3, True)
        assert trimtab(*rank, address).exit_code == 2
        server.shutdown()


def test_the_speed_of_a_core_counts_unless_it_is_switched_off(cluster: Path) -> None:
    arguments = ("machines", "rank", "--cluster", cluster, "--pool", "web", "--types", "m7i.2xlarge", "--no-pack")
    fast, equal = (told(*arguments, *more)["types"][0] for more in ((), EQUAL))
    assert (round(fast["performance"], 2), equal["performance"]) == (1.44, 1.0)
    assert fast["gibPerDollar"] > equal["gibPerDollar"]
