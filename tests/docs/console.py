"""What a page shows of a terminal, and a shell that does it: every command run, its output held against what is shown.

    ```console
    $ trimtab compactor status        ← run
    not paused                        ← its output has this line, blanks counted as one
    …                                 ← any lines, or inside of a line any text
    ```

Nothing shown means: it ends well. A comment before a block says more:
`<!-- run: in the background -->` goes on until the page's end, once the lines shown were said (others may be between);
`<!-- run: after Ctrl-C in all terminals but the first -->` first ends what runs in the background since;
`<!-- run: not here, needs … -->` is left out;
`<!-- run: file NAME -->` saves what the block holds.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_BLOCK = re.compile(r"(?:<!-- run: (?P<how>[^>]*?) -->\s*)?```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)
_DONE = "--- that was it:"
_LOG = re.compile(r"[IW]\d{4} [\d:.]+ +\d+ reflector\.go:\d+\] .*")
"""Helm waits by watches, and tells of one that ended too early that it did: no page shows what comes now and then."""


@dataclass(frozen=True, slots=True)
class Step:
    """One block's command and what is shown of its output; or a file."""

    how: str
    """Empty, `in the background`, `after Ctrl-C …`, `not here, …`, `file NAME`."""
    command: str
    shown: str


def steps(page: str) -> Iterator[Step]:
    """In the page's order."""
    for match in _BLOCK.finditer(page):
        how, text = match["how"] or "", match["text"]
        if how.startswith("file "):
            yield Step(how, text, "")
        elif match["kind"] == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                yield Step(how, *_parted(part))


def _parted(text: str) -> tuple[str, str]:
    """A command goes on where a line ends with a backslash."""
    lines = text.splitlines()
    end = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
    return "\n".join(lines[:end]), "\n".join(lines[end:])


def differs(shown: str, got: str) -> str:
    """Where the output is other than shown; empty where it is not. Lines that are not shown need a `…`."""
    expected_lines, lines = _lines(shown), _lines(got)
    if not expected_lines or re.fullmatch(
        "".join(map(_pattern, expected_lines)), "".join(f"{line}\n" for line in lines)
    ):
        return ""
    return f"shown:\n{shown}\ngot:\n{got}"


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and not _LOG.match(line)]


def _pattern(line: str) -> str:
    return r"(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + r"\n"


@dataclass
class Shell:
    """One bash, from the first command of a page to its last."""

    folder: Path
    environ: dict[str, str]
    _background: list[int] = field(default_factory=list)

    def __enter__(self) -> Shell:
        self._bash = subprocess.Popen(
            ["bash"],
            cwd=self.folder,
            env=self.environ,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What runs in the background is told to end, the last first, and is waited for."""
        self._end(keep=0)
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.close()
        self._bash.wait(30)
        self._bash.stdout.close()

    def do(self, step: Step, within: float = 120) -> None:
        """Raises AssertionError with what was shown and what was printed."""
        if step.how.startswith("file "):
            file = self.folder / step.how.removeprefix("file ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step.command)
        elif step.how == "in the background":
            self._begin(step, within)
        elif not step.how.startswith("not here"):
            if step.how.startswith("after Ctrl-C"):
                self._end(keep=1)
            code, got = self.run(step.command)
            assert code == 0 or "echo $?" in step.command, f"$ {step.command}\nended with {code}:\n{got}"
            wrong = differs(step.shown, got)
            assert not wrong, f"$ {step.command}\n{wrong}"

    def run(self, command: str) -> tuple[int, str]:
        """Exit code and output."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\n_code=$?; echo; echo '{_DONE}' $_code\n")
        self._bash.stdin.flush()
        got = []
        for line in self._bash.stdout:
            if line.startswith(_DONE):
                return int(line.removeprefix(_DONE)), "".join(got)
            got.append(line)
        raise AssertionError(f"the shell ended in: {command}")

    def _end(self, keep: int) -> None:
        """All that runs in the background but the first ones, the last first; waits for each."""
        while len(self._background) > keep:
            pid = self._background.pop()
            self.run(f"kill {pid} 2>/dev/null; wait {pid}")

    def _begin(self, step: Step, within: float) -> None:
        file = self.folder / f".background-{len(self._background)}.log"
        # Not a group: what it starts for itself, such as a variable before the command, stays before the command.
        _, pid = self.run(f"{step.command} >{file} 2>&1 &\necho $!")
        self._background.append(int(pid))
        until = time.monotonic() + within
        shown = "\n…\n".join(["…", *step.shown.splitlines(), "…"])
        while differs(shown, text := file.read_text() if file.exists() else ""):
            assert time.monotonic() < until, f"$ {step.command}\nwas to say:\n{step.shown}\nand said:\n{text}"
            time.sleep(0.2)
