"""`trimtab compactor pause --pool`: the pool's settings with `mode: rehearse`, everything else as it was."""

import pytest
from click.testing import CliRunner

from trimtab.cli.compactor.command import verb
from trimtab.cli.compactor.pause_pool import rehearse_settings
from trimtab.cli.main import UsageError


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
    text = " ".join(CliRunner().invoke(verb, ["pause", "--help"]).stdout.split())
    assert "so that the webhook also admits pods unchanged" in text
