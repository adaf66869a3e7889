# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_arms import BUNDLES, FakeArm, FakeRecorder, Sent, answered, pairs_owed, relation, run, seen, silent, suite
from hypothesis import given
from hypothesis import strategies as st
from mutations_for_tests import Nothing, Shuffle
from recordings import drive, write_bag

from mt_nodes.base.errors import InfrastructureError, IsolationError
from mt_nodes.base.jsonl import read_result
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.verdict import Verdict
from mt_nodes.engine.arm import start
from mt_nodes.engine.judging import Answer
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.silence import HANGS_AFTER
from mt_nodes.runs.replay import execute

A, B = relation("a"), relation("b", Shuffle(drop=1, every_third=False))


def one(sent: Sent) -> Answer:
    return answered(seen(1))


def as_sent(rows: Sequence[Sent]) -> list[tuple[int, bytes]]:
    return [(s.bundle.index, b"".join(encode_message(m) for m in s.bundle.messages)) for s in rows]


MODES = [("twin", True), ("twin", False), ("alternate", True), ("two_pass", True), ("two_pass", False)]


@pytest.mark.parametrize(("mode", "stateless"), MODES)
def test_every_pair_offered_ends_exactly_once_and_all_modes_agree(mode: str, stateless: bool) -> None:
    arms = FakeArm("source", one), FakeArm("followup", one) if mode == "twin" else None
    kept = run(suite(A, B), *arms, mode=mode, stateless=stateless)
    assert set(kept.lines) == pairs_owed("ab", len(BUNDLES))
    assert set(kept.outcomes.values()) == {"HOLDS"}
    assert [pair for pair, _ in kept.followups] == list(dict.fromkeys(pair for pair, _ in kept.followups))
    reference = run(suite(A, B), FakeArm("source", one), FakeArm("followup", one))
    sent = {pair: as_sent([Sent(d.followup.first, frozenset(), 0, 0.0)]) for pair, d in kept.followups}
    assert sent == {pair: as_sent([Sent(d.followup.first, frozenset(), 0, 0.0)]) for pair, d in reference.followups}


