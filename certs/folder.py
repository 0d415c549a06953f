"""Four files: `ca.crt` (the bundle clients trust), `ca.key`, `tls.crt`, `tls.key`; written atomically."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from certs.errors import Missing, Unusable, Unwritable
from certs.pair import Pair
from certs.problem import Problem

CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """What the files hold, as PEM bytes.

    `bundle` begins with the authority that signs now; older ones may follow (the overlap).
    `authority_key` is None where the folder only serves (a mounted Secret, cert-manager): such a
    folder can be checked and served from, not renewed here.
    """

    bundle: bytes
    pair: Pair
    authority_key: bytes | None = field(default=None, repr=False)

    @property
    def authority(self) -> Pair | None:
        """The authority that signs now; None where its key is not kept here."""
        if self.authority_key is None:
            return None
        return Pair(certificate=self.bundle, key=self.authority_key)


def read(path: Path) -> Folder:
    """The folder's files as they are at this moment; not checked against each other.

    Raises `Missing` with the file's name (only `ca.key` may be absent), `Unusable` where a file is
    there and cannot be read.
    """
    return Folder(
        bundle=_bytes(path / CA),
        pair=Pair(certificate=_bytes(path / CERTIFICATE), key=_bytes(path / KEY)),
        authority_key=_bytes(path / CA_KEY) if (path / CA_KEY).exists() else None,
    )


def read_authority(path: Path) -> Folder:
    """The authority alone, with an empty pair where none is here: enough to issue a pair anew.

    Raises `Missing` without `ca.crt`.
    """
    pair = [_bytes(path / name) if (path / name).exists() else b"" for name in (CERTIFICATE, KEY)]
    key = _bytes(path / CA_KEY) if (path / CA_KEY).exists() else None
    return Folder(bundle=_bytes(path / CA), pair=Pair(certificate=pair[0], key=pair[1]), authority_key=key)


def write(path: Path, folder: Folder) -> None:
    """Put the files in place: each complete and synced under another name first, then all renamed.

    The order is the promise: the bundle first, so that a new authority is known before anything
    signed by it is served; then the key, then its certificate. A reader between those two renames
    sees a pair that does not match, which `Loader` refuses and `due` names. Keys are readable by
    us alone. Raises `Unwritable`.
    """
    waiting: dict[Path, Path] = {}
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, content, mode in _files(folder):
            waiting[path / name] = _prepared(path / name, content, mode)
        for file, temporary in waiting.items():
            temporary.replace(file)
        _sync(path)
    except OSError as e:
        raise Unwritable(Problem("unwritable", f"{path} cannot be written: {e.strerror}")) from e
    finally:
        for temporary in waiting.values():
            temporary.unlink(missing_ok=True)


def _files(folder: Folder) -> Iterator[tuple[str, bytes, int]]:
    yield CA, folder.bundle, 0o644
    if folder.authority_key is not None:
        yield CA_KEY, folder.authority_key, 0o600
    yield KEY, folder.pair.key, 0o600
    yield CERTIFICATE, folder.pair.certificate, 0o644


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as e:
        raise Missing(Problem("missing", f"{file.name} is not in {file.parent}")) from e
    except OSError as e:
        raise Unusable(Problem("unreadable", f"{file} cannot be read: {e.strerror}")) from e


def _prepared(file: Path, content: bytes, mode: int) -> Path:
    # mkstemp makes the file 0600 from its first byte on; it is opened up only when complete.
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    return Path(temporary)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
