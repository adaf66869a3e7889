# SPDX-License-Identifier: Apache-2.0
"""Makes a bundle of evidence: one directory, each of whose files is a subject of one signed statement."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mt_nodes
from mt_nodes.base.directories import staged_directory
from mt_nodes.base.dsse import SignedStatement, public_pem
from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.data.datasets.dataset_name import exists, is_dataset, located
from mt_nodes.engine.plan import PLAN_FILE
from mt_nodes.engine.run_record import read_record
from mt_nodes.report.safety_argument import argument_yaml, safety_argument
from mt_nodes.report.safety_argument_svg import argument_svg
from mt_nodes.report.safety_page import safety_page
from mt_nodes.runs.safety_case.assessment import PLAN_RUNS, RUNS, SENSITIVITY, WAIVERS, assess
from mt_nodes.runs.safety_case.preregistration import (
    COMMITMENT,
    RUNS_SUFFIX,
    Preregistration,
    now,
    sha256_of_bags,
    sha256_of_code,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

BUNDLE_TYPE = "urn:mt_nodes:evidence-bundle:v1"
ATTESTATION, KEY, ASSESSMENT = "attestation.json", "key.pub.pem", "assessment.json"
BAGS, WITNESS, REQUIREMENTS = "bags", "witness", "requirements"
#: Of a run: what is made of its journal, and is large; a bundle has its own page.
_LEFT_OUT = ("report.html", "pairs.csv", "pairs.parquet", "reproduced", "blamed")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class BundleParts:
    """What goes into a bundle.

    Attributes:
        plan: its file. runs: results directories, all that were begun by it. sensitivity: of runs with planted faults.
        requirements: the file of which the plan was made. waivers: file of accepted violations.
        witness: files that tell when the plan existed, such as tokens of a time stamp authority (RFC 3161).
        with_bags: whether the drives are copied into the bundle; else they are known by their SHA-256.
    """

    plan: Path
    runs: Sequence[Path]
    sensitivity: Sequence[Path] = ()
    requirements: Path | None = None
    waivers: Path | None = None
    witness: Sequence[Path] = ()
    with_bags: bool = False


def make_bundle(parts: BundleParts, out: Path, key: Ed25519PrivateKey, day: datetime.date) -> dict[str, Any]:
    """Write a bundle, and return what it comes to on a day.

    Raises UsageError: ``out`` is there already, or a part is missing or is none.
    """
    if out.exists():
        raise UsageError(f"{out}: is there already; expected a new directory")
    plan = Preregistration.load(parts.plan)
    if not plan.envelope.signed_by(key.public_key()):
        raise UsageError(f"{parts.plan}: is not signed by this key; expected the key that signed the plan")
    with staged_directory(out) as place:
        _copy_parts(parts, plan, place)
        (place / KEY).write_bytes(public_pem(key.public_key()))
        found = assess(place, day)
        for name, text in pages(found).items():
            (place / name).write_text(text, encoding="utf-8")
        about = {"schema": 1, "made": now(), "plan": plan.sha256, "stack": found["stack"], "drives": _drives(place)}
        about |= {"exit_code": found["exit_code"], "exit_why": found["exit_why"], "day": day.isoformat()}
        about |= {"code": {"version": mt_nodes.__version__, "sha256": sha256_of_code()}}
        statement = SignedStatement.of(BUNDLE_TYPE, about, digests(place)).signed(key)
        (place / ATTESTATION).write_text(statement.text, encoding="utf-8")
    return found


def pages(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the files that are made of what a bundle comes to, by name; equal results give equal bytes."""
    argument = safety_argument(found)
    return {
        ASSESSMENT: json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        "argument.yaml": argument_yaml(argument),
        "argument.svg": argument_svg(argument) + "\n",
        "index.html": safety_page(found) + "\n",
    }


def digests(bundle: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a bundle but the signed statement, by its path within.

    Raises UsageError: there is something that is neither a file nor a directory, such as a link.
    """
    found = {}
    for path in sorted(bundle.rglob("*")):
        name = path.relative_to(bundle).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path}: is neither a file nor a directory; a bundle has nothing else")
        if path.is_file() and name != ATTESTATION:
            found[name] = _sha256_of_file(path)
    return found


def _sha256_of_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _copy_parts(parts: BundleParts, plan: Preregistration, place: Path) -> None:
    (place / PLAN_FILE).write_text(plan.envelope.text, encoding="utf-8")
    listed = parts.plan.with_name(parts.plan.name + RUNS_SUFFIX)
    files = {PLAN_RUNS: listed if listed.is_file() else None, WAIVERS: parts.waivers}
    if parts.requirements is not None:
        files[f"{REQUIREMENTS}{parts.requirements.suffix}"] = parts.requirements
    files |= {f"{WITNESS}/{path.name}": path for path in parts.witness}
    for name, path in files.items():
        if path is not None:
            _copy_file(path, place / name)
    for folder, directories in ((RUNS, parts.runs), (SENSITIVITY, parts.sensitivity)):
        left_out = shutil.ignore_patterns(*_LEFT_OUT, *(("evidence",) if folder == SENSITIVITY else ()))
        for number, directory in enumerate(directories, start=1):
            read_record(directory)  # refuses what is no run
            shutil.copytree(directory, place / folder / str(number), ignore=left_out)
    if parts.requirements is not None:
        _refuse_other_requirements(parts.requirements, plan)
    if parts.with_bags:
        _copy_bags(place)


def _copy_file(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(path, target)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _refuse_other_requirements(path: Path, plan: Preregistration) -> None:
    known, got = plan.envelope.subjects, hashlib.sha256(path.read_bytes()).hexdigest()
    if got not in known.values():
        raise UsageError(f"{path}: is not the file of which the plan was made: {', '.join(known)}, by its SHA-256")


def _copy_bags(place: Path) -> None:
    """Copy the drives of the runs, each once, below the SHA-256 of its content."""
    for run in sorted((place / RUNS).iterdir()):
        record = read_record(run)
        committed = read_result(run / COMMITMENT, "expected a run of `mt replay --plan`")["drives"]
        for bag, sha256 in zip(record["request"]["bags"], committed, strict=True):
            source = located(bag, Path(record.get("directory", ".")))
            source = bag if exists(bag) else source
            if is_dataset(bag):
                raise UsageError(f"{bag}: a drive of a data set cannot be copied; leave --with-bags out")
            if not exists(source) or sha256_of_bags([source]) != [sha256]:
                raise UsageError(f"{source}: is not there, or not what the run played, by its SHA-256")
            target = place / BAGS / sha256 / Path(source).name
            if target.parent.exists():
                continue
            target.parent.mkdir(parents=True)
            (shutil.copytree if Path(source).is_dir() else shutil.copyfile)(source, target)


def _drives(place: Path) -> list[dict[str, Any]]:
    """Return each drive of the runs: name, SHA-256, and whether it is in the bundle."""
    rows = {}
    for run in sorted((place / RUNS).glob("*")):
        if not (run / COMMITMENT).is_file():
            continue
        bags, committed = read_record(run)["request"]["bags"], read_result(run / COMMITMENT)["drives"]
        for bag, sha256 in zip(bags, committed, strict=False):
            rows[sha256] = {"name": Path(bag).name, "sha256": sha256, "included": (place / BAGS / sha256).is_dir()}
    return list(rows.values())
