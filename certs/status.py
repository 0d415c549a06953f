"""What stands in a certificate folder, for people and for a metric."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from certs.due import due_folder, unsigned
from certs.errors import CertsError
from certs.folder import CA_KEY, KEY, Folder, read
from certs.pair import names_of
from certs.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One folder at one moment.

    `names` is empty, and the two times are None, where the certificate cannot be read; `days_left`
    is then 0.0 and negative once it expired. `problems` is empty when all is well.
    """

    folder: str
    names: tuple[str, ...] = ()
    not_before: datetime | None = None
    not_after: datetime | None = None
    days_left: float = 0.0
    key_matches: bool = False
    signed_by_ca: bool = False
    renewable: bool = False
    problems: tuple[Problem, ...] = ()

    @property
    def usable(self) -> bool:
        """A client that trusts `ca.crt` would talk to a server with this pair now."""
        fatal = {problem.code for problem in self.problems} - HARMLESS
        return self.key_matches and self.signed_by_ca and not fatal


HARMLESS = frozenset({"two-thirds", "ca-two-thirds", "key-open", "ca-key-mismatch", "names-missing"})
"""Problems that call for somebody, while connections still work."""


def status(path: Path, now: datetime) -> Status:
    """Read the folder and judge it. Never raises: what cannot be read is a problem of its own."""
    try:
        folder = read(path)
    except CertsError as e:
        return Status(folder=str(path), problems=(e.problem,))
    found = judged(str(path), folder, now)
    return replace(found, problems=(*found.problems, *_open(path)))


def judged(name: str, folder: Folder, now: datetime) -> Status:
    """The same for what was read already, wherever that was. Never raises."""
    try:
        return _judged(name, folder, now)
    except CertsError as e:
        return Status(folder=name, problems=(e.problem,))


def _judged(name: str, folder: Folder, now: datetime) -> Status:
    leaf = folder.pair.leaf()
    problems = dict.fromkeys(due_folder(folder, now))
    codes = {problem.code for problem in problems}
    return Status(
        folder=name,
        names=names_of(leaf),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        days_left=(leaf.not_valid_after_utc - now).total_seconds() / 86400,
        key_matches=not codes & {"key-mismatch", "no-key", "no-signing-key"},
        signed_by_ca=not unsigned(folder),
        renewable=folder.authority_key is not None,
        problems=tuple(problems),
    )


def _open(path: Path) -> tuple[Problem, ...]:
    # Others only: a Secret mounted with fsGroup is readable by its group, and that is how it should be.
    keys = [path / name for name in (KEY, CA_KEY)]
    loose = [key.name for key in keys if key.exists() and key.stat().st_mode & 0o007]
    return tuple(Problem("key-open", f"{name} can be read by everybody on this machine") for name in loose)
