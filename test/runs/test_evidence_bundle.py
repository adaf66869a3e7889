# SPDX-License-Identifier: Apache-2.0
"""The case for safety as its users meet it: plan, run, bundle, verification; and attacks on a bundle, each noticed.

An outsider changes files. An insider has the signer's key, and signs again whatever was changed.
"""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bad_bags import typed
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_runs import no_pages, sparse_drive

from mt_nodes.base.dsse import SignedStatement, private_key, public_pem
from mt_nodes.base.jsonl import read_lines, read_result, seal, write_result
from mt_nodes.engine.finish import sum_up
from mt_nodes.runs.safety_case.assessment import assess
from mt_nodes.runs.safety_case.bundle import ATTESTATION, BUNDLE_TYPE, digests, pages
from mt_nodes.runs.safety_case.bundle_check import BundleVerification, Trusted
from mt_nodes.runs.safety_case.preregistration import PLAN_TYPE, Preregistration, seed_of
from mt_nodes.runs.safety_case.run_assessment import relation_infos

NAME, OTHER = "noise_outside_roi_1000", "noise_outside_roi_10"
FRAMES = 22
TODAY = datetime.date.today()


def write_key(folder: Path, name: str, number: int) -> Path:
    key = Ed25519PrivateKey.from_private_bytes(bytes([number] * 32))
    (folder / f"{name}.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / f"{name}.pub.pem").write_bytes(public_pem(key.public_key()))
    return folder / f"{name}.pem"


@dataclass(frozen=True)
class Made:
    """A folder with keys, requirements, a drive, plans, runs, and bundles of an honest and of a faulty stack."""

    place: Path

    def __truediv__(self, name: str) -> Path:
        return self.place / name

    def mt(self, *words: object, code: int = 0) -> str:
        got, said, error = typed(*words)
        assert got == code, f"{got}: {said}{error}"
        return f"{said}{error}"

    def plan(self, out: str, *words: object) -> None:
        self.mt("evidence", "plan", self / "r.yaml", *words, "--key", self / "key.pem", "-o", self / out)

    def bundle(self, out: Path, plan: str, *words: object, code: int = 0) -> str:
        head = ("evidence", "make", self / plan)
        return self.mt(*head, *words, "--key", self / "key.pem", "-o", out, code=code).replace("\n", " ")

    def verify(self, bundle: Path, *words: object, code: int = 0) -> str:
        key = ("--key", self / "key.pub.pem")
        return self.mt("evidence", "verify", bundle, *key, *words, code=code).replace("\n", " ")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    made = Made(tmp_path_factory.mktemp("case"))
    for number, name in enumerate(("key", "foreign", "witness"), start=1):
        write_key(made.place, name, number)
    sparse_drive(made / "drive", FRAMES)
    (made / "r.yaml").write_text(
        f"- {{id: R1, text: Noise must not hide anybody., hazard: Collision, relations: [{NAME}], max_rate: 0.15}}\n"
    )
    options = ("--transport", "inprocess")
    with no_pages():
        made.plan("plan.json", made / "drive", *options, "--stack-version", "1.0")
        if shutil.which("openssl"):
            sha256 = Preregistration.load(made / "plan.json").sha256
            (made / "plan.tsr").write_bytes(TimeStampAuthority(made / "tsa").stamp(sha256))
        made.mt("replay", made / "drive", "--plan", made / "plan.json", "--out", made / "run")
        fault = ("--fault", "grid_index_wrap")
        made.plan("bad.json", made / "drive", *options, *fault)
        made.mt("replay", made / "drive", "--plan", made / "bad.json", "--out", made / "bad", code=1)
    made.bundle(made / "good", "plan.json", made / "run", "--sensitivity", made / "bad")
    made.bundle(made / "full", "plan.json", made / "run", "--sensitivity", made / "bad", "--with-bags")
    made.bundle(made / "worse", "bad.json", made / "bad", code=1)
    yield made


@pytest.fixture
def bundle(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "good", tmp_path / "bundle"))


@pytest.fixture
def bad(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "worse", tmp_path / "bundle"))


