#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the first Python that the dependencies have wheels for (3.10 to 3.12); exits 1 when there is none.
# PYTHON=… chooses another. Each candidate is run, because a version manager's shim may exist without its version.
set -euo pipefail
for candidate in ${PYTHON:-python3 python3.12 python3.11 python3.10}; do
  if path="$("$candidate" -c 'import sys; assert (3, 10) <= sys.version_info < (3, 13); print(getattr(sys, "_base_executable", sys.executable))' 2>/dev/null)"; then
    echo "$path"
    exit 0
  fi
done
tried="${PYTHON:-python3, python3.12, python3.11, python3.10}"
echo "no Python 3.10, 3.11 or 3.12 here (tried $tried); Open3D has no wheels for others; install one, or: make PYTHON=/path/to/python3.12 …" >&2
exit 1
