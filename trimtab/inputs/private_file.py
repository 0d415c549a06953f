"""Writes files with data of a cluster, which may be confidential."""

import os
import re
import stat
import tempfile
from pathlib import Path

from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.command_faults import UsageError


def write_private_file(name: str, content: bytes) -> None:
    """Write a new file that only its owner may read, and put it in the place of the old one. A link with this name is
    replaced, not followed; what is not a file (a pipe, a terminal) is written to as it is. Raises UsageError if the
    file cannot be written."""
    try:
        if _is_special(name):
            Path(name).write_bytes(content)
        else:
            _replace(Path(name), content)
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=name, expected="a file that can be written", got=got)]) from None


def create_private_file(path: Path) -> bool:
    """Creates an empty file that only its owner may read, and returns whether it did: False if there is one already.
    Raises OSError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def append_private_bytes(path: Path, content: bytes) -> None:
    """Appends the content to a file of `create_private_file`, and returns once it is on the disk. Raises OSError."""
    # No link is followed: the file is one of ours.
    descriptor = os.open(path, os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


_OPEN_FILES = re.compile(r"/dev/(stdin|stdout|stderr|fd/[0-9]+)|/proc/self/fd/[0-9]+")
"""Names of the files that the process has open already. They are links, and the shell has chosen their targets."""


def _is_special(name: str) -> bool:
    """Returns whether the name is that of a pipe or a device, such as /dev/stdout: it cannot be replaced. The type of
    the file itself decides, not its folder: /dev/shm has ordinary files, and a link may have any target."""
    if _OPEN_FILES.fullmatch(name):
        return True
    try:
        mode = os.lstat(name).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode)


def _replace(path: Path, content: bytes) -> None:
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory")
    # mkstemp creates a new file with mode 0600 and follows no link.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