def sign_again(made: Made, bundle: Path, *, honest: bool = True, **about: Any) -> None:
    """Sign a changed bundle as the insider; ``honest``: with the pages and the outcome that its journals have now."""
    plain = SignedStatement.load(bundle / ATTESTATION).predicate(BUNDLE_TYPE, "")
    if honest:
        found = assess(bundle, TODAY)
        for name, text in pages(found).items():
            (bundle / name).write_text(text)
        plain |= {"exit_code": found["exit_code"], "exit_why": found["exit_why"], "plan": found["plan"]["sha256"]}
    statement = SignedStatement.of(BUNDLE_TYPE, {**plain, **about}, digests(bundle))
    (bundle / ATTESTATION).write_text(statement.signed(private_key(made / "key.pem")).text)


def change_lines(path: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Rewrite lines, with checksums that fit."""
    lines = [change(line) for line in read_lines(path)]
    path.write_text("".join(f"{seal(line)}\n" for line in lines if line is not None))


def test_a_third_party_verifies_a_bundle_and_reproduces_a_pair(made: Made, tmp_path: Path) -> None:
    said = made.verify(made / "good")
    assert "signature: by" in said and f"{3 * FRAMES} verdicts of 1 run counted again" in said
    assert "1 requirement supported as planned" in said and "is the signer's word" in said
    pair, out = f"0/3/{NAME}/0", tmp_path / "again"
    said = made.verify(made / "full", "--reproduce", pair, "--out", out)
    assert "from the seed" in said and "the judgement is the same as in the run" in said
    made.verify(made / "full")  # nothing was written into it


def test_without_the_signers_key_only_integrity_is_shown(made: Made) -> None:
    said = made.mt("evidence", "verify", made / "good", code=3).replace("\n", " ")
    assert "not proved: who signed" in said and "1 requirement supported" in said
    said = made.mt("evidence", "verify", made / "good", "--key", made / "foreign.pub.pem", code=1)
    assert "signature: WRONG" in said and "the plan is not signed by the key" in said


def test_the_page_and_the_argument_say_what_the_journals_come_to(made: Made) -> None:
    found = json.loads((made / "good" / "assessment.json").read_text())
    relation = found["requirements"][0]["relations"][0]
    assert (relation["decided"], relation["violated"], relation["status"]) == (FRAMES, 0, "supported")
    assert "grid_index_wrap planted" in relation["seen_failing"] and found["gaps"] == []
    page = (made / "good" / "index.html").read_text()
    assert "ISO 21448" in page and "UL 4600" in page and "157" in page and "None in what was planned" in page
    argument = (made / "good" / "argument.yaml").read_text()
    assert "It can fail" in argument and "undeveloped" not in argument
    worse = (made / "worse" / "argument.yaml").read_text()
    assert "status: violated" in worse and "VIOLATED in" in (made / "worse" / "index.html").read_text()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_byte_of_any_file_that_is_changed_is_noticed(made: Made, data: st.DataObject) -> None:
    bundle = made / "good"
    files = sorted(path for path in bundle.rglob("*") if path.is_file() and path.stat().st_size)
    path = data.draw(st.sampled_from([*files, *[bundle / ATTESTATION] * (len(files) // 4)]))
    was = path.read_bytes()
    place, change = data.draw(st.integers(0, len(was) - 1)), data.draw(st.integers(1, 255))
    try:
        path.write_bytes(was[:place] + bytes([was[place] ^ change]) + was[place + 1 :])
        checks = BundleVerification(bundle, Trusted(made / "key.pub.pem"), TODAY).run()
        assert any(check.wrong for check in (next(checks), next(checks)))
    finally:
        path.write_bytes(was)


def added(bundle: Path) -> None:
    (bundle / "runs" / "1" / "note.txt").write_text("x")


def removed(bundle: Path) -> None:
    (bundle / "runs" / "1" / "ledger.jsonl").unlink()


def linked(bundle: Path) -> None:
    (bundle / "index.html").unlink()
    (bundle / "index.html").symlink_to("/etc/hostname")


def unsigned(bundle: Path) -> None:
    (bundle / ATTESTATION).write_text(SignedStatement(SignedStatement.load(bundle / ATTESTATION).payload).text)


def signed_by_another(bundle: Path) -> None:
    statement = SignedStatement(SignedStatement.load(bundle / ATTESTATION).payload)
    key = Ed25519PrivateKey.from_private_bytes(bytes([2] * 32))
    (bundle / "key.pub.pem").write_bytes(public_pem(key.public_key()))
    about = statement.predicate(BUNDLE_TYPE, "")
    (bundle / ATTESTATION).write_text(SignedStatement.of(BUNDLE_TYPE, about, digests(bundle)).signed(key).text)


def signed_by_one_more(bundle: Path) -> None:
    more = SignedStatement.load(bundle / ATTESTATION).signed(Ed25519PrivateKey.from_private_bytes(bytes([2] * 32)))
    (bundle / ATTESTATION).write_text(more.text)


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (added, "note.txt: was added after the bundle was signed"),
        (removed, "ledger.jsonl: is not there"),
        (linked, "is neither a file nor a directory"),
        (unsigned, "not signed by this key alone; signed by nobody else"),
        (signed_by_one_more, "not signed by this key alone; signed by"),
        (signed_by_another, "not signed by this key alone; signed by"),
    ],
)
def test_what_an_outsider_changes_is_noticed(made: Made, bundle: Path, attack: Any, words: str) -> None:
    attack(bundle)
    assert words in made.verify(bundle, code=1)


def to_holds(line: dict[str, Any]) -> dict[str, Any]:
    return {**line, "outcome": "HOLDS"} if line.get("outcome") == "VIOLATED" else line


def without_violated(line: dict[str, Any]) -> dict[str, Any] | None:
    return None if line.get("outcome") == "VIOLATED" else line


def test_verdicts_turned_by_an_insider_contradict_their_margins_and_the_summary(made: Made, bad: Path) -> None:
    assert "VIOLATED in" in made.verify(bad, code=1)
    change_lines(bad / "runs" / "1" / "result.jsonl", to_holds)
    sign_again(made, bad)
    said = made.verify(bad, code=1)
    assert "the journal contradicts itself" in said and "its summary says outcome FAIL, its journal PASS" in said


def test_verdicts_left_out_by_an_insider_are_missed(made: Made, bad: Path) -> None:
    change_lines(bad / "runs" / "1" / "result.jsonl", without_violated)
    sign_again(made, bad)
    assert "it ended early, or some are lost" in made.verify(bad, code=1)


def test_follow_ups_left_out_by_an_insider_are_missed(made: Made, bundle: Path) -> None:
    change_lines(bundle / "runs" / "1" / "ledger.jsonl", lambda line: None if "/3/noise" in line["pair"] else line)
    sign_again(made, bundle)
    assert "the ledger lacks 1 follow-up" in made.verify(bundle, code=1)


def test_a_summary_that_says_something_better_is_not_believed(made: Made, bad: Path) -> None:
    path = bad / "runs" / "1" / "summary.json"
    summary = read_result(path)
    summary["relations"][NAME] |= {"outcome": "PASS", "violated": 0}
    write_result(path, summary)
    sign_again(made, bad)
    said = made.verify(bad, code=1)
    assert "its summary says outcome PASS, its journal FAIL" in said and "violated, and not waived: R1" in said


def test_pages_and_a_statement_that_say_something_better_are_not_believed(made: Made, bad: Path) -> None:
    shutil.copy(made / "good" / "index.html", bad / "index.html")
    sign_again(made, bad, honest=False, exit_code=0, exit_why="1 requirement supported as planned")
    said = made.verify(bad, code=1)
    assert "index.html: is not what the journals come to" in said
    assert "the bundle says: 1 requirement supported as planned; counted again: violated" in said


def test_a_forgery_without_a_flaw_is_found_by_making_pairs_again(
    made: Made, bad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of such a one nothing else can tell: whoever verifies has to choose pairs."""
    run = bad / "runs" / "1"
    violated = [line["pair"] for line in read_lines(run / "result.jsonl") if line.get("outcome") == "VIOLATED"]
    assert len(violated) > 2
    change_lines(run / "result.jsonl", lambda line: {**to_holds(line), "margin": 0} if "margin" in line else line)
    plan = Preregistration.load(bad / "plan.json")
    infos = relation_infos(plan.content["relations"], {})
    write_result(run / "summary.json", sum_up(run, infos))
    shutil.copytree(made / "bad", bad / "sensitivity" / "1")
    sign_again(made, bad)
    made.verify(bad)
    monkeypatch.setattr("random.SystemRandom.sample", lambda self, pairs, count: [("1", violated[0])][:count])
    said = made.verify(bad, "--audit", 1, "--bag", made / "drive", code=1)
    assert "HOLDS in the run, VIOLATED now" in said and "0 of 1 pairs as in the run" in said
    monkeypatch.undo()
    (run / "ledger.jsonl").write_text("")
    change_lines(run / "result.jsonl", lambda line: {**line, "outcome": "SKIPPED"} if "pair" in line else line)
    sign_again(made, bad)
    assert "0 of 0 pairs as in the run" in made.verify(bad, "--audit", 3, code=3)


def test_the_requirements_of_the_plan_are_those_of_their_file(made: Made, bundle: Path) -> None:
    assert "not proved: that the plan has all requirements" in made.verify(bundle)
    shutil.copy(made / "r.yaml", bundle / "requirements.yaml")
    sign_again(made, bundle)
    assert "that the plan has all requirements" not in made.verify(bundle)
    with (bundle / "requirements.yaml").open("a") as file:
        file.write("- {id: R2, text: More.}\n")
    sign_again(made, bundle)
    said = made.verify(bundle, code=1)
    assert "is not the file of which the plan was made" in said and "has other requirements than the plan" in said


def test_a_plan_that_was_made_afterwards_is_not_that_of_the_run(made: Made, bundle: Path) -> None:
    key, old = private_key(made / "key.pem"), Preregistration.load(bundle / "plan.json")
    content = json.loads(json.dumps(old.content))
    content["requirements"][0] |= {"max_rate": 0.9, "frames": 1}
    content["seed"] = seed_of(content)
    later = SignedStatement.of(PLAN_TYPE, content, old.envelope.subjects).signed(key)
    (bundle / "plan.json").write_text(later.text)
    sign_again(made, bundle)
    said = made.verify(bundle, code=1)
    assert "its commitment is to another plan" in said and "its journal is to another plan" in said
    assert "seed:" in said, "another plan draws otherwise"
    content["seed"] = old.content["seed"]
    (bundle / "plan.json").write_text(SignedStatement.of(PLAN_TYPE, content, {}).signed(key).text)
    assert "that of its content" in made.verify(bundle, code=1), "its seed is not its own"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seed", 7), "seed:"),
        (("--relations", OTHER), f"relation {NAME}: left out by the run"),
    ],
)
def test_a_run_that_is_not_the_planned_one_does_not_count(
    made: Made, bundle: Path, tmp_path: Path, words: tuple[Any, ...], said: str
) -> None:
    relations = () if "--relations" in words else ("--relations", NAME)
    with no_pages():
        place = tmp_path / "other"
        typed("replay", made / "drive", *relations, "--transport", "inprocess", *words, "--out", place)
    # An insider writes what a run by the plan would have.
    for name in ("commitment.json", "plan.json"):
        shutil.copy(bundle / "runs" / "1" / name, place / name)
    sha256 = Preregistration.load(bundle / "plan.json").sha256
    change_lines(
        place / "result.jsonl", lambda line: {**line, **({"plan": sha256} if line["type"] == "condition" else {})}
    )
    shutil.rmtree(bundle / "runs" / "1")
    shutil.copytree(place, bundle / "runs" / "1")
    sign_again(made, bundle)
    assert said in made.verify(bundle, code=3 if "--relations" in words else 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"drives": ["ab" * 32]}, "the drive with SHA-256 abababababab… is not in the plan"),
        ({"drives": []}, "of the plan was not played"),
        ({"started": "2020-01-01T00:00:00+00:00"}, "before the plan was made"),
        ({"started": "x"}, "began at x, before the plan was made"),
        ({"code": "ab" * 32}, "code of mt_nodes and plugins:"),
        ({"number": 3}, "run 1 of the plan was begun and is not in the bundle"),
    ],
)
def test_what_a_run_committed_to_is_held_against_the_plan(
    made: Made, bundle: Path, changes: dict[str, Any], words: str
) -> None:
    path = bundle / "runs" / "1" / "commitment.json"
    write_result(path, {**read_result(path), **changes})
    sign_again(made, bundle)
    assert words in made.verify(bundle, code=1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"interrupted": True}, "it ended early: interrupted"), ({"infrastructure": "it died"}, "it ended early: infra")],
)
def test_a_run_that_ended_early_does_not_count(made: Made, bundle: Path, changes: dict[str, Any], words: str) -> None:
    path = bundle / "runs" / "1" / "summary.json"
    write_result(path, {**read_result(path), **changes})
    sign_again(made, bundle)
    assert words in made.verify(bundle, code=1)


