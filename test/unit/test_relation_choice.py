# SPDX-License-Identifier: Apache-2.0
"""What the words of ``--relations`` stand for: nothing is left out silently, and nothing stands for nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import yaml

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.named_suites import names_from_suite_file, suites
from mt_nodes.relations.relation import FOLDER, LOOP_FOLDER, load_relation
from mt_nodes.runs.campaign.file import CampaignRelation
from mt_nodes.runs.campaign.relation_variants import relations_for
from mt_nodes.runs.relation_choice import (
    RelationChoice,
    choose_relations,
    left_out_lines,
    members_of,
    suite_members,
    tags_of,
)
from mt_nodes.stacks.stack import load_stack

NAMED = {"smoke", "weather", "sensor_faults", "objects", "paper", "camera", "control"}


def chosen(*words: str, stack: str = "reference_detector", loop: bool = False) -> RelationChoice:
    return choose_relations(words, partial(incompatibility, stack=load_stack(stack), loop=loop), loop=loop)


def members(word: str, loop: bool = False) -> tuple[str, ...]:
    found = members_of(word, loop)
    assert found is not None
    return found


def test_a_pattern_stands_for_what_it_matches_and_the_rest_is_named_with_the_reason() -> None:
    found, names = chosen("noise_*"), {name for name in resources.shipped(FOLDER) if name.startswith("noise_")}
    assert set(found.relations) | set(found.left_out) == names
    of_perception = {f"noise_outside_roi_1000_{what}" for what in ("tracks", "predictions", "occupied", "free")}
    need_tracks = {
        "noise_keeps_tracks_100",
        *(f"noise_outside_roi_100_{what}" for what in ("track_ids", "ids_over_time")),
    }
    assert set(found.left_out) == {"noise_beside_lane_keeps_current", *need_tracks, *of_perception}
    assert "judges control" in found.left_out["noise_beside_lane_keeps_current"]
    lines = left_out_lines(found.left_out)
    assert any(line.startswith("left out 1 relation: judges control") for line in lines) and len(lines) == 5


def test_all_is_every_relation_but_control_sham_and_rules() -> None:
    found = chosen("all")
    assert {*found.relations, *found.left_out} == {*resources.shipped(FOLDER)} - {
        *("identity", "points_permuted", "pixels_dithered", "points_permuted_pixels_dithered")
    }
    drives = chosen("all", stack="reference_planner", loop=True)
    assert {*drives.relations, *drives.left_out} == {*resources.shipped(LOOP_FOLDER)} - {"sensors_resampled"}


def test_a_relation_that_was_named_itself_is_never_left_out() -> None:
    """The run refuses it and says why: who names a relation wants to know."""
    assert chosen("brightness_lowered_boxes", "noise_*").relations[0] == "brightness_lowered_boxes"


def test_words_that_share_relations_give_each_once_but_a_name_typed_twice_stays_twice() -> None:
    once = chosen("paper", "noise_outside_roi_10", "tag:noise_outside_roi").relations
    assert len(once) == len(set(once)) and once[:3] == suite_members("paper")
    assert chosen("noise_outside_roi_10", "noise_outside_roi_10").relations == ("noise_outside_roi_10",) * 2


@pytest.mark.parametrize(
    ("word", "loop", "said"),
    [
        ("nose_*", False, r"no relation matches 'nose_\*'; did you mean 'noise_\*'\?"),
        ("qqqq*", False, r"no relation matches 'qqqq\*'; `mt list relations`"),
        ("tag:fogg", False, "no relation has the tag 'fogg'; did you mean 'fog'"),
        ("wether", False, r"no relation 'wether'; did you mean 'weather'\?"),
        ("far_crowd_*", False, "far_crowd_brakes, far_crowd_collisions belong to the closed loop"),
        ("fog_monoton?", True, "fog_monotone belong to replays"),
        ("rules:germani", True, "did you mean 'germany'"),
        ("camera", False, "'camera' stands for .* of which none can be judged here: requires a camera"),
        ("paper", True, "of which none can be judged here: it judges answers to single inputs"),
    ],
)
def test_a_word_that_stands_for_nothing_is_an_error(word: str, loop: bool, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chosen(word, stack="reference_planner" if loop else "reference_detector", loop=loop)


def test_a_suite_file_is_what_is_in_it_and_its_files_are_beside_it(tmp_path: Path) -> None:
    own = {"id": "mine", "kind": "necessary", "because": "x", "mutate": ["points_permuted"], "check": "obstacles_kept"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    suite = tmp_path / "suite.yaml"
    suite.write_text("relations: [paper, mine.yaml, 'fog_m*']", encoding="utf-8")
    mine = str(tmp_path / "mine.yaml")
    assert chosen(str(suite)).relations == (*suite_members("paper"), mine, "fog_monotone")
    assert chosen(mine).relations == (mine,)
    for empty in ("relations: []", "relations:", "relations: ['']"):
        suite.write_text(empty, encoding="utf-8")
        with pytest.raises(UsageError, match=r"suite\.yaml: relations: got .* expected a list of texts"):
            chosen(str(suite))


def test_a_campaign_chooses_for_each_stack_and_names_what_it_leaves_out() -> None:
    rows = (CampaignRelation("smoke", {}), CampaignRelation("paper", {}), CampaignRelation("fog_monotone", {"k": (1,)}))
    of_clouds, left_out = relations_for(load_stack("reference_detector"), rows)
    of_images, _ = relations_for(load_stack("reference_camera"), rows[:1])
    names = [one.name for one in of_clouds]
    assert names[-1] == "fog_monotone" and len(set(names)) == len(names) and set(suite_members("paper")) <= set(names)
    assert "brightness_lowered_boxes" in left_out and "brightness_lowered_boxes" in [one.name for one in of_images]
    assert not set(names) & set(left_out)
    with pytest.raises(UsageError, match="of which none can be judged here"):
        relations_for(load_stack("reference_camera"), rows[1:])


def test_the_suites_that_ship_are_whole() -> None:
    everything = {*members("all"), *members("all", loop=True)}
    assert set(suites()) >= NAMED
    assert not set(suites()) & {*everything, "all"}, "a word stands for one thing"
    families = {"noise", "weather", "objects", "geometry", "timing", "image", "radar", "sensor_faults"}
    assert {name for family in families for name in suite_members(family)} == everything
    for suite, path in suites().items():
        assert path.read_text(encoding="utf-8").startswith("# ")
        for word in names_from_suite_file(path):
            alone = set(suite_members(suite)) & {n for n in everything if _stands_for(word, n)}
            assert alone, f"{suite}: '{word}' matches nothing"


def _stands_for(word: str, name: str) -> bool:
    from fnmatch import fnmatchcase

    return word.removeprefix("tag:") in tags_of(name) if word.startswith("tag:") else fnmatchcase(name, word)


def test_tags_say_what_a_relation_changes_needs_and_judges() -> None:
    assert tags_of("fog_camera_not_faster") >= {"fog", "camera", "speed_not_higher", "expected", "control", "weather"}
    assert "drives" in tags_of("far_crowd_brakes") and "drives" not in tags_of("fog_monotone")
    assert {load_relation(name).requires for name in members("tag:lidar_only")} == {("lidar_only", "map_free")}


@pytest.mark.parametrize("stack", ["reference_detector", "reference_camera", "reference_both", "reference_driver"])
def test_the_smoke_suite_has_something_for_every_kind_of_stack(stack: str) -> None:
    assert len(chosen("smoke", stack=stack).relations) >= 3
