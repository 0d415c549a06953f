"""Archives that are the same bytes for the same files: sorted, of one owner, of one time."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path


def pack_folder(folder: Path, epoch_seconds: int, prefix: str = "") -> bytes:
    """Return a tar archive of all files, folders and symbolic links below the folder, named from it on.

    Each entry belongs to root and has the given time. A file that its owner may execute has mode 755, every other one
    644; a folder with the sticky bit keeps it. `prefix` is put before each name.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
            entry = archive.gettarinfo(path, prefix + path.relative_to(folder).as_posix())
            # A second name of one file is stored as a file: whether two files are one is not said by their bytes.
            if entry.islnk():
                entry.type, entry.size = tarfile.REGTYPE, path.stat().st_size
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = epoch_seconds
            is_executable = bool(entry.mode & 0o100)
            entry.mode = 0o1777 if entry.mode & 0o1000 else 0o755 if entry.isdir() or is_executable else 0o644
            if entry.isreg():
                with path.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)
    return buffer.getvalue()


def compress(content: bytes) -> bytes:
    """Return the content as gzip, without a time and a name."""
    return gzip.compress(content, compresslevel=6, mtime=0)


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of the content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