def test_pairs_that_ended_in_errors_are_a_gap(made: Made, bundle: Path) -> None:
    error = {"outcome": "ERROR", "measured": None, "bound": None, "margin": None}
    path = bundle / "runs" / "1" / "result.jsonl"
    change_lines(path, lambda line: {**line, **(error if line.get("pair") == f"0/3/identity/0@{NAME}" else {})})
    sign_again(made, bundle)
    assert "1 pair ended in ERROR" in made.verify(bundle, code=1)


def test_the_statement_names_the_plan(made: Made, bundle: Path) -> None:
    sign_again(made, bundle, plan="ab" * 32)
    assert "the bundle was signed with another plan" in made.verify(bundle, code=1)


def test_a_run_by_the_plan_takes_all_from_it_and_refuses_other_drives(made: Made, tmp_path: Path) -> None:
    plan = ("--plan", made / "plan.json")
    assert "--plan settles --limit, --seed; leave them out" in made.mt(
        "replay", made / "drive", *plan, "--seed", 3, "--limit", 2, code=2
    )
    sparse_drive(tmp_path / "other", 2)
    said = made.mt("replay", tmp_path / "other", *plan, "--out", tmp_path / "run", code=2)
    assert "this run is not the planned one" in said and "of the plan was not played" in said
    assert not (tmp_path / "run").exists() and len(list(read_lines(made / "plan.json.runs.jsonl"))) == 1


