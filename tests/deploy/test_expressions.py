"""The metrics and labels of an expression are found."""

import pytest

from deploy.observe.expressions import series


@pytest.mark.parametrize(
    ("asks", "found"),
    [
        ("sum by (path, code) (rate(a_total[5m]))", {"a_total": set()}),
        ('a{x="b{c}", y=~"$pool"} / on (x) group_left (pool) max by (x) (b)', {"a": {"x", "y"}, "b": set()}),
        (
            '(a and on (instance) leading == 1) * 730 or c{z!~".*"} offset 15m',
            {"a": set(), "leading": set(), "c": {"z"}},
        ),
        ('histogram_quantile(0.5, sum by (le) (rate(a_bucket{path="/m"}[$__rate_interval])))', {"a_bucket": {"path"}}),
        ("time() - max(a) > 14 * 86400", {"a": set()}),
        (
            'pool:used:ratio{resource=~"cpu|memory"} - sum without (x) (b)',
            {"pool:used:ratio": {"resource"}, "b": set()},
        ),
    ],
)
def test_metrics_and_matched_labels_are_found(asks: str, found: dict[str, set[str]]) -> None:
    assert series(asks) == found
