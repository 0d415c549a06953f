"""The watchdog's settings from an environment."""

import pytest

from trimtab.kube.leader_election import LeaderElector
from trimtab.runtime.environment import read_as
from trimtab.runtime.files import SettingsError
from trimtab.watchdog.settings import Settings


def test_defaults_agree_with_the_brakes_own() -> None:
    from trimtab.admission.audit.harm import DEFAULT_HARM_TERMS

    assert Settings().harm_terms == DEFAULT_HARM_TERMS


def test_thresholds_come_from_the_environment() -> None:
    settings = read_as(
        {
            "TRIMTAB_WATCHDOG_HARM_MIN_PODS": "20",
            "TRIMTAB_WATCHDOG_HARM_MIN_INCREASE_PERCENT": "10",
            "TRIMTAB_WATCHDOG_HARM_BRAKE": "report",
        },
        Settings,
    )
    assert (settings.harm_terms.least_pods, settings.harm_terms.rise, settings.harm_brake) == (20, 0.1, "report")


def test_what_makes_no_sense_is_told() -> None:
    with pytest.raises(SettingsError, match="TRIMTAB_WATCHDOG_HARM_BRAKE"):
        read_as({"TRIMTAB_WATCHDOG_HARM_BRAKE": "perhaps"}, Settings)


def test_a_lease_that_two_could_hold_is_refused() -> None:
    class Nobody:
        deadlines = Settings(lease_duration_seconds=20).client_deadlines

    with pytest.raises(ValueError, match="together be shorter"):
        LeaderElector(Nobody(), "ns", "n", "me", timings=Settings(lease_duration_seconds=20).lease_timings)  # type: ignore[arg-type]
