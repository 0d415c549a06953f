"""An image as an OCI layout: layers, configuration, manifest and index, each named by its digest.

https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.release.archives import compress, digest_of

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True)
class ImageSettings:
    """What an image has beside its files."""

    name: str
    """Repository and tag."""
    architecture: str
    """In Go's words: amd64, arm64."""
    epoch_seconds: int
    runs: Mapping[str, Any]
    """User, entry point, environment and labels, in the words of the OCI configuration."""


def write_layout(folder: Path, layers: Sequence[bytes], settings: ImageSettings) -> str:
    """Write the layout of an image with these layers (tar archives, the lowest first), and return the digest of its
    manifest, by which the image is deployed."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def write_blob(content: bytes, media_type: str) -> dict[str, Any]:
        digest = digest_of(content)
        (blobs / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    created = datetime.datetime.fromtimestamp(settings.epoch_seconds, datetime.UTC).isoformat().replace("+00:00", "Z")
    config = {
        "created": created,
        "architecture": settings.architecture,
        "os": "linux",
        "config": settings.runs,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest_of(layer)}" for layer in layers]},
        "history": [{"created": created, "created_by": "make release"} for _ in layers],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": write_blob(json_bytes(config), _CONFIG),
        "layers": [write_blob(compress(layer), _LAYER) for layer in layers],
    }
    entry = write_blob(json_bytes(manifest), _MANIFEST)
    entry["platform"] = {"architecture": settings.architecture, "os": "linux"}
    entry["annotations"] = {"org.opencontainers.image.ref.name": settings.name}
    (folder / "oci-layout").write_bytes(json_bytes({"imageLayoutVersion": "1.0.0"}))
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    (folder / "index.json").write_bytes(json_bytes(index))
    return str(entry["digest"])


def json_bytes(value: Any) -> bytes:
    """Return the value as JSON with sorted keys, one line."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
