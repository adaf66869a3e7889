# SPDX-License-Identifier: Apache-2.0
"""The core of `mt blame`: divergences, what must stay, the test over repeats, and the walk through the graph."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.data.detections import Detections
from mt_nodes.data.regions import load_region
from mt_nodes.data.transforms import TransformTree
from mt_nodes.runs.blame.analysis import analyse
from mt_nodes.runs.blame.divergence import BoxesContent, FieldsContent, PictureContent, PointsContent, divergence
from mt_nodes.runs.blame.protection import Protection, protection_of
from mt_nodes.runs.blame.repeat_test import least_repeats, permutation_p
from mt_nodes.runs.blame.stack_graph import StackGraph, TopicState, find_blame
from mt_nodes.runs.blame.tape import Tape, TopicRecording
from mt_nodes.runs.blame.topic_measures import Evidence, Play

S, E, D, U = TopicState.SAME, TopicState.ELSEWHERE, TopicState.DIFFERS, TopicState.UNCLEAR
NODES = ("filter", "cluster", "track", "plan", "control")
CHAIN = StackGraph(
    {"filter": ("points",), "cluster": ("boxes",), "track": ("tracks",), "plan": ("path",), "control": ("command",)},
    dict(zip(NODES, (("cloud",), ("points",), ("boxes",), ("tracks",), ("path", "tracks")), strict=True)),
    dict.fromkeys(("cloud", "points", "boxes", "tracks", "path", "command"), "std_msgs/msg/String"),
    ("cloud",),
)
OUT = ("points", "boxes", "tracks", "path", "command")


def boxes(*centres: tuple[float, float]) -> BoxesContent:
    """Return cars of 4 by 2 m."""
    rows = [(x, y, 0.8) for x, y in centres]
    return BoxesContent(Detections.make("base_link", 1, rows, [(4.0, 2.0, 1.5)] * len(rows)))


@pytest.mark.parametrize("row", range(5))
def test_blame_names_the_first_node_of_a_chain_that_differs(row: int) -> None:
    states = {topic: D if i >= row else E for i, topic in enumerate(OUT)}
    blame = find_blame(CHAIN, states, ["command"])
    assert blame.located and blame.nodes == (NODES[row],)


def test_what_is_judged_and_does_not_differ_is_nobodys_fault() -> None:
    blame = find_blame(CHAIN, {**dict.fromkeys(OUT, D), "command": E}, ["command"])
    assert not blame.located and not blame.nodes


def test_a_topic_that_may_differ_leaves_two_candidates() -> None:
    blame = find_blame(CHAIN, {"points": E, "boxes": E, "tracks": E, "path": U, "command": D}, ["command"])
    assert not blame.located and set(blame.nodes) == {"plan", "control"}


def test_a_topic_that_was_not_recorded_is_not_taken_for_the_same() -> None:
    blame = find_blame(CHAIN, {"points": E, "boxes": D, "tracks": D}, ["tracks"])
    assert blame.nodes == ("cluster",)
    blame = find_blame(CHAIN, {"points": E, "tracks": D}, ["tracks"])
    assert not blame.located and set(blame.nodes) == {"cluster", "track"}


def test_in_a_cycle_the_first_instant_decides_and_without_one_all_are_named() -> None:
    graph = StackGraph({"a": ("x",), "b": ("y",)}, {"a": ("y", "in"), "b": ("x",)}, {}, ("in",))
    assert find_blame(graph, {"x": D, "y": D}, ["y"], {"x": 3, "y": 4}).nodes == ("a",)
    tied = find_blame(graph, {"x": D, "y": D}, ["y"], {"x": 3, "y": 3})
    assert not tied.located and set(tied.nodes) == {"a", "b"} and "feed each other" in tied.why


@given(st.lists(st.sampled_from([S, E, D]), min_size=5, max_size=5))
def test_a_named_node_has_an_output_that_differs_and_no_input_that_does(states: list[TopicState]) -> None:
    by_topic = dict(zip(OUT, states, strict=True))
    blame = find_blame(CHAIN, by_topic, ["command"])
    assert blame.located == (by_topic["command"] is D)
    for node in blame.nodes:
        assert any(by_topic[t] is D for t in CHAIN.publishes[node])
        assert not any(by_topic.get(t) is D for t in CHAIN.subscribes[node])


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_the_p_of_both_directions_covers_all_labellings(one: list[float], other: list[float]) -> None:
    p, reverse = permutation_p(one, other), permutation_p(other, one)
    assert p + reverse >= 1.0 - 1e-9 and min(p, reverse) >= 1 / math.comb(8, 4) - 1e-12


def test_repeats_that_never_differ_give_the_least_p_and_equal_ones_one() -> None:
    assert permutation_p([1.0] * 6, [0.0] * 6) == pytest.approx(1 / 924)
    assert permutation_p([0.5] * 6, [0.5] * 6) == 1.0
    assert least_repeats(6, 0.01) == 6 and least_repeats(2000, 0.01) is None


def test_flicker_is_rejected_as_seldom_as_it_says() -> None:
    rng = np.random.default_rng(1)
    p = np.array([permutation_p(*rng.exponential(size=(2, 5)).tolist()) for _ in range(400)])
    assert (p <= 0.05).mean() < 0.09


@given(st.integers(0, 20), st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_points_that_are_lost_are_counted_and_added_ones_are_not_held_against_anybody(lost: int, added: int) -> None:
    rng = np.random.default_rng(lost)
    cloud, more = rng.uniform(0, 30, (40, 3)), rng.uniform(40, 60, (added, 3))
    protection = protection_of([("base_link", cloud, np.vstack([cloud, more]))], False, None, 0.0, TransformTree())
    found = divergence(
        PointsContent("base_link", cloud), PointsContent("base_link", np.vstack([cloud[lost:], more])), protection
    )
    assert (found.whole > 0) == bool(lost or added)
    assert found.protected == pytest.approx(lost / (40 + 40 - lost))


def test_near_a_change_a_point_is_doubtful_unless_a_box_is_lost_there() -> None:
    cloud = np.array([[10.0, 0.0, 1.0], [12.0, 0.0, 1.0], [30.0, 0.0, 1.0]])
    after = np.vstack([cloud, [[10.0, 1.0, 1.0]]])
    protection = protection_of([("base_link", cloud, after)], False, None, 0.0, TransformTree())
    lost = PointsContent("base_link", cloud[1:])
    found = divergence(PointsContent("base_link", cloud), lost, protection)
    assert found.protected == 0 and found.doubtful > 0
    for disc, differs in (((10.0, 0.0, 2.0), True), ((30.0, 0.0, 2.0), False)):
        found = divergence(PointsContent("base_link", cloud), lost, protection, np.array([disc]))
        assert (found.protected > 0) == differs and found.doubtful == 0


def test_a_region_that_the_change_leaves_out_is_spared_only_if_nothing_in_it_changed() -> None:
    cloud, region = np.array([[10.0, 0.0, 1.0]]), load_region("front_40m")
    for x, spared in ((-5.0, True), (5.0, False)):
        clouds = [("base_link", cloud, np.vstack([cloud, [[x, 0.0, 1.0]]]))]
        assert protection_of(clouds, False, None, 0.0, TransformTree(), region).spared == spared


def test_boxes_in_the_region_must_stay_and_those_beside_it_may_change() -> None:
    protection = Protection(region=load_region("front_40m"), inset_m=1.0)
    moved = divergence(boxes((10, 0), (10, 20)), boxes((10, 0), (10, 25)), protection)
    assert moved.whole > 0 and moved.protected == 0
    lost = divergence(boxes((10, 0)), boxes(), protection)
    assert lost.protected == 1.0 and "lost" in lost.words


def test_where_everything_was_changed_no_point_is_protected_and_of_an_obstacle_that_it_is_there() -> None:
    rng = np.random.default_rng(0)
    fog = protection_of(
        [("base_link", rng.uniform(0, 30, (50, 3)), rng.uniform(0, 30, (50, 3)))],
        False,
        load_region("front_40m"),
        0.0,
        TransformTree(),
    )
    assert fog.everywhere and fog.of_points(np.zeros((1, 3)), "base_link") is None
    assert divergence(boxes((10, 0)), boxes((10.5, 0)), fog).protected == 0
    assert divergence(boxes((10, 0)), boxes(), fog).protected == 1


def test_images_and_fields() -> None:
    one, other = PictureContent(np.zeros((2, 2, 3), np.float32)), PictureContent(np.ones((2, 2, 3), np.float32))
    assert divergence(one, one, Protection()).whole == 0
    assert divergence(one, other, Protection()).whole == 1 and divergence(one, other, Protection()).protected is None
    before, after = (FieldsContent({"twist.linear.x": np.array([v])}) for v in (8.0, 4.0))
    found = divergence(before, after, Protection())
    assert found.protected == pytest.approx(0.5) and "twist.linear.x" in found.words
    nan = FieldsContent({"a": np.array([np.nan])})
    assert divergence(nan, nan, Protection()).whole == 0 and divergence(nan, None, Protection()).whole == 1


def test_a_message_is_of_the_instant_whose_stamp_it_bears() -> None:
    tape = Tape(lambda topic, data: int(data) or None)
    tape.put("t", b"5")
    tape.begin()
    tape.instant(0, 5)
    tape.instant(1, 6)
    for data in (b"5", b"6", b"0", b"7"):
        tape.put("t", data)
    assert tape.end().windows == {0: {"t": [b"5"]}, 1: {"t": [b"6", b"0", b"7"]}}


def _recording(values: dict[str, float]) -> TopicRecording:
    return TopicRecording({0: {topic: [str(value).encode()] for topic, value in values.items()}})


def _read(topic: str, data: bytes) -> FieldsContent:
    return FieldsContent({"value": np.array([float(data)])})


def _evidence(followup: dict[str, float], flicker: float = 0.0, violated: bool = True) -> Evidence:
    rng = np.random.default_rng(3)

    def arm(values: dict[str, float]) -> TopicRecording:
        return _recording({t: v + (flicker * rng.normal() if t != "cloud" else 0.0) for t, v in values.items()})

    source = dict.fromkeys(("cloud", *OUT), 10.0)
    pair = [Play(arm(source), arm({**source, **followup}), violated) for _ in range(6)]
    control = [Play(arm(source), arm(source)) for _ in range(6)]
    return Evidence(CHAIN, pair, control, ["command"], list(OUT), TransformTree(), last=0)


def test_a_difference_beyond_the_noise_is_traced_to_its_node() -> None:
    finding = analyse(_evidence({"cloud": 11.0, "tracks": 4.0, "path": 4.0, "command": 4.0}, 0.05), _read, 0.01)
    assert finding.blame.located and finding.blame.nodes == ("track",)


def test_a_play_that_lacks_the_judged_instant_locates_nothing() -> None:
    evidence = _evidence({"cloud": 11.0, "command": 4.0})
    evidence.control[2].followup.windows.clear()
    finding = analyse(evidence, _read, 0.01)
    assert not finding.blame.located and "recording" in finding.blame.why


def test_a_topic_on_which_nobody_speaks_is_no_suspect() -> None:
    evidence = _evidence({"cloud": 11.0, "command": 4.0})
    for play in (*evidence.pair, *evidence.control):
        for recording in (play.source, play.followup):
            del recording.windows[0]["path"]
    finding = analyse(evidence, _read, 0.01)
    assert finding.blame.located and finding.blame.nodes == ("control",)


def test_flicker_and_what_is_not_reproduced_are_never_blamed() -> None:
    assert not analyse(_evidence({"cloud": 11.0}, 3.0), _read, 0.01).blame.nodes
    held = analyse(_evidence({"cloud": 11.0, "command": 4.0}, violated=False), _read, 0.01)
    assert not held.blame.located and held.blame.why.startswith("not reproduced")


def test_the_graph_is_drawn_with_every_node_and_topic() -> None:
    from mt_nodes.report.blame_svg import blame_svg
    from mt_nodes.runs.blame.blame_json import as_plain

    evidence = _evidence({"cloud": 11.0, "tracks": 4.0, "path": 4.0, "command": 4.0})
    plain = as_plain({"pair": "0/0/r/0", "directory": "d"}, evidence, analyse(evidence, _read, 0.01), {})
    svg = blame_svg(plain)
    assert all(f">{name}</text>" in svg for name in (*NODES, *OUT))
    assert svg.count('class="node blamed"') == 1 and svg.count('class="topic differs"') == 3
    assert svg.count('class="pair"') == 6 * len(CHAIN.types) + 1, "a dot for each play, and one in the legend"


def test_a_judged_output_that_differs_where_it_may_is_nobodys_fault() -> None:
    """Ghosts outside the region are rightly there; what flicker violates inside it says nothing."""
    evidence = replace(_evidence(dict.fromkeys(("cloud", "boxes", "tracks"), 11.0)), judged=["tracks"])
    evidence = replace(evidence, region=load_region("front_40m"))

    def read(topic: str, data: bytes) -> BoxesContent | PointsContent:
        ghost = float(data) != 10.0
        if topic in ("cloud", "points"):
            return PointsContent("base_link", np.array([[10.0, 20.0, 1.0]] * ghost + [[10.0, 0.0, 1.0]] * 3))
        return boxes((10, 0), (10, 20)) if ghost else boxes((10, 0))

    finding = analyse(evidence, read, 0.01)
    assert finding.states["tracks"] is E and not finding.blame.nodes
