"""What holds for all verbs: the environment in which tests are started is not the users'."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRIMTAB_SHARED tells tests where data lies (modules read it when they load); no process of ours knows it."""
    for name in [name for name in os.environ if name.startswith("TRIMTAB_")]:
        monkeypatch.delenv(name)
