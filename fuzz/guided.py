# SPDX-License-Identifier: Apache-2.0
"""Fuzzing guided by coverage, with ``atheris``: ``python -m fuzz.guided TARGET RUNS SEED FOUND``, one process a target.

The first byte of an input chooses the kind, the rest is the case. It starts from a sound case of every kind and from
the corpus.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["mt_nodes", "rosbags", "yaml"]):
    from fuzz import files, messages

from fuzz import invariant
from fuzz.__main__ import ROOT, keep
from fuzz.cases import Case, Target

TARGETS = {target.name: target for target in (files.TARGET, messages.TARGET)}
LARGEST_BYTES = 4096


def main() -> None:
    """Run libFuzzer, which ends the process."""
    name, runs, seed, found = sys.argv[1:]
    target = TARGETS[name]

    def one(data: bytes) -> None:
        if not data:
            return
        case = Case(target.kinds[data[0] % len(target.kinds)], data[1:])
        try:
            invariant.hold(target, case)
        except Exception:
            print(f"FAILED; kept in {keep(target.name, case, Path(found))}")
            raise

    with tempfile.TemporaryDirectory(prefix="mt_fuzz_") as place:
        _seeds(target, Path(place))
        flags = [f"-runs={runs}", f"-seed={int(seed) + 1}", f"-max_len={LARGEST_BYTES}", "-rss_limit_mb=4096"]
        atheris.Setup([sys.argv[0], *flags, f"-artifact_prefix={place}/", place], one)
        atheris.Fuzz()


def _seeds(target: Target, place: Path) -> None:
    for number, kind in enumerate(target.kinds):
        known = sorted((ROOT / "test" / "corpus" / target.name / kind).glob("*"))
        for i, data in enumerate((target.sound(kind), *(path.read_bytes() for path in known))):
            (place / f"{kind}_{i}").write_bytes(bytes([number]) + data)


if __name__ == "__main__":
    main()
