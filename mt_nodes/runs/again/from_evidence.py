# SPDX-License-Identifier: Apache-2.0
"""One pair of a live run once more: the input is gone, but the evidence of a violated pair holds its own instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.params import build
from mt_nodes.data.messages import Bundle
from mt_nodes.data.stack_topics import LEADING_ROLES
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.evidence import read_source
from mt_nodes.engine.ledger import baseline_of, find_followup, load_draws
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.runs.again.reproduce import Proof
from mt_nodes.stacks.stack import load_stack


def prove_from_evidence(finished: RecordedPair) -> Proof:
    """Make the follow-up of a violated pair again: the ledger's mutations and draws, on the evidence's source.

    Raises UsageError: nothing was kept that it could be made of; says why. InfrastructureError: evidence or ledger is
    damaged.
    """
    path = _evidence(finished)
    line = find_followup(finished.directory, finished.pair)
    mutations = _mutations(finished, line)
    source = read_source(path, finished.pair, _topics(finished))
    sha256, why = _derived_sha256(finished, line, mutations, source)
    was = finished.verdict.stamp_ns
    other = f"{path}: the source has the stamp {source.stamp_ns}, had {was} in the run: it was changed"
    notes = [other] if source.stamp_ns != was else []
    return Proof(finished.sha256, sha256, None, (*notes, *([why] if why else [])), drawn_anew=False)


def request_of_instant(finished: RecordedPair, transport: str = "") -> ReplayRequest:
    """Return the request of a replay of the one instant that evidence holds of a violated pair.

    ``transport``: another one than topics.
    Raises UsageError: what was kept is not all that the stack's answer depended on; says what to do instead.
    """
    request, path = finished.about["request"], _evidence(finished)
    _mutations(finished, find_followup(finished.directory, finished.pair))
    stack = load_stack(finished.located(request["stack"]), request.get("stack_settings"))
    where = f"{finished.directory}: pair '{finished.pair}'"
    record = "record its input (`ros2 bag record`), `mt replay` the bag, and shrink that run's pair"
    if stack.external:
        raise UsageError(
            f"{where}: stack '{stack.name}' is external, nothing of ours starts it, and where it runs something may be "
            f"driven by it; give it a file with a command or callable, {record}"
        )
    if not stack.stateless:
        raise UsageError(
            f"{where}: stack '{stack.name}' remembers, and of what it was given before nothing is kept; {record}"
        )
    return ReplayRequest(
        bags=(str(path.resolve()),),
        relations=(finished.relation(tuple(request["relations"])),),
        stack=finished.located(request["stack"]),
        stack_settings=request.get("stack_settings", {}),
        mode="twin" if request["mode"] == "shadow" else request["mode"],
        transport=transport or "ros",
        seed=request["seed"],
        faults=tuple(request["faults"]),
        qos=finished.located(request["qos"]),
        plugins=tuple(map(finished.located, request["plugins"])),
        only=str(finished.pair),
        recorded=str(finished.directory.resolve()),
        first_episode=finished.pair.episode,
        from_evidence=True,
    )


def _evidence(finished: RecordedPair) -> Path:
    """Return where the source of a pair is kept."""
    pair, outcome = finished.pair, finished.verdict.outcome
    reason = f"{finished.directory}: pair '{pair}' is of a run of `mt live`, whose input is gone"
    if pair.bundle is None:
        raise UsageError(f"{reason}; it stands for a whole sequence, of which only what both arms said is kept")
    if outcome is not Outcome.VIOLATED:
        raise UsageError(
            f"{reason}; it ended as {outcome.value}, and evidence is kept of violated pairs alone: pairs.csv lists them"
        )
    if not finished.evidence.is_file():
        raise UsageError(f"{reason}, and so is its evidence: expected {finished.evidence}")
    return finished.evidence


def _mutations(finished: RecordedPair, line: dict[str, Any]) -> list[Mutation]:
    """Return what the follow-up was made by, with the parameters of then."""
    where = f"{finished.directory}: pair '{finished.pair}'"
    if baseline_of(line) is not None:
        raise UsageError(f"{where}: the source arm was given a baseline, and evidence holds that in the source's place")
    mutations: list[Mutation] = []
    for row in line["mutations"]:
        cls = plugins.find("mutations", row["name"], where)
        mutations.append(build(cls, row["params"], f"{where}: {row['name']}"))
    if back := [row["name"] for row, m in zip(line["mutations"], mutations, strict=True) if m.needs_history]:
        raise UsageError(f"{where}: {back[0]} looks back at earlier instants, too, which evidence does not hold")
    return mutations


def _topics(finished: RecordedPair) -> list[str]:
    """Return the topics of the stack's sensors, the leading one first."""
    (roles,) = finished.about["topics"].values()
    lead = next(role for role in LEADING_ROLES if role in roles)
    return list(dict.fromkeys([*roles[lead], *(topic for topics in roles.values() for topic in topics)]))


def _derived_sha256(
    finished: RecordedPair, line: dict[str, Any], mutations: list[Mutation], source: Bundle
) -> tuple[str | None, str]:
    """Return the SHA-256 of the follow-up, None where none could be made, and why."""
    try:
        draws = load_draws(finished.directory, line)
        followup = MutationPipeline(mutations, 0, finished.pair.relation).rebuild(source, draws)
    except (LookupError, TypeError, ValueError, MtError) as error:
        return None, f"no follow-up from the recorded draws: {error}"
    return sha256_of_followup(followup), ""
