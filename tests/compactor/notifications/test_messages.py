"""Which decisions are notified, and as which bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compactor.notifications.messages import MAX_LINES, NotificationFormat, is_notified, render_messages


def decision(what: str = "removed", why: str = "the node is gone", **more: Any) -> HistoryEntry:
    return HistoryEntry(at=1_700_000_000, pool="web", what=what, code="removed", why=why, **{"node": "n1", **more})


def bodies(form: NotificationFormat, *decisions: HistoryEntry, left_out: int = 0) -> list[dict[str, Any]]:
    return [json.loads(message.body) for message in render_messages(decisions, form, "east", left_out)]


@pytest.mark.parametrize(
    ("what", "is_rehearsed", "expected"),
    [
        ("removed", False, True),
        ("released", False, True),
        ("planned", False, True),
        ("planned", True, True),
        ("removed", True, False),
        ("evicted", False, False),
    ],
)
def test_results_and_plans_are_notified(what: str, is_rehearsed: bool, expected: bool) -> None:
    assert is_notified(decision(what, rehearsed=is_rehearsed)) is expected


def test_slack_gets_one_text_of_all() -> None:
    [body] = bodies("slack", decision(), decision("planned", "3 nodes can be drained", node="", rehearsed=True))
    assert list(body) == ["text"]
    head, *lines = body["text"].splitlines()
    assert "east" in head
    assert [line.partition(":")[0] for line in lines] == ["• node removed", "• would drain"]
    assert "n1, pool web" in lines[0]


def test_texts_of_a_cluster_cannot_mention_a_channel() -> None:
    [body] = bodies("slack", decision(why="<!channel> & <https://example.com|log in>\nsecond"))
    assert "&lt;!channel&gt; &amp; &lt;https" in body["text"]
    assert len(body["text"].splitlines()) == 2


def test_many_decisions_are_a_number() -> None:
    [slack] = bodies("slack", *[decision()] * (MAX_LINES + 5), left_out=2)
    [plain] = bodies("json", *[decision()] * (MAX_LINES + 5), left_out=2)
    assert "7 more" in slack["text"]
    assert (len(plain["decisions"]), plain["leftOut"]) == (MAX_LINES, 7)


def test_a_decision_as_data_has_what_is_known() -> None:
    [body] = bodies("json", decision("closed", "two drains failed", node=""))
    assert body["decisions"] == [
        {
            "time": "2023-11-14T22:13:20Z",
            "decision": "closed",
            "pool": "web",
            "code": "removed",
            "reason": "two drains failed",
        }
    ]


def test_a_cloud_event_has_the_required_attributes() -> None:
    first, second = bodies("cloudevents", decision(), decision(node="n2"))
    assert {"specversion", "id", "source", "type", "data"} <= first.keys()
    assert (first["specversion"], first["type"]) == ("1.0", "dev.trimtab.compactor.removed")
    assert (first["subject"], second["subject"]) == ("n1", "n2")
    assert first["id"] != second["id"]
    assert bodies("cloudevents", decision())[0]["id"] == first["id"]
