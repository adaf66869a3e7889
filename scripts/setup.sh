#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv with the pinned dependencies and this tree installed in place. Optional argument: extras, e.g. "test".
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/system_packages.sh
python="$(scripts/find_python.sh)"
wanted="$("$python" -c 'import sys; print(sys.version_info[:2], sys.base_prefix)')"
present="$(.venv/bin/python -c 'import sys; print(sys.version_info[:2], sys.base_prefix)' 2>/dev/null || true)"
if [[ "$wanted" != "$present" ]] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  echo "making .venv with $("$python" --version) ($python)"
  "$python" -m venv --clear .venv
fi

pip=(.venv/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt)
# For tests, what is imported compiles itself: of 16,000 files most are never imported, and they take most of a minute.
[[ "${1:-}" != test* ]] || pip+=(--no-compile)
echo "installing the pinned packages into .venv (the first time some minutes; 1.2 GB on disk)"
"${pip[@]}" setuptools wheel
# The pinned setuptools builds, not whatever is newest today.
"${pip[@]}" --no-build-isolation --editable ".${1:+[$1]}"
