"""What holds for all tests: no stopwatch for properties (a busy machine is no bug), no settings from outside.

`HYPOTHESIS_PROFILE`: `usual` draws anew each time, and so little that `make test` takes minutes; `steady` (what every
change must pass) draws three times as much, the same for the same tests: what turns red there is the change's doing.
`thorough` draws a hundred times as much. `brief` is `steady` with a few draws, for a second Python.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

for name, (examples, of_clusters) in {
    "usual": (30, 10),
    "steady": (100, 30),
    "brief": (10, 3),
    "thorough": (3000, 3000),
}.items():
    # What is drawn in tests/property are whole clusters and policies: fewer of them.
    settings.register_profile(
        name,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=name in ("steady", "brief"),
        max_examples=examples,
    )
    settings.register_profile(f"{name} of clusters", settings.get_profile(name), max_examples=of_clusters)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "usual")
# The tests themselves are a million objects: walks through them take an eighth of the time. With far more young objects
# than this, what is freed has left the cache of the processor, and it takes longer again.
gc.set_threshold(5_000, 20, 20)


def pytest_collection_finish() -> None:
    """Once all tests are read: what there is now is not walked through again."""
    gc.collect()
    gc.freeze()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Before a file of tests is read: how much its laws draw."""
    if isinstance(collector, pytest.Module):
        settings.load_profile(f"{PROFILE} of clusters" if collector.path.parent.name == "property" else PROFILE)


@pytest.fixture(autouse=True, scope="session")
def _no_settings_from_outside() -> None:
    """TRIMTAB_SHARED tells tests where data lies (modules read it when they load); no process of ours knows it."""
    for name in [name for name in os.environ if name.startswith("TRIMTAB_")]:
        del os.environ[name]
