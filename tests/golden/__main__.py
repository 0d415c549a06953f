"""Makes the stored outputs again, and shows how they differ from what was stored.

    python -m tests.golden [--check] [--whole FOLDER] [WORDS …]

WORDS choose commands by their first words, `plan`, and clusters, `cluster=large`; a line says which were chosen.
--check writes nothing, and exits with 1 if an output differs.
--whole writes every output to a folder, the long ones too, to compare two commits with `diff -r`.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from pathlib import Path

from tests.golden.commands import iter_commands
from tests.golden.outputs import FOLDER, list_cases, open_runs, output_file
from tests.golden.snapshots import SNAPSHOTS

CLUSTER = "cluster="
"""How the name of a cluster is written: some verbs begin with the same words."""


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="Make the stored outputs again.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if an output differs")
    parser.add_argument("--whole", type=Path, metavar="FOLDER", help="write all outputs unshortened to this folder")
    parser.add_argument("words", nargs="*", help="commands and cluster=NAME; all without any")
    options = parser.parse_args()
    began, commands = time.monotonic(), dict(iter_commands())
    target, counts = (options.whole or FOLDER).absolute(), {"same": 0, "changed": 0, "new": 0, "removed": 0}
    try:
        cases = choose_cases(options.words)
    except ValueError as error:
        parser.error(str(error))
    verbs, clusters = (list(dict.fromkeys(case[part] for case in cases)) for part in (1, 0))
    print(f"{len(verbs)} verbs ({', '.join(verbs)}) on {len(clusters)} clusters ({', '.join(clusters)})")
    with open_runs() as enter_snapshot:
        for name, words in cases:
            text = enter_snapshot(name).render_command(words, commands[words], is_whole=bool(options.whole))
            counts[_compare(output_file(name, words, target), text, is_written=not options.check)] += 1
    if not options.words and not options.whole:
        counts["removed"] = _remove_others(is_removed=not options.check)
    summary = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"{len(cases)} outputs in {time.monotonic() - began:.0f} s: {summary}")
    return int(options.check and counts["same"] < len(cases) + counts["removed"])


def choose_cases(words: list[str]) -> list[tuple[str, str]]:
    """Returns the cases that the words choose, all if there are none. A word that chooses nothing is a ValueError."""
    clusters = [word.removeprefix(CLUSTER) for word in words if word.startswith(CLUSTER)]
    verbs = [word for word in words if not word.startswith(CLUSTER)]
    cases = list_cases()
    for cluster in clusters:
        if cluster not in SNAPSHOTS:
            raise ValueError(f"no cluster is called {cluster!r}; there are {', '.join(SNAPSHOTS)}")
    for verb in verbs:
        if not any(_begins_with(command, verb) for _, command in cases):
            hint = f"; the cluster is {CLUSTER}{verb}" if verb in SNAPSHOTS else ""
            raise ValueError(f"no verb with a stored output begins with {verb!r}{hint}")
    return [
        (name, command)
        for name, command in cases
        if (not clusters or name in clusters) and (not verbs or any(_begins_with(command, verb) for verb in verbs))
    ]


def _begins_with(command: str, words: str) -> bool:
    return f"{command} ".startswith(f"{words} ")


def _compare(file: Path, text: str, *, is_written: bool) -> str:
    """Show the difference from the stored output, and replace it. Returns what changed."""
    stored = file.read_text(encoding="utf-8") if file.exists() else None
    if stored == text:
        return "same"
    label = f"{file.parent.name}/{file.name}"
    lines = difflib.unified_diff(
        (stored or "").splitlines(), text.splitlines(), f"{label} (stored)", label, lineterm="", n=2
    )
    shown = list(lines) if stored is not None else [f"+++ {label}: {text.count(chr(10))} lines"]
    print("\n".join(shown))
    if is_written:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return "new" if stored is None else "changed"


def _remove_others(*, is_removed: bool) -> int:
    """Remove the stored outputs of commands that there are no more. Returns how many there are."""
    current = {output_file(name, words) for name, words in list_cases()}
    others = [file for file in FOLDER.rglob("*.txt") if file not in current]
    for file in others:
        print(f"--- {file.relative_to(FOLDER)}")
        if is_removed:
            file.unlink()
    return len(others)


if __name__ == "__main__":
    sys.exit(main())
