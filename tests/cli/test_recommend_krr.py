"""`-o krr-csv`: KRR's columns, for what reads those."""

import csv
import io
from pathlib import Path

from tests.cli.recommending import usage, web
from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import Item

COLUMNS = [
    "Namespace",
    "Name",
    "Pods",
    "Old Pods",
    "Type",
    "Container",
    "Severity",
    "CPU Diff",
    "CPU Requests",
    "CPU Limits",
    "Memory Diff",
    "Memory Requests",
    "Memory Limits",
]


def rows(folder: Path, *items: Item, hours: int = 14 * 24, options: tuple[str, ...] = ()) -> list[dict[str, str]]:
    arguments = ("recommend", "--usage", usage(folder, hours=hours), *options, "-o", "krr-csv")
    cluster = ("--cluster", snapshot(folder, *items)) if items else ()
    return list(csv.DictReader(io.StringIO(trimtab(*arguments, *cluster).stdout)))


def test_the_columns_are_krrs_and_a_difference_is_signed_for_all_pods(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, web(), web("web-7d4b9c6f5d-aaaaa"))
    assert list(row) == COLUMNS
    assert (row["Namespace"], row["Name"], row["Pods"], row["Old Pods"], row["Type"], row["Container"]) == (
        "shop",
        "web",
        "2",
        "0",
        "Deployment",
        "app",
    )
    assert (row["CPU Requests"], row["CPU Diff"], row["CPU Limits"]) == ("(-792m) 1 -> 208m", "-1584m", "unset")
    assert row["Memory Requests"] == "(-678Mi) 1Gi -> 346Mi"
    assert row["Severity"] == "CRITICAL"


def test_pods_that_are_gone_are_old_pods(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, web("web-7d4b9c6f5d-aaaaa"))
    assert (row["Pods"], row["Old Pods"]) == ("1", "1")


def test_a_request_that_is_missing_is_unset_and_one_that_is_not_known_a_question(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, web(requests={}))
    assert (row["CPU Requests"], row["Severity"]) == ("(+208m) unset -> 208m", "WARNING")
    (row,) = rows(tmp_path)
    assert row["CPU Requests"] == "(+208m) ? -> 208m"


def test_too_little_history_is_a_question(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, web(), hours=1)
    assert (row["CPU Diff"], row["CPU Requests"]) == ("", "1 -> ?")


def test_what_stays_is_good(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, web(requests={"cpu": "208m", "memory": "346Mi"}))
    assert (row["CPU Requests"], row["CPU Diff"], row["Severity"]) == ("(+0) 208m -> 208m", "+0", "GOOD")