def test_a_run_by_the_plan_goes_on_with_what_it_began_with_only(made: Made, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made / "run", tmp_path / "run"))
    with no_pages():
        made.mt("replay", "--resume", run)
    for changes, words in (({"code": "ab"}, "code"), ({"code": "ab", "drives": []}, "code and drives")):
        write_result(run / "commitment.json", {**read_result(run / "commitment.json"), **changes})
        assert f"changed since it began: {words}" in made.mt("replay", "--resume", run, code=2)


def test_runs_that_were_begun_by_the_plan_and_left_out_are_missed(made: Made, tmp_path: Path) -> None:
    for name in ("plan.json", "plan.json.runs.jsonl"):
        shutil.copy(made / name, tmp_path / name)
    with no_pages():
        made.mt("replay", made / "drive", "--plan", tmp_path / "plan.json", "--out", tmp_path / "second")
    both = (made / "run", tmp_path / "second")
    sensitivity = ("--sensitivity", made / "bad")
    for number, run in ((2, both[0]), (1, both[1])):
        said = made.bundle(tmp_path / f"b{number}", str(tmp_path / "plan.json"), run, *sensitivity, code=1)
        assert f"run {number} of the plan was begun and is not in the bundle" in said
    made.bundle(tmp_path / "both", str(tmp_path / "plan.json"), *both, *sensitivity)
    twice = made.bundle(tmp_path / "twice", str(tmp_path / "plan.json"), both[0], both[0], *sensitivity, code=1)
    assert "several runs have the number 1" in twice


