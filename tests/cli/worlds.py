"""Small files for the verbs to read."""

import itertools
from pathlib import Path

_count = itertools.count()


def write(folder: Path, content: str) -> Path:
    """A file of its own with this content."""
    path = folder / f"file-{next(_count)}.yaml"
    path.write_text(content)
    return path


DEPLOYMENT = """\
# the shop's front door
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 3
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: app  # listens on 8080
          image: registry.example.com/web:1
          resources:
            requests: {cpu: 1, memory: 1Gi}
            limits: {cpu: 2}
"""

LIMIT_RANGE = """\
apiVersion: v1
kind: LimitRange
metadata: {name: guard, namespace: shop}
spec:
  limits: [{type: Container, default: {cpu: "2"}}]
"""

POLICY = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: no-cpu-limit}
spec:
  actions:
    limits: {cpu: remove}
"""
