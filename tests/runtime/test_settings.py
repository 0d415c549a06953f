"""An environment is settings, or all of its mistakes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.compactor.settings import Settings as CompactorSettings
from trimtab.metricsapi.settings import Settings as MetricsApiSettings
from trimtab.recommender.settings import Settings as RecommenderSettings
from trimtab.runtime import environment
from trimtab.runtime.files import SettingsError
from trimtab.runtime.settings import ListenAddress, Settings
from trimtab.watchdog.settings import Settings as WatchdogSettings


def mistakes(**variables: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        environment.read_settings(
            {environment.variable_name("webhook", name.lower()): text for name, text in variables.items()}
        )
    return [mistake.entry.removeprefix("TRIMTAB_").removeprefix("WEBHOOK_") for mistake in caught.value.mistakes]


def test_an_empty_environment_is_the_defaults() -> None:
    assert environment.read_settings({"HOME": "/somewhere"}) == Settings()


def test_the_api_server_lets_go_of_a_connection_before_we_do() -> None:
    assert Settings().keepalive_seconds > 90


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("listen", "127.0.0.1:0", ListenAddress("127.0.0.1", 0)),
        ("listen", "[::1]:8443", ListenAddress("::1", 8443)),
        ("policies", "a:b/c", (Path("a"), Path("b/c"))),
        ("policies", "", ()),
        ("cluster", "snapshot.yaml", Path("snapshot.yaml")),
        ("overhead", "webhook", "webhook"),
        ("paused", "true", True),
        ("paused", "0", False),
        ("shutdown_delay_seconds", "2.5s", 2.5),
        ("keepalive_seconds", "100", 100),
        ("max_connections", "100000", 100_000),
    ],
)
def test_what_is_written_is_what_is_set(variable: str, text: str, expected: Any) -> None:
    read = environment.read_settings({environment.variable_name("webhook", variable): text})
    assert getattr(read, variable) == expected


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("LISTEN", "8443"),
        ("LISTEN", ":8443"),
        ("LISTEN", "host:65536"),
        ("LISTEN", "host:http"),
        ("OVERHEAD", "Server"),
        ("PAUSED", "maybe"),
        ("PAUSED", ""),
        ("SHUTDOWN_DELAY_SECONDS", "-1"),
        ("SHUTDOWN_DELAY_SECONDS", "nan"),
        ("SHUTDOWN_DELAY_SECONDS", "inf"),
        ("KEEPALIVE_SECONDS", "2.5"),
        ("MAX_CONNECTIONS", "5s"),
        ("LOG_LEVEL", "loud"),
        ("CERTS_FOLDER", ""),
    ],
)
def test_what_cannot_be_read_is_named(variable: str, text: str) -> None:
    assert mistakes(**{variable: text}) == [variable]


def test_all_mistakes_are_named_together() -> None:
    assert mistakes(LISTEN="x", SHUTDOWN_DELAY_SECONDS="soon", POLICY="p", PAUSED="maybe") == [
        "POLICY",
        "LISTEN",
        "PAUSED",
        "SHUTDOWN_DELAY_SECONDS",
    ]


def test_a_name_that_does_not_exist_comes_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"TRIMTAB_POLICY: .*did you mean 'TRIMTAB_POLICIES'\?"):
        environment.read_settings({"TRIMTAB_POLICY": "x"})
    with pytest.raises(SettingsError, match=r"did you mean 'TRIMTAB_COMPACTOR_MAX_CONCURRENT_DRAINS'\?$"):
        environment.read_as({"TRIMTAB_COMPACTOR_MAX_CONCURENT_DRAIN": "2"}, CompactorSettings)
    with pytest.raises(SettingsError, match=r"got 'TRIMTAB_COMPACTOR_COLOUR'$"):
        environment.read_as({"TRIMTAB_COMPACTOR_COLOUR": "2"}, CompactorSettings)


SETTINGS: dict[str, Any] = {
    "webhook": Settings,
    "compactor": CompactorSettings,
    "recommender": RecommenderSettings,
    "watchdog": WatchdogSettings,
    "metrics_api": MetricsApiSettings,
}


@pytest.mark.parametrize(
    ("process", "old", "field"),
    [(process, old, new) for process, kind in SETTINGS.items() for old, new in kind.renamed.items()],
)
def test_an_old_name_is_refused_with_the_new_one(process: str, old: str, field: str) -> None:
    with pytest.raises(
        SettingsError, match=rf"TRIMTAB_{old}: .*renamed; use {environment.variable_name(process, field)} instead$"
    ):
        environment.read_as({f"TRIMTAB_{old}": "1"}, SETTINGS[process])
    assert environment.variable_name(process, field) in environment.fields_by_variable(SETTINGS[process])


def test_a_process_ignores_the_settings_of_the_others() -> None:
    shared = {"TRIMTAB_COMPACTOR_PLAN_INTERVAL_SECONDS": "5", "TRIMTAB_OVERHEAD": "webhook", "TRIMTAB_POLICIES": "p"}
    assert environment.read_as(shared, RecommenderSettings) == RecommenderSettings()
    assert environment.read_as(shared, CompactorSettings).plan_interval_seconds == 5


@pytest.mark.parametrize(
    "name",
    [
        "SERVICE_HOST",
        "SERVICE_PORT",
        "SERVICE_PORT_HTTPS",
        "PORT",
        "PORT_443_TCP",
        "PORT_443_TCP_ADDR",
        "WEBHOOK_SERVICE_HOST",
        "WEBHOOK_PORT",
        "WEBHOOK_PORT_443_TCP_PROTO",
    ],
)
def test_what_the_kubelet_says_about_our_own_service_is_no_setting(name: str) -> None:
    assert environment.read_settings({f"TRIMTAB_{name}": "tcp://10.0.0.1:443"}) == Settings()


def test_a_stop_that_would_be_cut_short_is_refused() -> None:
    assert mistakes(SHUTDOWN_DELAY_SECONDS="20", GRACEFUL_TIMEOUT_SECONDS="24") == ["GRACEFUL_TIMEOUT_SECONDS"]


paths = st.text("abc/._-", min_size=1, max_size=9).map(Path)
settings = st.builds(
    Settings,
    listen=st.builds(ListenAddress, st.sampled_from(["0.0.0.0", "::", "localhost"]), st.integers(0, 65535)),
    certs_folder=paths,
    policies=st.lists(paths, max_size=3).map(tuple),
    cluster=st.none() | paths,
    ready_file=st.none() | paths,
    overhead=st.sampled_from(["server", "webhook"]),
    paused=st.booleans(),
    log_level=st.sampled_from(["debug", "info", "warning", "error"]),
    log_format=st.sampled_from(["auto", "json", "console"]),
    shutdown_delay_seconds=st.floats(0, 3600),
    graceful_timeout_seconds=st.floats(3605, 86400),
    keepalive_seconds=st.integers(0, 86400),
)


@given(settings)
def test_settings_survive_the_environment(given: Settings) -> None:
    assert environment.read_settings(environment.write_environment(given)) == given
