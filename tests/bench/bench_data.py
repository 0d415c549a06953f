"""The published data that benches run on: where it comes from, under which licence, and where it lies here.

    make bench-data        fetches it into build/bench-data, and checks every checksum

A bench runs without it, too: it says so in one line, and measures a generated set. `locate` looks into build/bench-data
(or TRIMTAB_BENCH_DATA), then into `data/` of the folder that TRIMTAB_SHARED names.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPENB_SNAPSHOT = Path(__file__).parent / "data" / "openb-310-spread.json.gz"
"""310 nodes and 6 166 pods, placed by the real default scheduler: carried here, see data/NOTICE.md."""
FETCHED = Path(os.environ.get("TRIMTAB_BENCH_DATA", ROOT / "build" / "bench-data"))
SHARED = Path(os.environ.get("TRIMTAB_SHARED", ROOT.parent / "shared"))
MAX_BYTES = 1 << 30
"""No file here is larger, so a longer response is not what was asked for."""
_SIMULATOR = (
    "https://raw.githubusercontent.com/hkust-adsl/kubernetes-scheduler-simulator/"
    "8f3d6417353c5083c6d56617f255fadd8dc306bc/data/csv/"
)
_NAB = "https://raw.githubusercontent.com/numenta/NAB/ea702d75cc2258d9d7dd35ca8e5e2539d71f3140/data/realAWSCloudwatch/"
_BITBRAINS = "http://gwa.ewi.tudelft.nl/fileadmin/pds/trace-archives/grid-workloads-archive/datasets/gwa-t-12/rnd.zip"


BITBRAINS = "bitbrains-july.csv.gz"
OPENB_FILES = ("openb_node_list_all_node.csv", "openb_pod_list_cpu250.csv")


class BenchDataError(Exception):
    """A file could not be fetched, or is not the file that was expected."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file that benches read."""

    name: str
    url: str
    sha256: str
    """Of the file's content; of the unpacked content where `derive` makes it."""
    licence: str
    shared_path: str
    """Where the file lies below `data/` of the folder that TRIMTAB_SHARED names."""
    derive: Callable[[bytes], bytes] | None = None
    """Makes the file's content from what the address gives; it is stored compressed."""


START_OF_JULY = 1_372_636_800
"""2013-07-01 UTC."""
JULY_DAYS = 28
MACHINES = (
    2,
    3,
    6,
    8,
    12,
    16,
    17,
    20,
    22,
    24,
    26,
    27,
    28,
    37,
    39,
    41,
    42,
    47,
    65,
    73,
    79,
    84,
    89,
    91,
    93,
    100,
    102,
    108,
    113,
    114,
    115,
    161,
    167,
    169,
    170,
    183,
    200,
    201,
    202,
    204,
    208,
    215,
    222,
    230,
    238,
    247,
    261,
    262,
    268,
    278,
    279,
    281,
    303,
    305,
    311,
    317,
    322,
    323,
    326,
    330,
    335,
    344,
    345,
    348,
    349,
    351,
    354,
    358,
    363,
    364,
    366,
    369,
    392,
    394,
    399,
    400,
    402,
    404,
    408,
    409,
    411,
    415,
    416,
    420,
    423,
    426,
    431,
    440,
    442,
    454,
    461,
    472,
    473,
    478,
    484,
    485,
    487,
    491,
    498,
    499,
)
"""The hundred machines of the trace whose series are used."""


def derive_july(archive: bytes) -> bytes:
    """Returns the samples of the machines in July 2013 as CSV: seconds, workload, container, cores, bytes.

    archive: the trace `rnd` as it is published, with one file for each month and machine. CPU is the share of the
    provisioned MHz that was used, times the number of cores, with four digits; memory is whole KB times 1024.
    Of several rows with one time the first counts.
    """
    lines = ["timestamp,workload,container,cpu,memory"]
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        for machine in MACHINES:
            with files.open(f"rnd/2013-7/{machine}.csv") as file:
                lines += _samples(machine, io.TextIOWrapper(file, "utf-8"))
    return ("\n".join(lines) + "\n").encode()


