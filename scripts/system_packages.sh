#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sees to the system libraries that the Python wheels do not bring, and to a Python with venv.
# As root on Debian or Ubuntu it installs what is missing; otherwise it says what to type and exits 1. It never calls sudo.
set -euo pipefail
PATH="$PATH:/usr/sbin:/sbin" # where Debian keeps ldconfig, out of an ordinary user's PATH

# what a program loads, and the Debian package that has it
libraries=(
  libusb-1.0.so.0:libusb-1.0-0
  libGL.so.1:libgl1
  libEGL.so.1:libegl1
  libgomp.so.1:libgomp1
  libX11.so.6:libx11-6
)

missing=()
known="$(ldconfig -p)"
for entry in "${libraries[@]}"; do
  [[ "$known" == *"${entry%%:*} "* ]] || missing+=("${entry##*:}")
done
# A distribution's Python may come without venv; one that was built from source has it.
python="$("$(dirname "$0")/find_python.sh" 2>/dev/null || true)"
if [[ -z "$python" ]]; then
  missing+=(python3 python3-venv)
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  missing+=("$("$python" -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}-venv")')")
fi
[[ ${#missing[@]} -gt 0 ]] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "missing: ${missing[*]} (names of Debian packages); install what your distribution calls them, then run make again" >&2
  exit 1
fi
if [[ $EUID -ne 0 ]]; then
  echo "missing system packages; type this, then run make again:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
