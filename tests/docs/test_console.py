"""The reader of pages and its shell do what pages rely on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.console import Shell, Step, differs, steps

PAGE = """
Say it:

```console
$ cd here && \\
  echo one
one
$ false
```

<!-- run: not here, needs a container runtime -->
```console
$ kind create cluster
```

<!-- run: file mine.yaml -->
```yaml
a: 1
```

```sh
not a terminal
```
"""


def test_a_page_is_read_as_commands_what_they_show_and_files() -> None:
    assert list(steps(PAGE)) == [
        Step("", "cd here && \\\n  echo one", "one"),
        Step("", "false", ""),
        Step("not here, needs a container runtime", "kind create cluster", ""),
        Step("file mine.yaml", "a: 1\n", ""),
    ]


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ("", "anything", True),
        ("a  b", " a b \n\n", True),
        ("a", "a\nb", False),
        ("a\n…", "a\nb\nc", True),
        ("…\nc", "a\nb\nc", True),
        ("…\nb\n…", "a\nc", False),
        ("web-… of 6", "web-12 of 6", True),
        ("(a)", "b", False),
        ("a", 'I1122 02:12:13.167975   28316 reflector.go:664] "Warning: watch ended with error"\na', True),
        ("a", "I1122 02:12:13.167975   28316 doctor.go:1] no\na", False),
    ],
)
def test_what_is_shown_is_compared_line_by_line(shown: str, got: str, same: bool) -> None:
    assert (differs(shown, got) == "") is same


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, dict(os.environ))


def test_a_shell_remembers_where_it_is_and_saves_files(shell: Shell, tmp_path: Path) -> None:
    with shell as opened:
        opened.do(Step("file x", "text", ""))
        opened.do(Step("", "mkdir in; cd in; export WORD=said", ""))
        opened.do(Step("", "echo $WORD; cat ../x", "said\ntext"))
    assert (tmp_path / "in").is_dir()


def test_another_output_or_a_bad_end_is_told(shell: Shell) -> None:
    with shell as opened:
        with pytest.raises(AssertionError, match="got:\none"):
            opened.do(Step("", "echo one", "two"))
        with pytest.raises(AssertionError, match="ended with 3"):
            opened.do(Step("", "(exit 3)", ""))
        opened.do(Step("", "(exit 3); echo $?", "3"))


def test_what_runs_in_the_background_has_said_so_and_ends_with_the_page(shell: Shell) -> None:
    with shell as opened:
        opened.do(Step("in the background", "WORD=on bash -c 'echo it is $WORD; exec sleep 60'", "it is on"))
        _, pid = opened.run("echo $!")
        os.kill(int(pid), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_step_after_ctrl_c_ends_all_terminals_but_the_first(shell: Shell) -> None:
    with shell as opened:
        for word in ("one", "two"):
            opened.do(Step("in the background", f"bash -c 'echo {word}; exec sleep 60'", word))
        opened.do(Step("after Ctrl-C in all terminals but the first", "jobs -r | wc -l", "1"))
