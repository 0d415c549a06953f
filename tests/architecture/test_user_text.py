"""What users read is plain English, and names only flags and verbs that exist (docs/reference/vocabulary.md)."""

import re

import pytest

from tests.architecture.user_text import UserText, user_texts
from tests.docs.test_commands import problem
from trimtab.cli.command_tree import iterate_contexts
from trimtab.cli.main import VERBS
from trimtab.cluster.autoscaler_flags import FLAGS
from trimtab.cluster.runtimes import RUNTIMES

BANNED = {
    r"(?<![\w-])(we|our|ours|us)(?![\w-])": "Trimtab, or the process",
    r"\b(some|no|any|every)body\b|\b[Ww]hoever\b": "the author, the API server, another client",
    r"\bmend(s|ed|ing)?\b": "fix, correct",
    r"\b(tells?|told)\b": "report, warn, print",
    r"\bcame\b": "got",
    r"(^|[.:;] )Who\b[^?]*$": "a subject: the container that …",
    r"\bcan go\b|\bcould go\b": "can be drained",
    r"\blook(s|ed)? at\b": "check, read",
    r"\b(given|taken|gives?|takes?) back\b": "released, reverted",
    r"\bbeside\b": "next to, in addition to",
    r"\basks? for\b|\basked for\b": "requests",
    r"\bcarr(y|ies)\b(?! out)": "has",
    r"\b(is|are|was|not) (sound|well)\b|\bas it stands\b|\bstands (in|for)\b": "valid, healthy, contains",
    r", too[.,;:)]|, too$": "also",
    r"\bof it all\b|\ball of it\b.*\?$": "say what",
    r"\(s\)": "the right plural",
}
"""Expression → what to write instead."""


FOREIGN_FLAGS = {
    *FLAGS,
    "expander",  # cluster autoscaler
    *("runtime-cgroups", "name", "kubelet-config"),  # kubelet, az
    *("namespace", "raw", "server-side", "force-conflicts", "field-manager", "show-managed-fields"),  # kubectl
    "set",  # helm
    *("format", "porcelain", "untracked-files", "no-isolation", "outdir"),  # git, build
    *("no-deps", "require-hashes", "requirement", "quiet", "no-build-isolation", "wheel-dir"),  # pip
    *("invalidation-mode", "build-id", "strip-debug"),  # compileall, ld
    *("recommendation-margin-fraction", "min-replicas", "pod-recommendation-min-cpu-millicores"),  # VPA
    *("cpu-histogram-decay-half-life", "target-cpu-percentile"),  # VPA recommender
    "metric-opt-in-list",  # kube-state-metrics
    "autoscaling-profile",  # gcloud
    *(flag.lstrip("-") for runtime in RUNTIMES for flag in re.findall(r"--[a-z][a-z-]+", repr(runtime))),
}
"""Flags of other programs that texts name."""

NO_VERBS = {"failed", "deploy"}
"""Words after the program's name in a sentence, or after a release of that name."""


@pytest.mark.parametrize(("banned", "instead"), BANNED.items(), ids=BANNED)
def test_no_text_has_a_phrase_that_readers_stumble_over(banned: str, instead: str) -> None:
    assert [f"{one.place}: {one.text}" for one in user_texts() if re.search(banned, one.text)] == [], instead


def test_every_flag_that_a_text_names_exists() -> None:
    options = {
        name
        for context in iterate_contexts()
        for param in context.command.params
        for name in (*param.opts, *param.secondary_opts)
    }
    facts = options | {f"--{name}" for name in FOREIGN_FLAGS}
    named = [(one, flag) for one in user_texts() for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+\b", one.text)]
    assert len(named) > 100
    unknown = [f"{one.place}: {flag}" for one, flag in named if flag not in facts]
    assert unknown == [], "add the flags of other programs to FOREIGN_FLAGS"


def test_every_command_that_a_text_quotes_exists() -> None:
    quoted = [(one, line) for one in user_texts() for line in re.findall(r"`trimtab ([^`]+)`", one.text)]
    assert len(quoted) > 20
    assert [f"{one.place}: {line}" for one, line in quoted if problem(line.replace("{}", "plan"))] == []


def test_every_verb_that_a_text_names_exists() -> None:
    named = [(one, verb) for one in user_texts() for verb in re.findall(r"(?<![\w/.-])trimtab ([a-z]+)\b", one.text)]
    assert [f"{one.place}: {verb}" for one, verb in named if verb not in {*VERBS, *NO_VERBS}] == []


def test_a_wrong_text_is_found() -> None:
    wrong = UserText("here:1", "Who asks for nothing is told so by us")
    assert sum(bool(re.search(banned, wrong.text)) for banned in BANNED) >= 4