def _samples(machine: int, file: io.TextIOWrapper) -> Iterator[str]:
    next(file)
    times = set[str]()
    for line in file:
        seconds, cores, provisioned, used, _, _, memory, *_ = (field.strip() for field in line.split(";"))
        if seconds not in times and START_OF_JULY <= int(seconds) < START_OF_JULY + JULY_DAYS * 86400:
            times.add(seconds)
            cpu = float(used) / float(provisioned) * int(cores) if float(provisioned) else 0.0
            digits = f"{cpu:.4f}".rstrip("0").rstrip(".")
            yield f"{seconds},Deployment/vm-{machine},app,{digits},{int(float(memory)) * 1024}"


FILES = {
    file.name: file
    for file in (
        DataFile(
            "openb_node_list_all_node.csv",
            _SIMULATOR + "openb_node_list_all_node.csv",
            "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15",
            "Apache-2.0",
            "openb/openb_node_list_all_node.csv",
        ),
        DataFile(
            "openb_pod_list_cpu250.csv",
            _SIMULATOR + "openb_pod_list_cpu250.csv",
            "134c21ff96d57533df8a37b67632972884fec9396e77cd0898ddc370cc8e607d",
            "Apache-2.0",
            "openb/openb_pod_list_cpu250.csv",
        ),
        *(
            DataFile(f"{name}.csv", f"{_NAB}{name}.csv", checksum, "MIT", f"usage/{name}.csv")
            for name, checksum in (
                ("ec2_cpu_utilization_5f5533", "01613e6f632d067f11a5dfd40a188b0789752b388d9bc77a398bd06333878a76"),
                ("ec2_cpu_utilization_825cc2", "d768419037c9db269343822957314f57ee21a7d9a4d41df2add0d1ba45ba84de"),
                ("ec2_cpu_utilization_fe7f93", "f3433f8171f4dcea86c0c7af9996d0f166f812fa0f4567f1d5cd85d2d2cd69b4"),
                ("rds_cpu_utilization_cc0c53", "d5df979ef85928769a016cd0f935919d8c2a113926e21e1eb3a5001d688760e2"),
            )
        ),
        DataFile(
            BITBRAINS,
            _BITBRAINS,
            "eec9999f17a8208316b0053f2ce50bb129601a24b533586bbc6553950ea4bcf0",
            "for research; Grid Workloads Archive GWA-T-12",
            "usage/bitbrains/july.csv.gz",
            derive_july,
        ),
    )
}
"""Name → file."""


def locate(name: str, fetched: Path = FETCHED, shared: Path = SHARED) -> Path | None:
    """Returns the file's path, or None if it is not here."""
    for path in (fetched / name, shared / "data" / FILES[name].shared_path):
        if path.exists():
            return path
    return None


def say_generated(bench: str, *names: str) -> bool:
    """Prints one line if one of the files is not here; returns whether that is so."""
    absent = [name for name in names if locate(name) is None]
    if absent:
        print(
            f"{bench}: {', '.join(absent)} not here (`make bench-data` fetches it): a generated set is measured instead"
        )
    return bool(absent)


def fetch(file: DataFile, folder: Path) -> Path:
    """Fetches the file into the folder, unless it is there; returns its path.

    Raises: BenchDataError, if the address does not answer or the checksum is another one. Nothing is stored then.
    """
    path = folder / file.name
    if path.exists():
        return path
    content = _download(file.url)
    if file.derive is not None:
        try:
            content = file.derive(content)
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise BenchDataError(f"{file.name}: {file.url} is not the archive that was expected: {error}") from error
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != file.sha256:
        raise BenchDataError(f"{file.name}: expected the SHA-256 {file.sha256}, got {checksum} from {file.url}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
        part.write(gzip.compress(content, mtime=0) if file.derive is not None else content)
    return Path(part.name).replace(path)


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            content: bytes = response.read(MAX_BYTES + 1)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise BenchDataError(f"{url} cannot be fetched: {error}") from error
    if len(content) > MAX_BYTES:
        raise BenchDataError(f"{url} gives more than {MAX_BYTES >> 20} MiB")
    return content


def main() -> None:
    failures = []
    for file in FILES.values():
        try:
            print(f"{fetch(file, FETCHED)}  ({file.licence})")
        except BenchDataError as error:
            failures.append(str(error))
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