@given(
    st.sampled_from(MODES),
    st.lists(st.booleans(), min_size=60, max_size=60),
    st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_whatever_is_silent_not_applicable_or_broken_the_totals_reconcile(
    mode: tuple[str, bool], quiet_source: list[bool], quiet_followup: list[bool]
) -> None:
    made = suite(A, relation("n", Shuffle()), relation("lie", Shuffle(lie=True, every_third=False)))

    def behave(quiet: list[bool]) -> Any:
        count = iter(quiet)
        return lambda sent: silent() if next(count, False) else answered(seen(1))

    source = FakeArm("source", behave(quiet_source))
    followup = FakeArm("followup", behave(quiet_followup)) if mode[0] == "twin" else None
    kept = run(made, source, followup, mode=mode[0], stateless=mode[1])
    assert set(kept.lines) == pairs_owed(("a", "n", "lie"), len(BUNDLES))
    for pair, outcome in kept.outcomes.items():
        assert outcome != "ERROR"
        assert "/lie/" not in pair or outcome == "INVALID"
        assert not pair.startswith("0/2/n/") or outcome == "NOT_APPLICABLE"


def test_each_draw_is_a_followup_of_its_own() -> None:
    kept = run(suite(A), FakeArm("source", one), FakeArm("followup", one), draws=2)
    drawn = {pair: derived.followup.first.cloud().raw.tobytes() for pair, derived in kept.followups}
    assert len(kept.lines) == len(drawn) == 2 * 3 * len(BUNDLES)
    assert all(drawn[f"0/{i}/a/0"] != drawn[f"0/{i}/a/1"] for i in range(len(BUNDLES)))


def test_several_followups_go_out_for_one_source_answer() -> None:
    source, followup = FakeArm("source"), FakeArm("followup")
    run(suite(A, B), source, followup)
    assert [s.bundle.index for s in source.sent] == [0, 1, 2, 3]
    assert [s.bundle.index for s in followup.sent] == [i for i in range(4) for _ in range(4)]
    assert [bool(s.changed) for s in followup.sent[:4]] == [False, True, True, True]
    assert source.count("restart") == followup.count("restart") == 0


def test_the_next_followup_is_made_while_the_stack_works() -> None:
    made: list[str] = []

    class Watched(FakeRecorder):
        def followup(self, offer: Any, *rest: Any) -> None:
            made.append(f"sent {offer.relation.id}")
            super().followup(offer, *rest)

    def behave(sent: Sent) -> Answer:
        made.append("answered")
        return answered(seen(1))

    run(suite(A), FakeArm("source"), FakeArm("followup", behave), recorder=Watched(), episodes=(BUNDLES[:1],))
    assert made == ["sent identity", "answered", "sent points_permuted", "answered", "sent a", "answered"]


def test_after_a_silent_followup_the_rest_of_the_bundle_is_held_back_and_the_next_goes_on() -> None:
    followup = FakeArm("followup", lambda sent: silent() if sent.nth == 1 else answered(seen(1)))
    kept = run(suite(A, B), FakeArm("source", one), followup)
    assert kept.count() == {"HOLDS": 2 + 3 * 6, "UNPAIRED_FOLLOWUP": 2, "SKIPPED": 2}
    assert {p for p, o in kept.outcomes.items() if o == "SKIPPED"} == {"0/0/a/0", "0/0/b/0"}
    assert "may still come" in kept.lines["0/0/a/0"].judgement.reason
    assert [s.bundle.index for s in followup.sent] == [0, 0] + [i for i in (1, 2, 3) for _ in range(4)]


def test_alternate_holds_every_followup_of_a_silent_source_back() -> None:
    arm = FakeArm("source", lambda sent: silent() if sent.nth == 0 else answered(seen(1)))
    kept = run(suite(A, B), arm, mode="alternate")
    assert {o for p, o in kept.outcomes.items() if p.startswith("0/0/")} == {"UNPAIRED_SOURCE"}
    assert [s.bundle.index for s in arm.sent] == [0] + [i for i in (1, 2, 3) for _ in range(5)]


def test_a_silent_source_leaves_its_bundle_unpaired() -> None:
    source = FakeArm("source", lambda sent: silent() if sent.nth == 2 else answered(seen(1)))
    kept = run(suite(A), source, FakeArm("followup", one))
    assert {p for p, o in kept.outcomes.items() if o == "UNPAIRED_SOURCE"} == {
        p for p in kept.outcomes if p.startswith("0/2/")
    }
    assert kept.count()["HOLDS"] == 9


@pytest.mark.parametrize("stateless", [True, False])
def test_a_followup_that_is_no_proof_is_judged_invalid_and_never_sent(stateless: bool) -> None:
    followup = FakeArm("followup")
    kept = run(suite(relation("lie", Shuffle(lie=True))), FakeArm("source"), followup, stateless=stateless)
    ended = [kept.outcomes[f"0/{i}/lie/0"] for i in range(4)]
    assert ended == ["INVALID", "INVALID", "NOT_APPLICABLE", "INVALID"]
    assert "points lost" in kept.lines["0/0/lie/0"].judgement.reason
    assert not any("/lie/" in pair for pair, _ in kept.followups)
    assert all(not s.changed or s.bundle is not BUNDLES[s.bundle.index] for s in followup.sent)
    assert len(followup.sent) == (8 if stateless else 12)


def test_a_stack_that_remembers_gets_the_source_where_there_is_no_followup() -> None:
    """Otherwise its memory would be one bundle behind the other arm's."""
    followup = FakeArm("followup")
    run(suite(relation("n", Shuffle())), FakeArm("source"), followup, stateless=False)
    last = followup.sent[-4:]
    assert [s.bundle.index for s in last] == [0, 1, 2, 3]
    assert [bool(s.changed) for s in last] == [True, True, False, True]
    assert last[2].bundle is BUNDLES[2]


def test_a_followup_that_sends_nothing_is_skipped() -> None:
    kept = run(suite(relation("nothing", Nothing())), FakeArm("source"), FakeArm("followup"))
    assert {o for p, o in kept.outcomes.items() if "/nothing/0" in p and "@" not in p} == {"SKIPPED"}


def test_a_stack_that_remembers_starts_anew_for_each_relation_and_episode() -> None:
    source, followup = FakeArm("source"), FakeArm("followup")
    episodes = (BUNDLES[:2], [b.__class__(**{**vars(b), "episode": 1}) for b in BUNDLES[:2]])
    kept = run(suite(A, B), source, followup, stateless=False, episodes=episodes)
    assert len(kept.lines) == 2 * 2 * 6
    for arm in (source, followup):
        assert arm.count("begin_episode") == 8
        assert arm.count("restart") == arm.count("ready") == 7
        names = [name for name, _ in arm.events]
        assert names[:2] == ["begin_episode", "send"], "the first pass needs no restart"
        assert all(names[i + 1 : i + 3] == ["ready", "begin_episode"] for i, n in enumerate(names) if n == "restart")
        assert [s.nth for s in arm.sent] == [0, 1] * 8


def test_two_pass_plays_the_source_once_and_starts_anew_before_each_relation() -> None:
    arm = FakeArm("source")
    kept = run(suite(A, B), arm, mode="two_pass", stateless=False)
    assert len(kept.lines) == 4 * 6
    assert arm.count("restart") == 4 and arm.count("begin_episode") == 5
    assert [s.bundle.index for s in arm.sent] == [0, 1, 2, 3] * 5
    assert not any(s.changed for s in arm.sent[:4])


@pytest.mark.parametrize(("mode", "stateless"), MODES)
def test_a_stack_that_hangs_ends_the_run(mode: str, stateless: bool) -> None:
    arm = FakeArm("source", lambda sent: silent("no /obstacles within 1 s"))
    kept = FakeRecorder()
    with pytest.raises(InfrastructureError, match=r"has not answered 3 inputs.*no /obstacles within 1 s.*deadline_s"):
        run(suite(A), arm, arm, mode=mode, stateless=stateless, publishes_when_empty=True, recorder=kept)
    assert len(arm.sent) <= 2 * HANGS_AFTER
    ended = [v for v in kept.lines.values() if v.outcome.value == "ERROR"]
    assert ended and "has not answered 3 inputs" in ended[0].judgement.reason
    assert "deadline_s" not in ended[0].judgement.reason, "advice is the run's, not the pair's"


def test_two_silences_and_an_answer_are_no_hang() -> None:
    followup = FakeArm("followup", lambda sent: silent() if sent.nth % 3 else answered(seen(1)))
    source = FakeArm("source", one)
    kept = run(suite(A), source, followup, publishes_when_empty=True, stateless=False)
    assert kept.count()["VIOLATED"] > 0 and kept.count()["ERROR"] == 0


def test_a_stack_that_may_keep_silent_never_hangs() -> None:
    kept = run(suite(A), FakeArm("source", lambda s: silent()), FakeArm("followup", lambda s: silent()))
    assert kept.count() == {"UNPAIRED_BOTH": 4, "UNPAIRED_SOURCE": 8}


@pytest.mark.parametrize(("mode", "stateless"), MODES)
@pytest.mark.parametrize("nth", [0, 1, 3])
@pytest.mark.parametrize("victim", ["source", "followup"])
def test_the_death_of_a_stack_is_an_error_of_the_pair_it_happened_to(
    mode: str, stateless: bool, nth: int, victim: str
) -> None:
    total = 0

    def behave(sent: Sent) -> Answer | Exception:
        nonlocal total
        total += 1
        return (
            InfrastructureError("stack 'x' ended with exit code 1; its log ends: 12:00 oh")
            if total > nth
            else (answered(seen(1)))
        )

    dying, living = FakeArm(victim, behave), FakeArm("other", one)
    arms = (dying, living) if victim == "source" else (living, dying)
    kept = FakeRecorder()
    with pytest.raises(InfrastructureError):
        run(suite(A), *(arms if mode == "twin" else (dying, dying)), mode=mode, stateless=stateless, recorder=kept)
    errors = [v for v in kept.lines.values() if v.outcome.value == "ERROR"]
    assert errors, "some pair must say what happened"
    assert len({v.pair.followup for v in errors}) == 1
    assert {v.judgement.reason for v in errors} == {"stack 'x' ended with exit code 1"}
    assert kept.count()["ERROR"] + kept.count()["HOLDS"] == len(kept.lines)


def test_arms_start_side_by_side_and_one_arm_once() -> None:
    events: list[tuple[str, Any]] = []
    one, two = FakeArm("source", events=events), FakeArm("followup", events=events)
    start(one, two)
    assert [name for name, _ in events] == ["start", "start", "ready", "ready"]
    events.clear()
    start(one, one)
    assert [name for name, _ in events] == ["start", "ready"]


# --- with what a run leaves on disk


@pytest.fixture
def recorded(tmp_path: Path) -> execute.Run:
    bag = write_bag(tmp_path / "bag", drive(3))
    return execute.Run.make(ReplayRequest((str(bag),), ("noise_outside_roi_10",)), tmp_path / "out")


def carried_out(
    made: execute.Run, source: FakeArm, followup: FakeArm, heard: list[Any] | None = None
) -> dict[str, Any]:
    (made.out / "evidence").mkdir(parents=True, exist_ok=True)
    done: list[Verdict] = []
    lines = [] if heard is None else heard
    summary = execute.execute(made, lambda ending: (source, followup), lines.append, done.extend)
    assert summary == read_result(made.out / "summary.json")
    assert summary["offered"] == len(done) == sum(summary["outcomes"].values())
    return summary


def test_a_dying_stack_ends_with_exit_code_4_and_what_was_judged_is_kept(recorded: execute.Run) -> None:
    dies = FakeArm("followup", lambda s: answered(seen(0)) if s.nth < 5 else InfrastructureError("it died; log"))
    summary = carried_out(recorded, FakeArm("source", lambda s: answered(seen(0))), dies)
    assert summary["exit_code"] == 4 and summary["infrastructure"] == "it died; log"
    assert summary["outcomes"] == {"NOT_APPLICABLE": 5, "ERROR": 1}
    assert (recorded.out / "junit.xml").exists() and (recorded.out / "report.html").exists()


def test_what_is_written_is_also_told(recorded: execute.Run) -> None:
    heard: list[str] = []
    carried_out(recorded, FakeArm("source"), FakeArm("followup"), heard)
    kinds = [json.loads(line)["type"] for line in heard]
    assert kinds.count("verdict") == 9 and kinds.count("followup") >= 6
    # Word for word, so that whoever listens can check the checksum, too.
    for name, kind in (("result.jsonl", "verdict"), ("ledger.jsonl", "followup")):
        written = [t for t in (recorded.out / name).read_text().splitlines() if json.loads(t)["type"] == kind]
        assert [line for line, found in zip(heard, kinds, strict=True) if found == kind] == written


@pytest.mark.parametrize(
    ("error", "code", "key"),
    [
        (IsolationError("strangers: /a"), 5, "isolation"),
        (InfrastructureError("bag is damaged"), 4, "infrastructure"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_ends_a_run_early_is_in_its_summary(recorded: execute.Run, error: Any, code: int, key: str) -> None:
    class Refuses(FakeArm):
        def ready(self) -> None:
            raise error

    summary = carried_out(recorded, Refuses("source"), FakeArm("followup"))
    assert summary["exit_code"] == code and summary[key] and summary["offered"] == 0


def test_a_damaged_bag_is_judged_as_far_as_it_can_be_read(recorded: execute.Run) -> None:
    source = recorded.sources[0]

    class Torn:
        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        def readings(self) -> Any:
            for i, bundle in enumerate(source):
                if i == 2:
                    raise InfrastructureError("bag: damaged")
                yield bundle

    torn = replace(recorded, sources=(Torn(),))  # type: ignore[arg-type]
    summary = carried_out(torn, FakeArm("source"), FakeArm("followup"))
    assert summary["exit_code"] == 4 and summary["offered"] == 6 and "ERROR" not in summary["outcomes"]
