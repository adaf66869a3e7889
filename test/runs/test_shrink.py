# SPDX-License-Identifier: Apache-2.0
"""``mt shrink``: stacks whose smallest failing case is known, one that fails by chance, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import carry_out, no_pages
from recordings import bundles

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import evidence_name
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import find_followup, load_draws
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.reduction.reduction import Reduction
from mt_nodes.relations.relation import load_relation
from mt_nodes.runs.replay.execute import in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.shrink.shrink_run import ShrinkRequest, ShrinkRun
from mt_nodes.runs.shrink.shrink_run import carry_out as shrink

pytestmark = pytest.mark.usefixtures("stacks_here")

POINTS, COUNT = 1000, 12
STACK = '''
import numpy as np
from mt_nodes.data.outputs import Detections

def seen(count):
    return Detections.make("base_link", None, np.tile([10.0, 0.0, 0.0], (count, 1)), np.ones((count, 3)))

class Ahead:
    """Loses its obstacle when fewer than so many points lie ahead (x > 0)."""
    def __init__(self, least):
        self.least = least
    def __call__(self, points):
        return seen(int((points[:, 0] > 0).sum() >= self.least))

class Many:
    """Loses its obstacle when fewer points come than these."""
    def __init__(self, least):
        self.least = least
    def __call__(self, points):
        return seen(int(len(points) >= self.least))

class Chance:
    """The same in one of two calls, by dice that are thrown alike each time."""
    def __init__(self, seed):
        self.dice = np.random.default_rng(seed)
    def __call__(self, points):
        return seen(int(len(points) >= 1000 or self.dice.random() < 0.5))

class Doubts:
    """Is less sure of its car with each point far away, by a fifth, and always sure of the pedestrian."""
    def __call__(self, points):
        far = int((np.hypot(points[:, 0], points[:, 1]) > 90.0).sum())
        at = [[10.0, 0.0, 0.0], [20.0, 3.0, 0.0]]
        kept = [far < 3, True]
        score = np.array([0.95 - 0.2 * min(far, 4), 0.9])
        names = np.array(["car", "pedestrian"])
        return Detections.make(
            "base_link", None, np.array(at)[kept], np.ones((sum(kept), 3)), None, list(names[kept]), score[kept]
        )

class Third:
    """Remembers, and loses its obstacle at the third cloud in a row that lacks points."""
    def __init__(self):
        self.short = 0
    def __call__(self, points):
        self.short = self.short + 1 if len(points) < 1000 else 0
        return seen(int(self.short < 3))

class Dies:
    """Is gone after so many calls."""
    def __init__(self, after):
        self.left = after
    def __call__(self, points):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("gone")
        return seen(int(len(points) >= 1000))
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("shrink")
    write_bundles(directory / "drive", bundles(COUNT, points=POINTS))
    (directory / "shrink_stack.py").write_text(STACK)
    (directory / "dropped.yaml").write_text(
        json.dumps(
            {
                **{"id": "dropped", "kind": "expected", "because": "for tests", "min_decided": 1},
                **{"mutate": [{"points_dropped": {"share": 0.2}}], "check": "obstacles_kept"},
            }
        )
    )
    (directory / "noise.yaml").write_text(
        json.dumps(
            {
                **{"id": "noise", "kind": "expected", "because": "for tests", "min_decided": 1},
                **{"mutate": [{"noise_outside_roi": {"points": 40}}], "check": "obstacles_kept"},
            }
        )
    )
    return directory


@pytest.fixture(autouse=True)
def pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make no report.html, but where it is looked for."""
    with nullcontext() if "with_pages" in request.fixturenames else no_pages():
        yield


@pytest.fixture
def with_pages() -> None:
    """Ask for report.html."""


def stack(place: Path, name: str, stateless: bool = True, **params: Any) -> str:
    told = {"name": name, "callable": f"shrink_stack:{name}", "stateless": stateless, "params": params}
    path = place / f"{name}.yaml"
    path.write_text(json.dumps({**told, "outputs": {"detections": {}}}))
    return str(path)


