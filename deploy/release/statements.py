"""What a release says about itself: what is in it (SPDX), and what it was made from (SLSA provenance)."""

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Origin:
    """What a release is made from."""

    version: str
    repository: str
    commit: str
    """Empty if the source is no git repository."""
    epoch_seconds: int
    """The time of the commit."""

    @property
    def created(self) -> str:
        """The time of the commit, in RFC 3339."""
        return datetime.datetime.fromtimestamp(self.epoch_seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def locked_packages(requirements: str) -> list[tuple[str, str, list[str]]]:
    """Return (name, version, SHA-256 of each allowed file) for each package of a requirements file with hashes."""
    lines = re.sub(r"\\\n\s*", " ", requirements).splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return [
        (*named[0].split("==", 1), [word.removeprefix("--hash=sha256:") for word in named[1:]])  # type: ignore[misc]
        for named in words
    ]


def bill_of_materials(
    origin: Origin, requirements: str, libraries: Mapping[str, str], python_version: str | None
) -> dict[str, Any]:
    """Return the SPDX 2.3 document of the release: Trimtab, each Python package of the image by version and hash and,
    if an image was built, its Python and its shared libraries (file name → SHA-256)."""
    packages = [_package("trimtab", origin.version, f"pkg:pypi/trimtab@{origin.version}", [])]
    packages[0]["licenseDeclared"] = "Apache-2.0"
    for name, version, digests in locked_packages(requirements):
        packages.append(_package(name, version, f"pkg:pypi/{name}@{version}", digests))
    if python_version:
        packages.append(_package("python", python_version, f"pkg:generic/python@{python_version}", []))
    for name, digest in sorted(libraries.items()):
        packages.append(_package(name, "", f"pkg:generic/{name}?checksum=sha256:{digest}", [digest]))
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"trimtab-{origin.version}",
        "documentNamespace": f"{origin.repository}/spdx/{origin.version}/{origin.commit or 'source'}",
        "creationInfo": {"created": origin.created, "creators": ["Tool: make release"]},
        "packages": packages,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": packages[0]["SPDXID"],
            },
            *(
                {
                    "spdxElementId": packages[0]["SPDXID"],
                    "relationshipType": "DEPENDS_ON",
                    "relatedSpdxElement": package["SPDXID"],
                }
                for package in packages[1:]
            ),
        ],
    }


def _package(name: str, version: str, locator: str, digests: list[str]) -> dict[str, Any]:
    package: dict[str, Any] = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}" if version else name),
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}
        ],
    }
    if version:
        package["versionInfo"] = version
    # The lock file allows one file for each platform: only a single digest says which file it was.
    if len(digests) == 1:
        package["checksums"] = [{"algorithm": "SHA256", "checksumValue": digests[0]}]
    return package


def provenance(origin: Origin, digests: Mapping[str, str], image: str) -> dict[str, Any]:
    """Return the in-toto statement of what these files (name → SHA-256) were made from, with SLSA's predicate.

    It is unsigned: the workflow signs its own. https://slsa.dev/spec/v1.0/provenance
    """
    source: dict[str, Any] = {"uri": f"git+{origin.repository}"}
    if origin.commit:
        source["digest"] = {"gitCommit": origin.commit}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{origin.repository}/blob/main/deploy/release/README.md",
                "externalParameters": {"version": origin.version, "repository": origin.repository, "image": image},
                "resolvedDependencies": [source],
            },
            "runDetails": {"builder": {"id": f"{origin.repository}/blob/main/Makefile"}},
        },
    }


def pretty_json(value: Any) -> str:
    """Return the value as JSON for people, ending in a line break."""
    return json.dumps(value, indent=2) + "\n"
