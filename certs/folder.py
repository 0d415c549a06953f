"""Four files: `ca.crt` (the bundle clients trust), `ca.key`, `tls.crt`, `tls.key`; written atomically."""

import os
import tempfile
from contextlib import suppress
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


def write(path: Path, folder: Folder) -> None:
    """Put the files in place, each by temporary file, fsync and rename; keys readable by us alone.

    The order is the promise: the bundle first, so that a new authority is known before anything
    signed by it is served; then the key, then its certificate. A reader in between sees a pair that
    does not match, which `Loader` refuses and `due` names. Raises `Unwritable`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        _put(path / CA, folder.bundle, 0o644)
        if folder.authority_key is not None:
            _put(path / CA_KEY, folder.authority_key, 0o600)
        _put(path / KEY, folder.pair.key, 0o600)
        _put(path / CERTIFICATE, folder.pair.certificate, 0o644)
        _sync(path)
    except OSError as e:
        raise Unwritable(Problem("unwritable", f"{path} cannot be written: {e.strerror}")) from e


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as e:
        raise Missing(Problem("missing", f"{file.name} is not in {file.parent}")) from e
    except OSError as e:
        raise Unusable(Problem("unreadable", f"{file} cannot be read: {e.strerror}")) from e


def _put(file: Path, content: bytes, mode: int) -> None:
    # mkstemp makes the file 0600 from its first byte on; it is opened up only when complete.
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        Path(temporary).replace(file)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