def test_of_several_runs_the_worst_counts(made: Made, bad: Path) -> None:
    """A stack that fails once is not tested again until it passes: here the second run is clean by forgery."""
    shutil.copytree(bad / "runs" / "1", bad / "runs" / "2")
    second = bad / "runs" / "2"
    change_lines(second / "result.jsonl", lambda line: {**to_holds(line), "margin": 0} if "margin" in line else line)
    write_result(second / "commitment.json", {**read_result(second / "commitment.json"), "number": 2})
    sign_again(made, bad)
    assert "VIOLATED in" in made.verify(bad, code=1)


def test_nothing_tested_is_never_green(made: Made, bundle: Path, tmp_path: Path) -> None:
    assert "no run is in the bundle" in made.bundle(tmp_path / "none", "plan.json", code=3)
    unchecked = {"outcome": "SKIPPED", "measured": None, "bound": None, "margin": None}
    path = bundle / "runs" / "1" / "result.jsonl"
    change_lines(path, lambda line: {**line, **(unchecked if line["type"] == "verdict" else {})})
    sign_again(made, bundle)
    assert "nothing was decided" in made.verify(bundle, code=3)
    assert assess(bundle, TODAY)["exit_code"] == 3


def test_a_relation_that_was_never_seen_to_fail_is_a_gap(made: Made, tmp_path: Path) -> None:
    for words in ((), ("--sensitivity", made / "run")):
        said = made.bundle(tmp_path / f"b{len(words)}", "plan.json", made / "run", *words, code=1)
        assert "it may be unable to fail" in said
    notes = json.loads((tmp_path / "b2" / "assessment.json").read_text())["sensitivity"]["notes"]
    assert notes == ["sensitivity/1 does not count: no fault was planted in it"]
    other = Path(shutil.copytree(made / "bad", tmp_path / "other"))
    record = read_result(other / "run.json")
    for row in record["relations"]:
        row["given"] = []
    write_result(other / "run.json", record)
    said = made.bundle(tmp_path / "b", "plan.json", made / "run", "--sensitivity", other, code=1)
    assert "it may be unable to fail" in said
    assert f"{NAME} is defined otherwise than in the plan" in (tmp_path / "b" / "assessment.json").read_text()


