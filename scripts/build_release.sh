#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the sdist and, from it, the wheel into dist/; checks both; installs the wheel into an empty environment outside
# of this tree and runs the demo there. Needs what `scripts/setup.sh` needs, and some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

python="$(scripts/find_python.sh)"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/tools"
"$place/tools/bin/pip" install -qq --disable-pip-version-check build twine
rm -rf dist
"$place/tools/bin/python" -m build --quiet --outdir dist .
"$place/tools/bin/twine" check --strict dist/*

"$python" -m venv "$place/empty"
"$place/empty/bin/pip" install -qq --disable-pip-version-check --constraint constraints.txt dist/*.whl
cd "$place"
for node in replayer mutator monitor; do
  "$place/empty/bin/$node" --help >/dev/null
done
"$place/empty/bin/mt" demo --out "$place/demo"
echo "dist/ is ready:"
ls "$OLDPWD/dist"
