#!/bin/sh
# install.sh SOURCE PREFIX: Trimtab and all it needs into PREFIX, every file of it by its hash. Needs Python and a compiler;
# what is in PREFIX needs Python alone, and holds neither pip nor anything else that installs.
set -eu
source=$(cd "$1" && pwd)
prefix=$2
image="$source/deploy/image"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_FIND_LINKS=
"${PYTHON:-python3}" -m venv "$work/tools"
pip="$work/tools/bin/python -m pip --quiet"
$pip install --require-hashes --no-deps --requirement "$image/tools.txt"
$pip wheel --require-hashes --no-deps --no-build-isolation --requirement "$image/requirements.txt" --wheel-dir "$work/wheels"
$pip wheel --no-deps --no-build-isolation --wheel-dir "$work/wheels" "$source"
"${PYTHON:-python3}" -m venv --without-pip "$prefix"
$pip --python "$prefix/bin/python" install --no-index --no-deps "$work"/wheels/*.whl
$pip --python "$prefix/bin/python" check
"${PYTHON:-python3}" "$image/prune.py" "$prefix"