def test_waivers_expire_need_somebody_and_never_hide_a_violation(made: Made, tmp_path: Path) -> None:
    row = {"id": "W1", "relation": NAME, "reason": "ticket 42", "requirement": "R1", "who": "A. Person"}

    def waived(name: str, code: int, **changes: str) -> str:
        file = tmp_path / f"{name}.yaml"
        file.write_text(json.dumps([{**row, "expires": "2999-01-01", **changes}]))
        return made.bundle(tmp_path / name, "bad.json", made / "bad", "--waivers", file, code=code)

    said = waived("valid", 0)
    assert "except violated and waived: R1" in said
    page = (tmp_path / "valid" / "index.html").read_text()
    assert "waived until 2999-01-01: ticket 42" in page and "FAIL" in page
    assert "status: waived" in (tmp_path / "valid" / "argument.yaml").read_text()
    said = waived("expired", 1, expires="2020-01-01")
    assert "waiver W1: expired on 2020-01-01" in said and "violated, and not waived: R1" in said
    assert "does not say who accepts it" in waived("nobody", 1, who="")
    assert "which noise_outside_roi_1000 does not test by the plan" in waived("other", 1, requirement="R9")
    file = tmp_path / "two.yaml"
    file.write_text(json.dumps([{**row, "expires": "2999-01-01", "requirement": r} for r in ("R9", "R1")]))
    two = made.bundle(tmp_path / "two", "bad.json", made / "bad", "--waivers", file, code=1)
    assert "violated, and not waived" not in two, "one for another requirement takes nothing from that for this one"
    later = assess(tmp_path / "valid", datetime.date(2999, 1, 2))
    assert later["exit_code"] == 1, "a bundle that was green turns red on the day after"


def test_a_witness_vouches_for_the_plan(made: Made, bundle: Path, tmp_path: Path) -> None:
    witness = ("--witness", made / "witness.pub.pem")
    assert "not signed by the witness" in made.verify(bundle, *witness, code=1)
    made.mt("evidence", "countersign", bundle / "plan.json", "--key", made / "witness.pem")
    sign_again(made, bundle)
    said = made.verify(bundle, *witness)
    assert "order: signed by the witness" in said and "that no other plan was made" in said
    assert "1 more signature on the plan" in made.verify(bundle)


