"""Every queue, pool of threads, list of the first few and collection with a limit is in the list of what namespaces
share, with its test, or has a reason why nothing is shared there."""

import pytest

from tests.architecture.shared_places import places_in_source, places_of
from tests.docs.shared_queues import FOLDERS_OF_ONE_USER, NOT_SHARED, SHARED

LISTED = [place for law in SHARED.values() for place in law.places]


def places_of_several_users() -> set[str]:
    return {
        f"{file} {sign}"
        for file, signs in places_in_source().items()
        for sign in signs
        if not file.startswith(tuple(FOLDERS_OF_ONE_USER))
    }


def test_every_place_is_a_shared_thing_with_a_law_or_has_a_reason() -> None:
    assert sorted(places_of_several_users() - {*LISTED, *NOT_SHARED}) == []


def test_every_listed_place_is_in_the_source_and_listed_once() -> None:
    assert sorted({*LISTED, *NOT_SHARED} - places_of_several_users()) == []
    assert len([*LISTED, *NOT_SHARED]) == len({*LISTED, *NOT_SHARED})


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("import queue\nwork = queue.Queue()", "Queue"),
        ("class A:\n    def __init__(self): self.slots = threading.BoundedSemaphore(8)", "BoundedSemaphore"),
        ("pool = ThreadPoolExecutor(4)", "ThreadPoolExecutor"),
        ("@dataclass\nclass A:\n    waiting: deque[str] = field(default_factory=deque)", "deque"),
        ("for pod in pods[:MAX_PODS]: pass", "[:MAX_PODS]"),
        ("for pod in pods[: self.settings.max_pods]: pass", "[:max_pods]"),
        ("def f(self):\n    if len(self._entries) >= MAX_ENTRIES: self._entries.clear()", "_entries >= MAX_ENTRIES"),
        ("def f(self):\n    if self._waiting >= MAX_WAITING: raise TooMany", "_waiting >= MAX_WAITING"),
    ],
)
def test_a_new_place_is_noticed(text: str, sign: str) -> None:
    assert places_of(text) == {sign}
