# SPDX-License-Identifier: Apache-2.0
"""The plan of a case for safety, signed before its data are seen: relations, sample sizes, seed, stack, drives.

A run of `mt replay --plan` takes all of its settings from the plan and commits to it: the first line of its journal and
``commitment.json`` hold the SHA-256 of the plan's payload, before the first frame is played. The seed of all draws is a
digest of the rest of the plan, so that none can be chosen by what it gives.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import mt_nodes
from mt_nodes.base import resources
from mt_nodes.base.directories import write_whole
from mt_nodes.base.dsse import SignedStatement
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import LineFile, jsonable, read_lines, read_result, write_result
from mt_nodes.base.params import plain
from mt_nodes.base.record_shapes import NUMBER, Shape, expect_shape
from mt_nodes.base.stats.intervals import ALPHA, wilson_interval
from mt_nodes.engine.plan import PLAN_FILE, ReplayRequest
from mt_nodes.relations.relation import Relation
from mt_nodes.runs.campaign.inputs import drives
from mt_nodes.runs.safety_case.requirements import SafetyRequirement
from mt_nodes.stacks.stack import Stack

PLAN_TYPE = "urn:mt_nodes:evidence-plan:v1"
#: In the results directory of a run: what it commits to.
COMMITMENT = "commitment.json"
#: Beside a plan: each run that was begun by it.
RUNS_SUFFIX = ".runs.jsonl"
#: Parts of a request that a plan leaves open: they change neither a follow-up nor a verdict, or are given by content.
FREE = ("bags", "waivers", "report", "most_evidence", "plan", "plugins")
_SHAPE: Shape = {
    **{"made": str, "seed": int, "alpha": NUMBER, "pairs": (int, type(None)), "code": {"version": str, "sha256": str}},
    "requirements": [{"id": str, "text": str, "hazard": str, "relations": [str], "max_rate": NUMBER, "frames": int}],
    **{"relations": [{"id": str, "kind": str, "*": object}], "request": {"relations": [str], "*": object}},
    **{"stack": {"name": str, "sha256": str, "version": str}, "drives": {"count": int, "sha256": [str]}},
}
#: So many frames are more than anybody plays.
_MOST_FRAMES = 10_000_000


@dataclass(frozen=True)
class Preregistration:
    """A signed plan. ``content``: what it says, see :data:`_SHAPE`."""

    envelope: SignedStatement
    content: Mapping[str, Any]

    @classmethod
    def load(cls, path: Path) -> Preregistration:
        """Read a plan; its signatures are not checked. Raises UsageError: it is none, or its seed is not its own."""
        envelope = SignedStatement.load(path)
        content = envelope.predicate(PLAN_TYPE, str(path))
        try:
            expect_shape(content, _SHAPE, str(path))
        except InfrastructureError as error:
            raise UsageError(str(error)) from error
        if content["seed"] != seed_of(content):
            raise UsageError(
                f"{path}: got the seed {content['seed']}, expected {seed_of(content)}, that of its content"
            )
        return cls(envelope, content)

    @property
    def sha256(self) -> str:
        """What runs commit to."""
        return self.envelope.sha256

    def request(self, given: ReplayRequest) -> ReplayRequest:
        """Return the request of a run by this plan; ``given``: one with what a plan leaves open."""
        free = {name: getattr(given, name) for name in FREE}
        whole = ReplayRequest.from_plain({**self.content["request"], "bags": [], "seed": self.content["seed"]})
        return dataclasses.replace(whole, **free)

    def differences(
        self, request: Mapping[str, Any], relations: Sequence[Mapping[str, Any]], stack_sha256: str, code_sha256: str
    ) -> list[str]:
        """Return what of a run is not as planned, for people; ``request``: in its plain form."""
        planned = {**self.content["request"], "seed": self.content["seed"]}
        asked = {key: value for key, value in json_of(request).items() if key not in FREE}
        rows = [(key, planned.get(key), asked.get(key)) for key in sorted({*planned, *asked})]
        rows += [("stack's definition", self.content["stack"]["sha256"], stack_sha256)]
        rows += [("code of mt_nodes and plugins", self.content["code"]["sha256"], code_sha256)]
        wrong = [
            f"{what}: {_short(was)} in the plan, {_short(now)} in the run" for what, was, now in rows if was != now
        ]
        known, run = ({r["id"]: r for r in rows} for rows in (self.content["relations"], json_of(relations)))
        for name in {**known, **run}:
            if known.get(name) != run.get(name):
                how = "defined otherwise than planned" if name in run else "left out by the run"
                wrong.append(f"relation {name}: {how if name in known else 'not in the plan'}")
        return wrong

    def wrong_drives(self, sha256: Sequence[str]) -> list[str]:
        """Return what of a run's drives, by the SHA-256 of each, is not as planned."""
        planned = self.content["drives"]
        if not planned["sha256"]:
            played = len(set(sha256))
            if played == planned["count"] == len(sha256):
                return []
            return [f"{len(sha256)} drives played, {played} of them different; the plan says {planned['count']}"]
        names = {True: "is not in the plan", False: "of the plan was not played"}
        changed = set(planned["sha256"]) ^ set(sha256)
        wrong = [f"the drive with SHA-256 {one[:12]}… {names[one in sha256]}" for one in sorted(changed)]
        return wrong or ([] if len(sha256) == planned["count"] else ["a drive was played twice"])


def seed_of(content: Mapping[str, Any]) -> int:
    """Return the seed of a plan: 31 bits of the SHA-256 of all else that it says."""
    rest = {key: value for key, value in content.items() if key != "seed"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) >> 1


