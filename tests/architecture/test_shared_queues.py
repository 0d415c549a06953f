"""Every queue, pool of threads, list of the first few and collection with a limit is in the list of what namespaces
share, with its test, or has a reason why nothing is shared there."""

import pytest

from tests.architecture.shared_places import places_in_source, places_of
from tests.docs.shared_queues import CACHES_OF_FUNCTIONS, FOLDERS_OF_ONE_USER, NOT_SHARED, SHARED

LISTED = [place for law in SHARED.values() for place in law.places]


def places_of_several_users() -> set[str]:
    return {
        f"{file} {sign}"
        for file, signs in places_in_source().items()
        for sign in signs - CACHES_OF_FUNCTIONS
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
        ("def f(self):\n    if MAX_WAITING <= len(self._waiting): raise TooMany", "_waiting >= MAX_WAITING"),
        ("def f(self):\n    if 0 < len(self._waiting) < MAX_WAITING: pass", "_waiting >= MAX_WAITING"),
        ("pods = islice(every, MAX_PODS)", "islice(MAX_PODS)"),
        ("mistakes += islice(every, MAX_MISTAKES + 1)", "islice(MAX_MISTAKES)"),
        ("best = heapq.nsmallest(20, every)", "nsmallest(20)"),
        ("best = nlargest(count, every)", "nlargest(count)"),
        ("names = Counter(pods).most_common(MAX_NAMES)", "most_common(MAX_NAMES)"),
        ("@lru_cache(maxsize=64)\ndef f(text): pass", "lru_cache"),
        ("@functools.cache\ndef f(text): pass", "cache"),
        ("f = cache_short_strings(max_length=9, max_entries=9)(g)", "cache_short_strings"),
        ("from queue import Queue as Line\nwaiting = Line()", "Queue"),
        ("Line = deque\nwaiting = Line()", "deque"),
        ("waiting = defaultdict(deque)", "deque"),
        ("most_pods = MAX_PODS\nfor pod in pods[:most_pods]: pass", "[:MAX_PODS]"),
        ("count = MAX_PODS\nfor pod in pods[:count]: pass", "[:MAX_PODS]"),
        ("del pods[MAX_PODS:]", "del [MAX_PODS:]"),
        ("last = pods[-MAX_PODS:]", "[-MAX_PODS:]"),
        ("pages = WSGIMiddleware(app, workers=4)", "WSGIMiddleware"),
        ("pages = AnyPool(app, max_workers=4)", "AnyPool"),
    ],
)
def test_a_new_place_is_noticed(text: str, sign: str) -> None:
    assert places_of(text) == {sign}