def test_a_time_stamp_of_an_authority_is_checked_off_line(made: Made, bundle: Path, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed; it plays the time stamp authority")
    words = ("--sensitivity", made / "bad", "--witness", made / "plan.tsr")
    made.bundle(tmp_path / "early", "plan.json", made / "run", *words)
    root = ("--tsa-root", made / "tsa" / "ca.pem")
    assert "give the authority's root with --tsa-root" in made.verify(tmp_path / "early")
    said = made.verify(tmp_path / "early", *root)
    assert "seen by a time stamp authority at" in said and "the drives bear stamps before that, from 2023-11-14" in said
    authority, sha256 = TimeStampAuthority(tmp_path / "tsa"), Preregistration.load(bundle / "plan.json").sha256
    assert "proves no time" in made.verify(tmp_path / "early", "--tsa-root", authority.place / "ca.pem", code=1)
    root = ("--tsa-root", authority.place / "ca.pem")
    assert "has no time stamp" in made.verify(bundle, *root, code=1)
    (bundle / "witness").mkdir()
    for stamped, why in ((sha256, "before an authority saw the plan at"), ("ab" * 32, "proves no time")):
        (bundle / "witness" / "plan.tsr").write_bytes(authority.stamp(stamped))
        sign_again(made, bundle)
        assert why in made.verify(bundle, *root, code=1)


class TimeStampAuthority:
    """An authority of our own: a root, a certificate for time stamps, and `openssl ts`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        (place / "ext.cnf").write_text("extendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature\n")
        (place / "ts.cnf").write_text(
            f"[tsa]\ndefault_tsa=t\n[t]\nserial={place}/serial\nsigner_cert={place}/tsa.pem\n"
            f"signer_key={place}/tsa.key\nsigner_digest=sha256\ndefault_policy=1.2.3.4\ndigests=sha256\n"
            "accuracy=secs:1\ness_cert_id_alg=sha256\n"
        )
        (place / "serial").write_text("01\n")
        rsa = ("-newkey", "rsa:2048", "-nodes")
        self._run("req", "-x509", *rsa, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=root", "-days", "9")
        self._run("req", *rsa, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=tsa")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "ext.cnf", "-days", "9")
        self._run("x509", "-req", "-in", "tsa.csr", *signed, "-out", "tsa.pem")

    def stamp(self, sha256: str) -> bytes:
        self._run("ts", "-query", "-sha256", "-digest", sha256, "-cert", "-out", "q.tsq")
        self._run("ts", "-reply", "-config", "ts.cnf", "-queryfile", "q.tsq", "-out", "r.tsr")
        return (self.place / "r.tsr").read_bytes()

    def _run(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.place, check=True, capture_output=True, timeout=120)


def test_a_drive_of_another_content_is_not_reproduced_from(made: Made, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(made / "full", tmp_path / "bundle"))
    pair = ("--reproduce", f"0/3/{NAME}/0", "--out", tmp_path / "again")
    (drive,) = (bundle / "bags").iterdir()
    sparse_drive(tmp_path / "drive", 5, seed=2)
    said = made.verify(bundle, *pair, "--bag", tmp_path / "drive", code=2)
    assert "that of the drive that was played" in said
    shutil.rmtree(drive / "drive")
    shutil.copytree(tmp_path / "drive", drive / "drive")
    sign_again(made, bundle)
    assert "holds a drive with another SHA-256" in made.verify(bundle, code=1)
    assert "from the seed" not in made.verify(bundle, *pair, code=1), "nothing is executed"
    shutil.rmtree(bundle / "bags")
    sign_again(made, bundle)
    assert "say where it is with --bag" in made.verify(bundle, *pair, code=2)
    assert "the judgement is the same" in made.verify(bundle, *pair, "--bag", made / "drive")


def test_a_pair_is_made_again_without_the_files_of_stack_and_relation(made: Made, tmp_path: Path) -> None:
    stack, own, plan = (tmp_path / name for name in ("stack.yaml", "own.yaml", "plan.json"))
    stack.write_text(
        "callable: mt_nodes.stacks.reference.detector:Detector\npoints_frame: base_link\nstateless: true\n"
    )
    head = "id: own\nkind: necessary\nbecause: x\nrequirement: [R1]\n"
    own.write_text(f"{head}mutate: [{{noise_outside_roi: {{points: 500}}}}]\ncheck: {{obstacles_kept: {{}}}}\n")
    made.plan(str(plan), made / "drive", "--stack", stack, "--relations", own, "--transport", "inprocess")
    with no_pages():
        made.mt("replay", made / "drive", "--plan", plan, "--out", tmp_path / "run")
    made.bundle(tmp_path / "b", str(plan), tmp_path / "run", code=1)
    stack.unlink()
    own.unlink()
    pair = ("--reproduce", "0/3/own/0", "--bag", made / "drive", "--out", tmp_path / "again")
    assert "the judgement is the same as in the run" in made.verify(tmp_path / "b", *pair, code=1)


def test_a_plan_for_drives_to_come_counts_them(made: Made, tmp_path: Path) -> None:
    made.plan(str(tmp_path / "p.json"), "--drives", 1, "--transport", "inprocess")
    with no_pages():
        made.mt("replay", made / "drive", "--plan", tmp_path / "p.json", "--out", tmp_path / "run")
        said = made.mt("replay", made / "drive", made / "drive", "--plan", tmp_path / "p.json", code=2)
    assert "2 drives played, 1 of them different; the plan says 1" in said
    made.bundle(tmp_path / "b", str(tmp_path / "p.json"), tmp_path / "run", "--sensitivity", made / "bad")
    run, pair = tmp_path / "b" / "runs" / "1", f"0/3/{NAME}/0"
    change_lines(run / "result.jsonl", lambda line: None if line.get("pair") == pair else line)
    write_result(run / "run.json", {**read_result(run / "run.json"), "pairs": 3 * FRAMES - 1})
    sign_again(made, tmp_path / "b")
    said = made.verify(tmp_path / "b", code=1)
    assert f"verdicts are missing: {NAME} (0) on {FRAMES - 1} of {FRAMES} bundles" in said


def test_plans_that_cannot_decide_are_refused(made: Made, tmp_path: Path) -> None:
    def plan(*words: object, text: str = "") -> str:
        if text:
            (tmp_path / "r.yaml").write_text(text)
        file = tmp_path / "r.yaml" if text else made / "r.yaml"
        options = ("--transport", "inprocess", "--key", made / "key.pem", "-o", tmp_path / "p.json")
        head = ("evidence", "plan", file, *words, *options)
        return made.mt(*head, code=2).replace("\n", " ")

    assert "got neither of the drives and --drives N" in plan()
    row = f"- {{id: R1, text: x, relations: [{NAME}], max_rate: 0.1}}\n"
    said = plan(made / "drive", text=row)
    assert "these drives (22 frames) show only that at most 14.9 % of pairs are violated" in said
    assert "10 % are accepted; plan with 13 more frames, or accept a larger max_rate" in said
    few = row.replace("0.1", "0.15, frames: 9")
    assert "got 9 frames, expected at least 22 for a rate of 0.15" in plan("--drives", 1, text=few)
    assert "nothing would be tested" in plan(made / "drive", text="- {id: R1, text: x}\n")
    assert "no relation 'fogg'" in plan("--drives", 1, text="- {id: R1, text: x, relations: [fogg]}\n")
    assert f"{OTHER} names the requirements none, expected one of R1" in plan("--drives", 1, "--relations", OTHER)
    out = made.mt(
        "evidence", "plan", made / "r.yaml", "--drives", 1, "--key", made / "key.pem", "-o", made / "r.yaml", code=2
    )
    assert "is there already; a plan is never changed" in out


def test_makers_of_bundles_are_told_what_is_missing(made: Made, tmp_path: Path) -> None:
    run = (made / "plan.json", made / "run")
    make = ("evidence", "make", *run, "-o", tmp_path / "b", "--key")
    assert "is not signed by this key" in made.mt(*make, made / "foreign.pem", code=2)
    other = ("--requirements", made / "key.pem")
    assert "is not the file of which the plan was made: r.yaml" in made.mt(*make, made / "key.pem", *other, code=2)
    assert "is there already" in made.mt(
        "evidence", "make", *run, "-o", made / "good", "--key", made / "key.pem", code=2
    )
    assert "has no attestation.json" in made.mt("evidence", "verify", made / "run", code=2)
    assert "--bag goes with --reproduce" in made.mt("evidence", "verify", made / "good", "--bag", "x", code=2)
    assert not (tmp_path / "b").exists()
