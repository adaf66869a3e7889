# SPDX-License-Identifier: Apache-2.0
"""``python -m fuzz``: draw cases of every target and hold each to the invariant; exit 1 when one breaks it.

Of each distinct failure the smallest case is written to ``--found`` with the layout of ``test/corpus``: once mended,
it goes there. With ``atheris`` installed, messages and files are fuzzed once more, guided by coverage.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import math
import os
import resource
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz import invariant
from fuzz.cases import Case, Target

TARGETS = ("clouds", "images", "messages", "bags", "files", "inputs", "results")
GUIDED = ("messages", "files")
_MOST_TEXT = 1000
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Fuzz what is asked for."""
    args = _arguments()
    warnings.simplefilter("ignore")  # of numbers out of range: what matters is what comes of them
    failures = 0
    for name in args.only:
        target = importlib.import_module(f"fuzz.{name}").TARGET
        failures += _fuzz(target, args.runs, args.seed, args.found, 60.0 * args.minutes)
    if importlib.util.find_spec("atheris") is None:
        print("not guided by coverage: pip install atheris (optional, Linux, Python 3.11 or later) for that part")
        return 1 if failures else 0
    for name in (n for n in args.only if n in GUIDED):
        command = [sys.executable, "-m", "fuzz.guided", name, str(args.runs), str(args.seed), str(args.found)]
        failures += subprocess.run(command, check=False).returncode != 0
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz what mt_nodes reads.")
    parser.add_argument("--runs", type=int, default=10_000, metavar="N", help="cases for each target")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--minutes", type=float, default=math.inf, help="for each target")
    parser.add_argument("--only", type=lambda text: text.split(","), default=TARGETS, metavar="TARGET,…")
    parser.add_argument("--found", type=Path, default=ROOT / "build" / "fuzz", metavar="DIR")
    args = parser.parse_args()
    if unknown := set(args.only) - set(TARGETS):
        parser.error(f"--only: got {', '.join(sorted(unknown))}, expected some of {','.join(TARGETS)}")
    return args


def _fuzz(target: Target, runs: int, number: int, found: Path, most_s: float) -> int:
    """Draw ``runs`` cases, or those of so many seconds; print what came of them; return how many failures differ."""
    held: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    failed: dict[str, tuple[Case, str]] = {}
    unhurried = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))

    @seed(number)
    @settings(unhurried, max_examples=runs, phases=(Phase.generate,))
    @given(target.cases())
    def one(case: Case) -> None:
        if time.monotonic() - began > most_s:
            return
        # A failure does not end the drawing: it would be the only one of many that anybody hears of.
        where, text = _failure(target, case, ends)
        if not where:
            held[case.kind] += 1
        elif where not in failed or len(case.data) < len(failed[where][0].data):
            failed[where] = case, text

    invariant.hold(target, Case(target.kinds[0], target.sound(target.kinds[0])))  # imports what is imported late
    found.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with _native_to(found / "stderr.log"), invariant.little_memory():
        one()
    took_s = time.monotonic() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{target.name}: {held.total()} cases held in {took_s:.0f} s, peak {peak_mb:.0f} MB")
    for counts in (held, ends):
        print("  " + ", ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    for where, (case, text) in failed.items():
        print(f"  FAILED {where}\n    {text[:_MOST_TEXT]}\n    kept in {keep(target.name, case, found)}")
    if not held and not failed:
        print("  FAILED no case was tried: give it more time, or more cases")
    sys.stdout.flush()
    return len(failed) or int(not held)


def _failure(target: Target, case: Case, ends: Counter[str]) -> tuple[str, str]:
    """Hold a case to the invariant and count what came of it; return what broke it and where, and the whole error.

    Both are empty when nothing did.
    """
    try:
        ends[invariant.hold(target, case)] += 1
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return _origin(error), str(error)
    return "", ""


@contextlib.contextmanager
def _native_to(path: Path) -> Iterator[None]:
    """Send what native code writes to standard error to a file: a line for every message that it cannot read."""
    before = os.dup(2)
    with path.open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _origin(error: Exception) -> str:
    """Say what an error is and where it comes from: the innermost line of ours that found it."""
    frames = traceback.extract_tb((error.__context__ or error).__traceback__)
    folders = str(ROOT / "mt_nodes"), str(ROOT / "fuzz")
    ours = [f for f in frames if f.filename.startswith(folders) and f.name != "require"] or frames
    text = str(error).partition(":")[0][:100]  # what follows is of the case
    return f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}: {text}"


def keep(target: str, case: Case, found: Path) -> Path:
    """Write a case where the corpus would have it."""
    path = found / target / case.kind / hashlib.sha256(case.data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case.data)
    return path


if __name__ == "__main__":
    sys.exit(main())
