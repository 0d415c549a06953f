"""`trimtab compactor pause --pool`: the pool's settings with `mode: rehearse`, everything else as it was."""

import json
from contextlib import closing

import pytest
from click.testing import CliRunner

from tests.kube.fake_api import FakeApi
from tests.reasons import has_facts
from trimtab.cli.compactor.pause_pool import describe_reopening, rehearse_settings
from trimtab.cli.main import cli
from trimtab.cluster.pool_config import SETTINGS_KEY
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.inputs.command_faults import UsageError


@pytest.mark.parametrize(
    ("text", "paused"),
    [
        ("# ours\nmode: act # since May\nunderUsed: 40%\n", "# ours\nmode: rehearse # since May\nunderUsed: 40%\n"),
        ('{"mode": "act", "enabled": true}', '{"mode": "rehearse", "enabled": true}'),
        ("dryRun: false\n", "mode: rehearse\n"),
        ("mode: rehearse\n", "mode: rehearse\n"),
        ("dryRun: true\n", "dryRun: true\n"),
        ("preset: balanced\n", "preset: balanced\n"),
        ("# nothing\n", "# nothing\n"),
    ],
)
def test_only_the_mode_changes(text: str, paused: str) -> None:
    assert rehearse_settings("web", text) == paused


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "word\n"])
def test_settings_that_are_no_mapping_are_left_alone(text: str) -> None:
    with pytest.raises(UsageError):
        rehearse_settings("web", text)


def test_the_help_says_that_a_pause_of_everything_also_pauses_the_webhook() -> None:
    text = " ".join(CliRunner().invoke(cli, ["compactor", "pause", "--help"]).stdout.split())
    assert has_facts(text, "webhook", "admits pods unchanged")


REHEARSES = (
    "It is in mode `rehearse`; to let it act, set `mode: act` in its ConfigMap: "
    "kubectl -n trimtab-system edit configmap pool-web"
)


@pytest.mark.parametrize(
    ("settings", "before", "message"),
    [
        ("mode: rehearse\n", PoolState(), f"Pool web was not closed. {REHEARSES}"),
        ("mode: rehearse\n", PoolState(closed=1), f"pool web is open again. {REHEARSES}"),
        ("mode: act\n", PoolState(), "Pool web was not closed"),
        ("mode: act\n", Unreadable("ConfigMap trimtab-state-web", "no signature"), "pool web is open again"),
        ("mode: [\n", PoolState(closed=1), "pool web is open again"),
    ],
)
def test_resume_says_what_keeps_an_open_pool_from_acting(
    settings: str, before: PoolState | Unreadable, message: str
) -> None:
    item = {"metadata": {"name": "pool-web", "resourceVersion": "1"}, "data": {SETTINGS_KEY: settings}}
    with FakeApi() as api, closing(api.client()) as client:
        api.fail(200, body=json.dumps({"items": [item]}).encode())
        assert describe_reopening(client, "trimtab-system", "web", before) == message


def test_without_the_right_to_read_the_settings_the_mode_is_not_mentioned() -> None:
    with FakeApi() as api, closing(api.client()) as client:
        api.fail(403)
        assert has_facts(
            describe_reopening(client, "trimtab-system", "web", PoolState(closed=1)), "pool web", "open again"
        )
