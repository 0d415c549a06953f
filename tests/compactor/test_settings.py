"""The compactor's settings come from the environment, and fit together."""

from trimtab.cluster.pool import Pool
from trimtab.compactor.settings import Settings
from trimtab.runtime import environment


def test_settings_are_read_and_written_back() -> None:
    read = environment.read_as(
        {"TRIMTAB_COMPACTOR_NODE_REMOVAL_TIMEOUT_SECONDS": "7", "TRIMTAB_COMPACTOR_REHEARSE": "true"}, Settings
    )
    assert (read.node_removal_timeout_seconds, read.rehearse, read.drain_timeouts.taken) == (7, True, 7)
    assert environment.read_as(environment.write_environment(read), Settings) == read
    assert Settings().drain_timeouts.taken is None


def test_the_default_lease_keeps_two_leaders_apart() -> None:
    settings = Settings()
    assert settings.renew_deadline_seconds + settings.write_timeout_seconds < settings.lease_duration_seconds


def test_the_autoscalers_flags_are_read_as_on_its_command_line() -> None:
    settings = Settings(autoscaler_flags="--scale-down-unneeded-time=2m --scale-down-enabled false")
    words = ("--scale-down-unneeded-time=2m", "--scale-down-enabled", "false")
    assert settings.autoscaler_arguments("cluster-autoscaler-status") == words


def test_a_pool_limits_its_own_resizes() -> None:
    pool = Pool(name="web", resize_canary=20, resize_verify=30, resizes_per_hour=40)
    settings = Settings().resize_settings(pool)
    assert (settings.canary_percent, settings.verify_seconds, settings.changes_per_hour) == (20, 30, 40)
