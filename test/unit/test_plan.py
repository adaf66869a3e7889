# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import cv2
import pytest
from recordings import START_NS, cloud, drive, image, recorded, stamp, text, tree, write_bag

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.stack_topics import OutputTopic
from mt_nodes.engine.plan import ArmPlan, ReplayRequest, arm_plans, check_request, stack_process, suite_process
from mt_nodes.runs.replay.execute import Run
from mt_nodes.stacks.stack import Stack, load_stack

REQUEST = ReplayRequest(("bag",))
STACK = Stack(name="mine", callable="my_model:detect", stateless=True)
COMMAND = Stack(name="cmd", command=("run", "{arm}", "{domain}", "{remap}"), stateless=True)


def request(**changes: Any) -> ReplayRequest:
    return dataclasses.replace(REQUEST, **changes)


def stack(of: Stack = STACK, **changes: Any) -> Stack:
    return dataclasses.replace(of, **changes)


EXTERNAL = stack(callable="", start="external", domain={"source": 41, "followup": 42}, nodes=("/a",))


@pytest.mark.parametrize(
    ("asked", "under_test", "message"),
    [
        (
            request(mode="shadow"),
            STACK,
            "got 'shadow', expected twin, alternate, two_pass; shadow needs a live",
        ),
        (request(mode="twins"), STACK, "--mode: got 'twins'"),
        (request(pace="fast"), STACK, "--pace: got 'fast', expected lockstep, realtime"),
        (request(transport="udp"), STACK, "--transport: got 'udp', expected ros, inprocess"),
        (request(mode="alternate"), stack(stateless=False), "remembers .*; use twin or two_pass"),
        (request(transport="inprocess"), COMMAND, "is not a Python callable; use --transport ros"),
        (request(pace="realtime", mode="alternate"), STACK, "needs --transport ros and --mode twin"),
        (request(pace="realtime", transport="inprocess"), STACK, "needs --transport ros and --mode twin"),
        (request(mode="two_pass"), EXTERNAL, "'mine' is external: it cannot be restarted"),
        (request(), stack(EXTERNAL, stateless=False), "'mine' is external: it cannot be restarted"),
        (request(), stack(domain={"source": 41, "followup": 41}), "expected a different one for followup"),
        (request(), stack(domain={"source": 41}), "expected a different one for followup"),
        (request(rate=0.0), STACK, "--rate: got 0, expected more than 0"),
        (request(rate=float("nan")), STACK, "--rate: got nan"),
    ],
)
def test_what_cannot_run_is_refused_with_what_to_type(asked: ReplayRequest, under_test: Stack, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_request(asked, under_test)


@pytest.mark.parametrize(
    ("asked", "under_test"),
    [
        (request(), STACK),
        (request(mode="two_pass"), stack(stateless=False)),
        (request(mode="alternate"), stack(EXTERNAL, domain={"source": 41})),
        (request(pace="realtime", rate=0.5), COMMAND),
        (request(), stack(COMMAND, isolation="remap", domain={"source": 41})),
    ],
)
def test_what_can_run(asked: ReplayRequest, under_test: Stack) -> None:
    check_request(asked, under_test)


def test_arms() -> None:
    assert arm_plans(request(), STACK) == (ArmPlan("source", None), ArmPlan("followup", None))
    assert arm_plans(request(mode="two_pass"), STACK) == (ArmPlan("source", None),)
    assert [p.domain for p in arm_plans(request(), EXTERNAL)] == [41, 42]
    remapped = arm_plans(request(), stack(isolation="remap", domain={"source": 7}))
    assert remapped == (ArmPlan("source", 7, "/mt/source"), ArmPlan("followup", 7, "/mt/followup"))
    assert remapped[1].topic("/points") == "/mt/followup/points"


def test_a_command_gets_its_arm_its_domain_and_the_users_environment() -> None:
    given = stack(COMMAND, env={"MODEL": "small"})
    process = stack_process(given, ArmPlan("source", None), 41, Path("out"), {"HOME": "/me"})
    assert process is not None
    assert process.argv == ("run", "source", "41") and process.log == Path("out/stack_source.log")
    assert (process.env["ROS_DOMAIN_ID"], process.env["MODEL"], process.env["HOME"]) == ("41", "small", "/me")
    assert "MALLOC_TOP_PAD_" not in process.env, "memory settings are for our own nodes"
    assert Path(process.env["FASTRTPS_DEFAULT_PROFILES_FILE"]).is_file()


def test_remap_rules_name_everything_a_stack_is_given_or_says() -> None:
    given = stack(
        COMMAND,
        command=("run", "--ros-args", "{remap}"),
        isolation="remap",
        inputs={"lidar": "/points", "camera": "/image"},
        outputs={"detections": OutputTopic("/boxes", "x/msg/Y")},
    )
    process = stack_process(given, ArmPlan("followup", None, "/mt/followup"), 41, Path("out"), {})
    assert process is not None
    rules = process.argv[2:]
    assert rules[::2] == ("-r",) * (len(rules) // 2)
    assert set(rules[1::2]) == {
        f"{topic}:=/mt/followup{topic}" for topic in ("/points", "/image", "/boxes", "/clock", "/tf", "/tf_static")
    }


def test_a_callable_is_hosted_by_a_node_of_the_package() -> None:
    process = stack_process(stack(env={"A": "1"}), ArmPlan("source", None, "/mt/source"), 41, Path("out"), {})
    assert process is not None
    assert process.argv[:3] == (sys.executable, "-m", "mt_nodes.nodes.callable_stack")
    words = list(process.argv)
    assert words[words.index("--stack") + 1] == "out/stack.yaml"
    assert words[words.index("--transforms") + 1] == "out/transforms.yaml"
    assert words[words.index("--prefix") + 1] == "/mt/source"
    assert process.env["ROS_DOMAIN_ID"] == "41" and process.env["A"] == "1"


def test_nobody_starts_an_external_stack() -> None:
    assert stack_process(EXTERNAL, ArmPlan("source", 41), 41, Path("out"), {}) is None


def test_the_suite_stays_in_the_users_domain_and_writes_to_the_console_log() -> None:
    process = suite_process(Path("out"), {"ROS_DOMAIN_ID": "9"})
    assert process.argv[-2:] == ("--run", "out") and process.log == Path("out/console.log")
    assert process.env["ROS_DOMAIN_ID"] == "9"


def test_plugins_reach_the_hosted_callable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_directories", [tmp_path])
    process = stack_process(STACK, ArmPlan("source", None), 41, Path("out"), {})
    assert process is not None
    assert process.argv[process.argv.index("--plugins") + 1] == str(tmp_path)


def test_a_request_survives_json() -> None:
    asked = request(relations=("a", "b"), topics={"lidar": "/points"}, limit=3, faults=("f",), rate=0.5)
    assert ReplayRequest.from_plain(json.loads(json.dumps(asked.as_plain()))) == asked


# --- what a run makes of bags


def user_stack(tmp_path: Path, **more: Any) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps({"callable": "my_model:detect", "inputs": {"lidar": "/in"}, **more}))
    return str(path)


NOISE = ("noise_outside_roi_10",)


def test_topics_reach_the_stack_under_its_own_names(tmp_path: Path) -> None:
    rows = [*drive(3), text(0, "x", "/clock"), text(0, "x", "/perception/obstacles"), text(0, "x", "/in")]
    bag = write_bag(tmp_path / "bag", sorted(rows, key=lambda r: r.received_ns))
    run = Run.make(request(bags=(str(bag),), relations=NOISE, stack=user_stack(tmp_path)), tmp_path)
    topics, required = run.topics()
    assert required == {"/points"}
    assert tuple(topics["/points"]) == ("/in", codec.POINT_CLOUD, False)
    assert topics["/tf_static"].latched, "readers that come late need it"
    assert {t: row.topic for t, row in topics.items() if t != "/points"} == {
        t: t for t in ("/tf_static", "/note", "/camera/image", "/camera/camera_info")
    }, "neither another publisher's /in, nor the stack's own former output, nor /clock"


def test_several_bags_may_have_the_cloud_on_other_topics(tmp_path: Path) -> None:
    bags = [write_bag(tmp_path / "a", drive(2))]
    static = [r for r in drive(1) if r.topic == "/tf_static"]
    bags.append(write_bag(tmp_path / "b", [*static, recorded(cloud(0, "/other"))]))
    run = Run.make(request(bags=tuple(map(str, bags)), relations=NOISE, stack=user_stack(tmp_path)), tmp_path)
    topics, required = run.topics()
    assert required == {"/points", "/other"} and topics["/other"].topic == topics["/points"].topic == "/in"
    assert run.pairs_to_come == (2 + 1) * 3


def test_a_run_directory_says_everything_again(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(2))
    asked = request(bags=(str(bag),), relations=NOISE, stack=user_stack(tmp_path), limit=1)
    run = Run.make(asked, tmp_path)
    run.save()
    again = Run.load(tmp_path)
    assert again.request == asked and again.stack == run.stack
    assert load_stack(str(tmp_path / "stack.yaml")) == run.stack
    assert run.pairs_to_come == 3


def test_bags_whose_sensor_stands_elsewhere_are_refused(tmp_path: Path) -> None:
    one = write_bag(tmp_path / "one", drive(1))
    moved = codec.encode_transforms(
        tree().extended([dataclasses.replace(tree().transforms[0], matrix=MOVED)]), START_NS
    )
    rows = [r._replace(cdr=moved) if r.topic == "/tf_static" else r for r in drive(1)]
    two = write_bag(tmp_path / "two", rows)
    named = user_stack(tmp_path, points_frame="base_link")
    run = Run.make(request(bags=(str(one), str(two)), relations=NOISE, stack=named), tmp_path)
    with pytest.raises(UsageError, match=r"lidar stands elsewhere in base_link.*replay the bags one by one"):
        run.save()


MOVED = tree().transforms[0].matrix.copy()
MOVED[0, 3] += 1.0


@pytest.mark.parametrize(
    ("changes", "stack_changes", "message"),
    [
        ({"bags": ()}, {}, "got no bag to replay"),
        ({"relations": NOISE}, {"inputs": "camera"}, "'noise_outside_roi_10' requires a lidar; stack 'mine' has no"),
        ({}, {"outputs": "control"}, "'noise_outside_roi_10' judges detections; stack 'mine' says no such"),
        (
            {},
            {"outputs": {"control": None, "detections": None}, "answer": ["control"]},
            "'noise_outside_roi_10' judges detections; stack 'mine' says no such",
        ),
        ({"topics": {"lidar": "/note"}}, {}, "--topic lidar=/note: got type std_msgs/msg/String"),
    ],
)
def test_runs_that_could_judge_nothing_are_refused(
    tmp_path: Path, changes: dict[str, Any], stack_changes: dict[str, Any], message: str
) -> None:
    bag = write_bag(tmp_path / "bag", drive(1))
    asked = request(
        **{"bags": (str(bag),), "relations": NOISE, "stack": user_stack(tmp_path, **stack_changes), **changes}
    )
    with pytest.raises(UsageError, match=message):
        Run.make(asked, tmp_path)


def test_a_callable_needs_images_that_show_something(tmp_path: Path) -> None:
    plain, whole = image(0), cv2.imencode(".jpg", image(0).pixels)[1].tobytes()
    first = dataclasses.replace(plain, pixels=plain.pixels[:0, :0], encoding="jpeg", compressed=whole)
    packed = [first, dataclasses.replace(first, stamp_ns=stamp(1), compressed=whole[:99])]
    bag = write_bag(tmp_path / "bag", map(recorded, packed))
    relation = tmp_path / "r.yaml"
    mine = {"id": "r", "kind": "expected", "because": "x", "mutate": ["noise_outside_roi"], "check": "obstacles_kept"}
    relation.write_text(json.dumps(mine))
    named = user_stack(tmp_path, inputs="camera")
    run = Run.make(request(bags=(str(bag),), relations=(str(relation),), stack=named), tmp_path)
    assert [bundle.index for bundle in run.episodes[0]()] == [0]
    [error] = [found.error for found in run.damage.bundles.values()]
    assert "bundle 1 at" in str(error) and "/camera/image: got 99 bytes of JPEG that are cut off" in str(error)