def frames_needed(max_rate: float) -> int:
    """Return how many frames without a violation bring the upper end of the 95 % interval to a rate (Wilson)."""
    low, high = 0, 1
    while _upper(high) > max_rate:
        low, high = high, 2 * high
        if high > _MOST_FRAMES:
            raise UsageError(f"max_rate {max_rate:g}: needs more than {_MOST_FRAMES:,} frames; expected a larger rate")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _upper(middle) <= max_rate else (middle, high)
    return high


def _frames(requirement: SafetyRequirement) -> int:
    least = frames_needed(requirement.max_rate)
    if requirement.frames is not None and requirement.frames < least:
        got = f"got {requirement.frames} frames, expected at least {least} for a rate of {requirement.max_rate:g}"
        raise UsageError(f"requirement {requirement.id}: {got}")
    return requirement.frames or least


def _upper(frames: int) -> float:
    return (wilson_interval(0, frames) or (0.0, 1.0))[1]


def plan_content(
    requirements: Sequence[SafetyRequirement],
    request: ReplayRequest,
    relations: Sequence[Mapping[str, Any]],
    stack: Stack,
    drives_planned: Mapping[str, Any],
    *,
    stack_version: str = "",
    pairs: int | None = None,
) -> dict[str, Any]:
    """Return what a plan says; its seed last.

    ``relations``: all that are offered, control and sham included, as they are with the stack. ``pairs``: number of
    verdicts, where the drives are there already.
    """
    asked = {key: value for key, value in json_of(request.as_plain()).items() if key not in (*FREE, "seed")}
    content: dict[str, Any] = {
        "schema": 1,
        "made": now(),
        "requirements": [{**json_of(r.as_plain()), "frames": _frames(r)} for r in requirements],
        "relations": json_of(relations),
        "request": asked,
        "stack": {"name": stack.name, "sha256": sha256_of_stack(stack), "version": stack_version},
        "drives": dict(drives_planned),
        "pairs": pairs,
        "alpha": ALPHA,
        "code": {"version": mt_nodes.__version__, "sha256": sha256_of_code(request.plugins)},
    }
    return {**content, "seed": seed_of(content)}


def refuse_other_run(request: ReplayRequest, relations: Sequence[Relation], stack: Stack) -> None:
    """Refuse a run that is not the one of its plan. Raises UsageError: saying how it differs."""
    plan = Preregistration.load(Path(request.plan))
    code, offered = sha256_of_code(request.plugins), [relation.as_plain() for relation in relations]
    wrong = plan.differences(request.as_plain(), offered, sha256_of_stack(stack), code)
    if wrong := [*wrong, *plan.wrong_drives(sha256_of_bags(request.bags))]:
        raise UsageError(f"--plan {request.plan}: this run is not the planned one: {'; '.join(wrong)}")


def commit(out: Path, request: ReplayRequest) -> None:
    """Write what a run commits to into its results directory, and the run into the list beside its plan.

    Raises InfrastructureError: it cannot be written.
    """
    plan_file = Path(request.plan)
    plan = Preregistration.load(plan_file)
    runs = plan_file.with_name(plan_file.name + RUNS_SUFFIX)
    number = 1 + (sum(1 for _ in read_lines(runs)) if runs.is_file() else 0)
    started = now()
    listed = LineFile(runs)
    try:
        listed.append({"type": "run", "number": number, "plan": plan.sha256, "started": started, "out": out.name})
    finally:
        listed.close()
    write_whole(out / PLAN_FILE, plan.envelope.text)
    content = {"plan": plan.sha256, "number": number, "started": started, "drives": sha256_of_bags(request.bags)}
    write_result(out / COMMITMENT, {"schema": 1, **content, "code": sha256_of_code(request.plugins)})


def refuse_changed(out: Path, request: ReplayRequest) -> None:
    """Refuse to go on with a run whose code or drives are not those that it committed to. Raises UsageError."""
    committed = read_result(out / COMMITMENT, "expected a run of `mt replay --plan`")
    now_is = {"code": sha256_of_code(request.plugins), "drives": sha256_of_bags(request.bags)}
    if changed := [name for name, sha256 in now_is.items() if committed[name] != sha256]:
        raise UsageError(f"{out}: cannot be resumed by its plan, changed since it began: {' and '.join(changed)}")


def sha256_of_bags(bags: Sequence[str]) -> list[str]:
    """Return the SHA-256 of the content of each bag, read now. Raises MtError: one is not there."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for bag in bags:
            parts = [drive.sha256 for drive in drives([bag], Path(folder) / "hashes.sqlite")]
            found.append(parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest())
    return found


def sha256_of_stack(stack: Stack | Mapping[str, Any]) -> str:
    """Return the SHA-256 of a stack's definition, or its plain form, with its settings, faults planted."""
    return hashlib.sha256(json.dumps(json_of(plain(stack)), sort_keys=True).encode()).hexdigest()


def sha256_of_code(plugin_dirs: Sequence[str] = ()) -> str:
    """Return the SHA-256 of this package, of its config and of plugins: of one line ``path SHA-256`` for each file."""
    return _sha256_of_trees(tuple(str(path) for path in plugin_dirs))


@cache
def _sha256_of_trees(plugin_dirs: tuple[str, ...]) -> str:
    trees = (Path(mt_nodes.__file__).parent, resources.config_dir(), *map(Path, plugin_dirs))
    lines = []
    for number, tree in enumerate(trees):
        for path in sorted(p for p in tree.rglob("*") if p.is_file() and p.suffix != ".pyc" and p.name[0] != "."):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{number}/{path.relative_to(tree).as_posix()} {digest}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def json_of(value: Any) -> Any:
    """Return what a value is after a way through a file."""
    return json.loads(json.dumps(jsonable(value)))


def now() -> str:
    """Return this machine's time: a claim, no proof."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"
