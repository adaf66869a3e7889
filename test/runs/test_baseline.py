# SPDX-License-Identifier: Apache-2.0
"""Relations that compare more of a change with less of it: the source arm is given a follow-up, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_arms import BUNDLES, FakeArm, FakeRecorder, Sent, answered, pairs_owed, relation, run, seen, silent, suite
from made_runs import carry_out, in_process, sparse_drive
from mutations_for_tests import Echo, Nothing, Shuffle
from rosbags.highlevel import AnyReader

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import Ledger, baseline_of, draws_name, find_followup
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.realtime import Realtime
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.lidar.scene_moves import CloudRotated
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation, refuse_baseline
from mt_nodes.runs.replay.execute import Run

LESS, MORE = Shuffle(drop=1, every_third=False), Shuffle(drop=3, every_third=False)
PLAIN, COMPARED = relation("plain", LESS), relation("compared", MORE, baseline=(LESS,))
MODES = [("twin", True), ("twin", False), ("alternate", True), ("two_pass", True), ("two_pass", False)]


def points(sent: Sent) -> int:
    return len(sent.bundle.cloud())


def margins(kept: FakeRecorder, name: str) -> set[float | None]:
    return {v.judgement.margin for pair, v in kept.lines.items() if f"/{name}/" in pair}


@pytest.mark.parametrize(("mode", "stateless"), MODES)
def test_it_is_judged_by_the_answer_to_the_milder_one_and_the_others_by_that_to_the_source(
    mode: str, stateless: bool
) -> None:
    # The arms answer with as many obstacles as there are points.
    arms = FakeArm("source"), FakeArm("followup") if mode == "twin" else None
    kept = run(suite(COMPARED, PLAIN), *arms, mode=mode, stateless=stateless)
    assert set(kept.lines) == pairs_owed(("compared", "plain"), len(BUNDLES))
    assert margins(kept, "compared") == {-2.0} and margins(kept, "plain") == {-1.0}
    assert margins(kept, "identity") == margins(kept, "points_permuted") == {0.0}
    for case in filter(None, kept.cases):
        assert (case.baseline is not None) == (case.offer.relation is COMPARED)
        assert len(case.given.cloud()) == len(case.source.cloud()) - (case.offer.relation is COMPARED)


def test_both_are_drawn_alike_whatever_the_order_and_another_draw_is_another() -> None:
    made = MutationPipeline(COMPARED.mutate, 7, "compared", COMPARED.baseline).derive(BUNDLES[1])
    assert made.baseline is not None
    more, less = made.followup.first.cloud().raw, made.baseline.followup.first.cloud().raw
    assert len(less) == len(more) + 2 and np.array_equal(less[: len(more)], more)
    alone = MutationPipeline(COMPARED.baseline, 7, "compared").derive(BUNDLES[1])
    assert alone.followup.first.cloud().raw.tobytes() == less.tobytes()
    other = MutationPipeline(COMPARED.mutate, 7, "compared", COMPARED.baseline).derive(BUNDLES[1], 1)
    assert other.baseline is not None and other.baseline.followup.first.cloud().raw.tobytes() != less.tobytes()


def test_only_what_was_changed_goes_to_the_source_arm_as_changed() -> None:
    source, followup = FakeArm("source"), FakeArm("followup")
    run(suite(PLAIN, COMPARED), source, followup)
    sizes = [(points(s), bool(s.changed)) for s in source.sent[:2]]
    size = len(BUNDLES[0].cloud())
    assert sizes == [(size, False), (size - 1, True)] and len(source.sent) == 2 * len(BUNDLES)
    assert len(followup.sent) == 4 * len(BUNDLES)


@pytest.mark.parametrize("shared", [False, True])
def test_after_a_milder_one_without_an_answer_nothing_of_the_bundle_is_sent(shared: bool) -> None:
    size = len(BUNDLES[0].cloud())
    quiet = FakeArm("source", lambda s: silent() if points(s) == size - 1 else answered(seen(points(s))))
    followup = None if shared else FakeArm("followup")
    kept = run(suite(COMPARED, PLAIN), quiet, followup, mode="alternate" if shared else "twin")
    assert set(kept.lines) == pairs_owed(("compared", "plain"), len(BUNDLES))
    assert {v.outcome.value for p, v in kept.lines.items() if "/compared/" in p} == {"UNPAIRED_SOURCE"}
    plain = [v for p, v in kept.lines.items() if "/plain/" in p]
    assert {v.outcome.value for v in plain} == {"SKIPPED"} and "may still come" in plain[0].judgement.reason
    assert not any(points(s) == size - 3 for s in (followup or quiet).sent)


def test_a_source_without_an_answer_is_given_no_milder_one() -> None:
    source = FakeArm("source", lambda s: silent())
    kept = run(suite(COMPARED), source, FakeArm("followup"))
    assert len(source.sent) == len(BUNDLES)
    assert {v.outcome.value for p, v in kept.lines.items() if "/compared/" in p} == {"SKIPPED"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("baseline", "outcome", "reason"),
    [
        (Shuffle(drop=1), "NOT_APPLICABLE", "a third bundle"),
        (Shuffle(drop=1, every_third=False, lie=True), "INVALID", "baseline: shuffle: 1 points lost"),
        (Echo(), "INVALID", "baseline: 2 bundles, expected one"),
        (Nothing(), "INVALID", "baseline: 0 bundles, expected one"),
        (CloudRotated(), "INVALID", "a scene that is moved"),
    ],
)
def test_a_baseline_that_cannot_stand_for_the_source(
    mode: tuple[str, bool], baseline: Mutation, outcome: str, reason: str
) -> None:
    made = relation("bad", MORE, baseline=(baseline,))
    arms = FakeArm("source"), FakeArm("followup") if mode[0] == "twin" else None
    kept = run(suite(made), *arms, mode=mode[0], stateless=mode[1])
    assert set(kept.lines) == pairs_owed(["bad"], len(BUNDLES))
    third = kept.lines["0/2/bad/0"]
    assert third.outcome.value == outcome and reason in third.judgement.reason
    assert outcome == "NOT_APPLICABLE" or not any("/bad/" in pair for pair, _ in kept.followups)


def test_in_real_time_too() -> None:
    source, followup, kept = FakeArm("source"), FakeArm("followup"), FakeRecorder()
    loop = Realtime(
        PlaySettings(
            suite(COMPARED, PLAIN),
            7,
            rate=100.0,
            stateless=True,
            publishes_when_empty=False,
        ),
        kept,  # type: ignore[arg-type]
    )
    loop.run([lambda: iter(BUNDLES)], source, followup)
    assert margins(kept, "compared") == {-2.0} and margins(kept, "plain") == {-1.0}
    assert {case.baseline is not None for case in kept.cases if case and case.offer.relation is COMPARED} == {True}


# A whole run in this process, with a stack that sees obstacles come with returns that go.
ASKED: dict[str, Any] = {"faults": ("sample_seeded_by_cloud",), "draws": 4}


def written(path: Path, **changes: Any) -> str:
    data = {
        "id": "less_range",
        "kind": "expected",
        "because": "x",
        "baseline": [{"points_dropped": {"share": 0.1}}, {"range_reduced": {"max_range_m": 60}}],
        "mutate": [{"points_dropped": {"share": 0.3}}, {"range_reduced": {"max_range_m": 60}}],
        "check": {"monotone": {"region": "front_40m"}},
    }
    path.write_text(json.dumps({**data, **changes}))
    return str(path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("baseline")
    bag = sparse_drive(made / "drive", 3, columns=450)
    return in_process(bag, made / "run", written(made / "less.yaml"), **ASKED).out


def verdicts(directory: Path) -> dict[str, dict[str, Any]]:
    return {line["pair"]: line for line in read_journal(directory / "result.jsonl") if line["type"] == "verdict"}


def a_violated_pair(directory: Path) -> str:
    return next(pair for pair, line in verdicts(directory).items() if line["outcome"] == "VIOLATED")


def test_the_ledger_and_the_evidence_hold_both(done: Path) -> None:
    pair = Pair.parse(a_violated_pair(done))
    line = find_followup(done, pair)
    milder = baseline_of(line)
    assert milder is not None and milder["sha256"] != line["sha256"]
    assert [m["params"] for m in milder["mutations"]] != [m["params"] for m in line["mutations"]]
    assert {p.name for p in (done / "draws").iterdir()} >= {draws_name(pair), draws_name(pair, "baseline.")}
    assert baseline_of(find_followup(done, Pair(0, 0, "identity"))) is None
    (mcap,) = (done / "evidence").glob(f"{str(pair).replace('/', '_')}.mcap")
    with AnyReader([mcap]) as reader:
        clouds = [c for c in reader.connections if c.topic.endswith("/points")]
        size = {c.topic: reader.deserialize(raw, c.msgtype).width for c, _, raw in reader.messages(clouds)}
    of_source = len(source_of(Run.load(done)).cloud())
    milder_size, size_of_followup = size["/mt/source/sensing/lidar/points"], size["/mt/followup/sensing/lidar/points"]
    assert of_source > 1.05 * milder_size > 1.25 * size_of_followup > 0


def test_it_comes_again(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = a_violated_pair(done)
    assert main(["reproduce", str(done), pair, "--json", "--out", str(tmp_path / "out")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["same_followup"] and told["differs"] == []
    both = told["baseline"]
    assert both["expected"] == both["from_draws"] == both["from_seed"] != told["expected"]
    assert verdicts(tmp_path / "out") == {pair: verdicts(done)[pair]}
    assert main(["reproduce", str(done), pair, "--out", str(tmp_path / "shown")]) == 0
    assert capsys.readouterr().out.count(both["expected"]) == 3


def test_another_baseline_is_not_the_same(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = done.parent / "less.yaml"
    written(file, baseline=[{"points_dropped": {"share": 0.2}}, {"range_reduced": {"max_range_m": 60}}])
    try:
        assert main(["reproduce", str(done), a_violated_pair(done)]) == 1
    finally:
        written(file)
    told = capsys.readouterr()
    assert "DIFFERS" in told.out and "baseline" in told.err


def test_a_resumed_run_makes_the_same_and_refuses_another(done: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    bag, file = str(done.parent / "drive"), str(done.parent / "less.yaml")
    first = in_process(Path(bag), out, file, **ASKED)
    lines = (out / "result.jsonl").read_text().splitlines(keepends=True)
    (out / "result.jsonl").write_text("".join(lines[:6]))
    ledger = (out / "ledger.jsonl").read_bytes()
    carry_out(Run.resume(out))
    assert verdicts(out) == verdicts(done) and (out / "ledger.jsonl").read_bytes() == ledger
    made = MutationPipeline(first.suite.relations[0].mutate, 0, "less_range").derive(source_of(first))
    with Ledger(out) as book, pytest.raises(InfrastructureError, match="has SHA-256"):
        # The same follow-up, but compared with something else.
        milder = (first.suite.relations[0].mutate, made.draws, made.followup)
        book.followup(Pair(0, 0, "less_range"), first.suite.relations[0].mutate, made.draws, made.followup, milder)


def source_of(run_: Run) -> Bundle:
    return next(iter(run_.episodes[0]()))


def test_control_and_sham_have_none_and_nodes_alone_refuse_it(tmp_path: Path) -> None:
    given = load_relation(written(tmp_path / "mine.yaml"))
    assert [type(m).__name__ for m in given.baseline] == ["PointsDropped", "RangeReduced"]
    assert load_relation(written(tmp_path / "again.yaml", **given.as_plain())).baseline == given.baseline
    assert "baseline" not in PLAIN.as_plain()
    with pytest.raises(UsageError, match="baseline: a control has none"):
        load_relation(written(tmp_path / "control.yaml", mutate=["identity"]))
    with pytest.raises(UsageError, match=r"baseline\.fogg|no mutation 'fogg'"):
        load_relation(written(tmp_path / "fogg.yaml", baseline=[{"fogg": {}}]))
    with pytest.raises(UsageError, match=r"mutator: relation 'less_range' has a baseline.*mt replay"):
        refuse_baseline(given, "mutator")
    refuse_baseline(load_relation("noise_outside_roi_10"), "mutator")