def replayed(place: Path, out: Path, of: str, relation: str = "dropped.yaml", limit: int = 2) -> Path:
    asked = ReplayRequest((str(place / "drive"),), (str(place / relation),), of, transport="inprocess", limit=limit)
    run = Run.create(asked, str(out))
    carry_out(run)
    return run.out


def shrunk(capsys: pytest.CaptureFixture[str], run: Path, pair: str, *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["shrink", str(run), pair, "--json", *words])
    told = capsys.readouterr()
    assert told.out, told.err
    return code, json.loads(told.out)


def ends(run: Path) -> dict[str, str]:
    return {line["pair"]: line["outcome"] for line in read_journal(run / "result.jsonl") if line["type"] == "verdict"}


def ahead(place: Path) -> int:
    """How many points the stack sees ahead: x of its frame."""
    from mt_nodes.stacks.callable_host import as_points

    cloud = bundles(2, points=POINTS)[1].clouds[0]
    return int((as_points(cloud, "lidar", bundles(1)[0].transforms)[:, 0] > 0).sum())


@pytest.mark.usefixtures("with_pages")
def test_exactly_the_points_that_matter_are_left(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = 7
    of = stack(place, "Ahead", least=ahead(place) - needed + 1)
    run = replayed(place, tmp_path / "run", of)
    code, told = shrunk(capsys, run, "0/1/dropped/0")
    assert code == 0 and told["complete"] and told["deterministic_so_far"]
    assert told["before_after"]["points removed"] == {"before": "200", "after": str(needed)}
    assert not told["is_followup_of_mutation"] and "expected 1000 less" in told["why"]

    out = Path(told["results"])
    assert out == run / "shrunk" / "0_1_dropped_0" and ends(out) == {"0/1/dropped/0": "VIOLATED"}
    assert (out / "evidence" / evidence_name(Pair.parse("0/1/dropped/0"))).is_file()
    assert (out / "report.html").is_file() and load_relation(str(out / "relation.yaml")).id == "dropped"
    left = Reduction.load(out / "reduction.npz")
    rows = [value for name, value in load_draws(out, find_followup(out, Pair.parse("0/1/dropped/0")))[0].items()]
    assert left.mask is not None and int(left.mask.sum()) == needed
    assert any(isinstance(value, np.ndarray) and len(value) == len(left.mask) for value in rows)


def test_which_points_did_it_and_how_the_score_falls_with_each_of_them(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Doubts"), "noise.yaml")
    _, told = shrunk(capsys, run, "0/1/noise/0", "--out", str(tmp_path / "small"))
    needed = np.array(told["needed_points"])
    assert needed.shape == (3, 3) and (np.hypot(needed[:, 0], needed[:, 1]) > 89.0).all()
    drawn = np.load(
        tmp_path / "small" / "evidence" / f"{evidence_name(Pair.parse('0/1/noise/0')).removesuffix('.mcap')}.npz"
    )
    assert len(drawn["added_xyz"]) == 3, "the picture shows what is left"
    path = told["score_path"]
    assert path["atoms"] == [0, 1, 2, 3] and path["violated"] == [False, False, False, True]
    (car,) = path["objects"]
    assert (car["label"], car["at"], car["scores"]) == ("car", [10.0, 0.0], [0.95, 0.95, 0.75, 0.55, 0.0])
    assert main(["shrink", str(run), "0/0/noise/0", "--out", str(tmp_path / "other")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("needed: a point at x") == 3 and f"mt reproduce {tmp_path / 'other'}" in shown
    assert main(["show", str(tmp_path / "other")]) == 0 and capsys.readouterr().out == shown
    assert "car at 10, 0" in shown and "3!" in shown and "pedestrian" not in shown


def test_the_smallest_case_is_reproduced_and_shrinks_no_more(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Ahead", least=ahead(place) - 2))
    _, told = shrunk(capsys, run, "0/1/dropped/0")
    assert main(["reproduce", told["results"], "0/1/dropped/0", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["same_followup"] and again["from_seed"] == again["from_draws"] and again["differs"] == []
    assert again["expected"] != find_followup(run, Pair.parse("0/1/dropped/0"))["sha256"]


def test_the_weakest_strength_is_the_threshold(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 1,000 points 73 are lost from a share of 0.0725 on."""
    run = replayed(place, tmp_path / "run", stack(place, "Many", least=POINTS - 72))
    _, told = shrunk(capsys, run, "0/1/dropped/0")
    row = told["before_after"]["points_dropped.share"]
    weakest = load_relation(str(Path(told["results"]) / "relation.yaml")).mutate[0].share  # type: ignore[attr-defined]
    assert row["before"] == "0.2" and row["after"] == f"{weakest:g}"
    assert 0.0725 <= weakest <= 0.0725 * (0.2 / 0.0001) ** (1 / 128)
    assert told["before_after"]["points removed"]["after"] == "73"


def test_what_fails_by_chance_is_confirmed_and_never_called_deterministic(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    violated = ""
    for seed in range(20):
        run = replayed(place, tmp_path / f"run{seed}", stack(place, "Chance", seed=seed))
        violated = next((pair for pair, end in ends(run).items() if "/dropped/" in pair and end == "VIOLATED"), "")
        code, told = shrunk(capsys, run, violated) if violated else (0, {"first": {"failed": 5}})
        if 0 < told["first"]["failed"] < 5:
            break
    assert violated and code == 0 and not told["deterministic_so_far"]
    assert told["first"]["plays"] == 5
    for step in told["steps"]:
        assert step["failed_enough"] == (step["failed"] == 4) and step["failed"] <= 4 and step["plays"] <= 5
    assert main(["shrink", str(run), violated, "--plays", "5"]) in (0, 3)
    assert "by chance" in capsys.readouterr().out


def test_a_stack_that_remembers_is_given_the_shortest_window(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Third", stateless=False), limit=COUNT)
    pair = "0/9/dropped/0"
    assert ends(run)[pair] == "VIOLATED"
    code, told = shrunk(capsys, run, pair)
    assert code == 0 and told["before_after"]["bundles"] == {"before": "10", "after": "3"}
    out = Path(told["results"])
    left = Reduction.load(out / "reduction.npz")
    assert (left.first, left.end) == (7, 10)
    assert ends(out) == {"0/7/dropped/0": "HOLDS", "0/8/dropped/0": "HOLDS", pair: "VIOLATED"}
    assert told["before_after"]["points removed"]["after"] == "1"
    assert main(["reproduce", str(out), pair, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_followup"]


def test_a_budget_ends_it_and_keeps_the_best(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Many", least=POINTS - 20))
    code, told = shrunk(capsys, run, "0/1/dropped/0", "--plays", "12")
    assert code == 0 and not told["complete"] and "budget" in told["notes"][-1]
    assert sum(step["plays"] for step in told["steps"]) <= 12 - 5
    assert ends(Path(told["results"])) == {"0/1/dropped/0": "VIOLATED"}


@pytest.mark.parametrize("after", [1, 3, 9, 20])
def test_an_interruption_keeps_the_best_so_far(place: Path, tmp_path: Path, after: int) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Many", least=POINTS - 20))
    shrinking = ShrinkRun.create(ShrinkRequest(str(run), "0/1/dropped/0"), str(tmp_path / "out"))

    def tell(play: int, words: str) -> None:
        if play == after:
            raise KeyboardInterrupt

    told = shrink(
        shrinking, lambda ending: in_process_arms(shrinking.run, ending), lambda line: None, lambda verdicts: None, tell
    )
    assert told["exit_code"] == 130 and not told["complete"]
    assert read_result(tmp_path / "out" / "shrunk.json") == told
    assert list(ends(tmp_path / "out").values()) == (["VIOLATED"] if after > 5 else [])
    assert read_result(tmp_path / "out" / "summary.json")["exit_code"] == 130


def test_a_stack_that_dies_keeps_the_best_so_far(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Dies", after=16))
    code, told = shrunk(capsys, run, "0/1/dropped/0")
    assert code == 4 and "gone" in told["trouble"]["infrastructure"]
    assert ends(Path(told["results"])) == {"0/1/dropped/0": "VIOLATED"}


def test_what_no_longer_fails_is_said(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Many", least=POINTS - 20))
    stack(place, "Many", least=1)
    code, told = shrunk(capsys, run, "0/1/dropped/0")
    assert code == 3 and told["first"] == {"failed": 0, "plays": 5} and not told["steps"]
    assert main(["shrink", str(run), "0/1/dropped/0", "--confirm", "1/1"]) == 3
    assert "there is nothing to reduce" in capsys.readouterr().out


def test_what_was_not_violated_is_refused(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Many", least=1))
    assert main(["shrink", str(run), "0/1/dropped/0"]) == 2
    assert "ended as HOLDS, expected a VIOLATED one" in capsys.readouterr().err
    assert not (run / "shrunk").exists()
    for words in (("--confirm", "3"), ("--confirm", "0/3")):
        assert main(["shrink", str(run), "0/1/dropped/0", *words]) == 2


def test_a_check_that_asks_for_the_change_keeps_what_the_mutation_vouches_for(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blind from the start: what the mutation says that it added must be seen, whether any point of it is left."""
    (place / "seen.yaml").write_text(
        json.dumps(
            {
                **{"id": "added", "kind": "expected", "because": "for tests", "min_decided": 1},
                **{"mutate": ["ten_lost"], "check": {"must_report": {}}},
            }
        )
    )
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "must_report.py").write_text(
        "from dataclasses import dataclass\n"
        "from mt_nodes.relations.checks.base import Check\n"
        "from mt_nodes.relations.mutations.base import Followup, Mutation\n"
        "from mt_nodes.data.verdict import Judgement, Outcome\n"
        "@dataclass(frozen=True)\n"
        "class TenLost(Mutation):\n"
        "    sensors = ('lidar',)\n"
        "    def draw(self, rng, bundle, state):\n"
        "        return {}\n"
        "    def apply(self, bundle, draw):\n"
        "        fewer = [c.with_raw(c.raw[10:]) for c in bundle.clouds]\n"
        "        return Followup(((0, bundle.with_clouds(fewer)),))\n"
        "    def guarantee(self, source, followup, draw):\n"
        "        lost = len(source.cloud()) - len(followup.first.cloud())\n"
        "        return None if lost in (4, 10) else f'{lost} lost'\n"
        "@dataclass(frozen=True)\n"
        "class MustReport(Check):\n"
        "    '''The follow-up must have another answer, because the effects say that something was done.'''\n"
        "    needs = ('detections',)\n"
        "    def judge(self, source, followup, effects, bundle):\n"
        "        more = len(followup.detections) - len(source.detections) - 1\n"
        "        return Judgement(Outcome.HOLDS if more >= 0 else Outcome.VIOLATED, margin=more)\n"
    )
    asked = ReplayRequest(
        (str(place / "drive"),),
        (str(place / "seen.yaml"),),
        stack(place, "Many", least=0),
        transport="inprocess",
        limit=1,
        plugins=(str(plugins),),
    )
    run = Run.create(asked, str(tmp_path / "run"))
    carry_out(run)
    code, told = shrunk(capsys, run.out, "0/0/added/0")
    assert code == 0 and told["is_followup_of_mutation"]
    assert any("still vouches for" in note for note in told["notes"])
    assert told["before_after"]["points removed"]["after"] in ("4", "10")


def test_an_input_that_changed_is_not_shrunk(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Many", least=POINTS - 20))
    write_bundles(tmp_path / "other", bundles(2, points=POINTS - 1))
    assert main(["shrink", str(run), "0/1/dropped/0", "--bag", str(tmp_path / "other")]) == 2
    assert "cannot be made again bit for bit" in capsys.readouterr().err


def test_another_reduction_than_the_recorded_one_is_told(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = replayed(place, tmp_path / "run", stack(place, "Many", least=POINTS - 20))
    _, told = shrunk(capsys, run, "0/1/dropped/0")
    out = Path(told["results"])
    left = Reduction.load(out / "reduction.npz")
    Reduction(left.first, left.end, np.ones(3, dtype=bool)).save(out / "reduction.npz")
    assert main(["reproduce", str(out), "0/1/dropped/0"]) == InfrastructureError.exit_code
    assert "3 when it was made small" in capsys.readouterr().err
