"""Label selectors as `kubectl -l` reads them."""

import pytest

from trimtab.cluster.selectors import parse, requirement_matches

LABELS = {"team": "shop", "tier": "web", "app.kubernetes.io/name": "cart", "empty": ""}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("team=shop", True),
        ("team==shop", True),
        ("team=ops", False),
        ("team!=ops", True),
        ("team!=shop", False),
        ("other!=shop", True),
        ("team in (ops, shop)", True),
        ("team notin (ops,shop)", False),
        ("other notin (ops)", True),
        ("team", True),
        ("other", False),
        ("!other", True),
        ("! team", False),
        ("team=shop,tier=web", True),
        ("team=shop, tier!=web", False),
        ("app.kubernetes.io/name=cart", True),
        ("empty=", True),
        ("team=", False),
        (" team = shop ", True),
        ("team in (shop),!other,tier", True),
    ],
)
def test_all_requirements_must_hold(text: str, holds: bool) -> None:
    assert all(requirement_matches(one, LABELS) for one in parse(text)) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "=shop",
        "team=shop,",
        ",team",
        "team shop",
        "team in shop",
        "team in (a",
        "te am=1",
        "team=>1",
        "team=a b",
        "team in (a b)",
        "!",
        "team=shop;tier=web",
        "/x=1",
        "a/b/c=1",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a label selector such as"):
        parse(text)
