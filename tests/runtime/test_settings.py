"""An environment is settings, or all of its mistakes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.runtime import environment
from trimtab.runtime.files import SettingsError
from trimtab.runtime.settings import ListenAddress, Settings


def mistakes(**variables: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        environment.read({f"TRIMTAB_{name}": value for name, value in variables.items()})
    return [mistake.entry.removeprefix("TRIMTAB_") for mistake in caught.value.mistakes]


def test_an_empty_environment_is_the_defaults() -> None:
    assert environment.read({"HOME": "/somewhere"}) == Settings()


def test_the_api_server_lets_go_of_a_connection_before_we_do() -> None:
    assert Settings().keepalive > 90


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
        ("drain", "2.5s", 2.5),
        ("keepalive", "100", 100),
    ],
)
def test_what_is_written_is_what_is_set(variable: str, text: str, expected: Any) -> None:
    read = environment.read({f"TRIMTAB_{variable.upper()}": text})
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
        ("DRAIN", "-1"),
        ("DRAIN", "nan"),
        ("DRAIN", "inf"),
        ("KEEPALIVE", "2.5"),
        ("LOG_LEVEL", "loud"),
        ("CERTS", ""),
    ],
)
def test_what_cannot_be_read_is_named(variable: str, text: str) -> None:
    assert mistakes(**{variable: text}) == [variable]


def test_all_mistakes_are_named_together() -> None:
    assert mistakes(LISTEN="x", DRAIN="soon", POLICY="p", PAUSED="maybe") == [
        "POLICY",
        "LISTEN",
        "PAUSED",
        "DRAIN",
    ]


def test_a_name_that_does_not_exist_comes_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"TRIMTAB_POLICY: .*did you mean 'TRIMTAB_POLICIES'\?"):
        environment.read({"TRIMTAB_POLICY": "x"})


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
    assert environment.read({f"TRIMTAB_{name}": "tcp://10.0.0.1:443"}) == Settings()


def test_a_stop_that_would_be_cut_short_is_refused() -> None:
    assert mistakes(DRAIN="20", GRACEFUL_TIMEOUT="24") == ["GRACEFUL_TIMEOUT"]


paths = st.text("abc/._-", min_size=1, max_size=9).map(Path)
settings = st.builds(
    Settings,
    listen=st.builds(ListenAddress, st.sampled_from(["0.0.0.0", "::", "localhost"]), st.integers(0, 65535)),
    certs=paths,
    policies=st.lists(paths, max_size=3).map(tuple),
    cluster=st.none() | paths,
    ready_file=st.none() | paths,
    overhead=st.sampled_from(["server", "webhook"]),
    paused=st.booleans(),
    log_level=st.sampled_from(["debug", "info", "warning", "error"]),
    log_format=st.sampled_from(["auto", "json", "console"]),
    drain=st.floats(0, 3600),
    graceful_timeout=st.floats(3605, 86400),
    keepalive=st.integers(0, 86400),
)


@given(settings)
def test_settings_survive_the_environment(given: Settings) -> None:
    assert environment.read(environment.write(given)) == given
