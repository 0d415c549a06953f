"""What holds for all tests: no stopwatch for properties (a busy machine is no bug), no settings from outside.

`HYPOTHESIS_PROFILE`: `usual` draws anew each time, `thorough` a hundred times as much, `steady` (what every change must
pass) the same for the same tests: what turns red there is the change's doing.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("usual", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("usual"), max_examples=3000)
settings.register_profile("steady", parent=settings.get_profile("usual"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


@pytest.fixture(autouse=True, scope="session")
def _no_settings_from_outside() -> None:
    """TRIMTAB_SHARED tells tests where data lies (modules read it when they load); no process of ours knows it."""
    for name in [name for name in os.environ if name.startswith("TRIMTAB_")]:
        del os.environ[name]
