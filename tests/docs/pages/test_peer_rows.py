"""The rows of the peers that a bench measured are made from its record alone."""

from collections.abc import Mapping

from docs.pages.peer_rows import fill, list_rows, write_tables

Figures = Mapping[str, Mapping[str, str]]
ORIGIN = {"date": "2026-11-29", "commit": "abc1234", "machine": "2 cores"}
EMPTYING = {
    "settings": "consolidateAfter:20s,budget:10%",
    "nodes_first": "40",
    "dollars_first": "20.00",
    "nodes": "25",
    "dollars": "12.50",
    "seconds": "300",
    "rests": "1",
    "evictions": "180",
    "bought": "2",
    "not_ready_s": "1900",
    "pending_s": "90",
    "wait_s": "40.5",
    "broken": "0",
    "nodes_load": "33",
    "dollars_load": "16.00",
    "bought_load": "8",
    "pending_s_load": "700",
    "wait_s_load": "45.0",
}
FIGURES = {
    "nodes": {"value": "40", **ORIGIN},
    **{f"karpenter-1.13.0/{name}": {"value": value, **ORIGIN} for name, value in EMPTYING.items()},
    **{f"karpenter-1.12.0/{name}": {"value": value, **ORIGIN} for name, value in EMPTYING.items()},
    "vpa-1.8.1/cpu_waste": {"value": "0.500", **ORIGIN},
    "vpa-1.8.1/cpu_short": {"value": "0.0100", **ORIGIN},
    "vpa-1.8.1/memory_waste": {"value": "0.800", **ORIGIN},
    "vpa-1.8.1/memory_episodes": {"value": "12", **ORIGIN},
}


def cells_of(figures: Figures, peer: str) -> list[list[str]]:
    """The cells of each row of a peer, without its name."""
    lines = "\n".join(write_tables(list_rows(figures))).splitlines()
    return [line.strip("| ").split(" | ")[1:] for line in lines if line.startswith(f"| {peer} |")]


def test_each_peer_and_version_has_a_row() -> None:
    assert [row["peer"] for row in list_rows(FIGURES)] == ["Karpenter 1.12.0", "Karpenter 1.13.0", "VPA 1.8.1"]
    rest, load, origin = cells_of(FIGURES, "Karpenter 1.13.0")
    assert rest == ["40 → 25", "20.00 → 12.50", "180", "2", "1900", "40.5", "300"]
    assert load == ["33", "16.00", "8", "700", "45.0"]
    assert origin[1:] == ["2026-11-29", "abc1234"]
    assert cells_of(FIGURES, "VPA 1.8.1")[0] == ["0.500", "0.0100", "0.800", "12"]


def test_a_peer_that_did_not_rest_or_broke_budgets_says_so() -> None:
    changes = {"karpenter-1.13.0/rests": {"value": "0", **ORIGIN}, "karpenter-1.13.0/broken": {"value": "3", **ORIGIN}}
    rest, *_ = cells_of({**FIGURES, **changes}, "Karpenter 1.13.0")
    assert (rest[2], rest[-1]) == ("180, 3 broken", "> 300")


def test_the_rest_of_the_page_stays() -> None:
    changed = fill("before\n<!-- peer rows -->old<!-- /peer rows -->\nafter\n", FIGURES)
    head, _, tail = changed.partition("<!-- peer rows -->")
    assert (head, tail.partition("<!-- /peer rows -->")[2]) == ("before\n", "\nafter\n")
    assert "old" not in changed
