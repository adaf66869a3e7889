# SPDX-License-Identifier: Apache-2.0
"""What a run beside a live stack is told: its configuration file, and commands while it goes on."""

from __future__ import annotations

import dataclasses
import sys
import threading
from pathlib import Path

import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.runs.live.commands import CHANGEABLE, Commands, RunState
from mt_nodes.runs.live.config import LiveConfig, check_live, live_config
from mt_nodes.stacks.stack import Stack, load_stack

LOADED: tuple[str, ...] = ("noise_outside_roi_10", "fog_monotone", "cloud_mirrored")


def _commands(**given: object) -> Commands:
    return Commands(live_config(given, "test"), LOADED)


def test_a_configuration_survives_its_own_plain_form() -> None:
    config = live_config({"mode": "twin", "segments": {"test_bundles": 3, "swap_arms": True}, "delay_s": 0.2}, "test")
    assert live_config(config.as_plain(), "test") == config
    assert (config.segments.test_bundles, config.segments.settle_bundles) == (3, LiveConfig().segments.settle_bundles)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mode: shadwo", r"mode: got 'shadwo'.*shadow, twin, alternate"),
        ("segments: {tset_bundles: 3}", r"segments.*tset_bundles.*did you mean 'test_bundles'"),
        ("limits: {duty: 1.5}", r"duty.*1\.5"),
        ("segments: 3", r"segments: got int 3, expected a mapping"),
        ("relation: [a]", r"relation.*did you mean 'relations'"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused_with_the_key(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "live.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=told):
        live_config(read_mapping(path), str(path))


@pytest.mark.parametrize(
    ("given", "changes", "told"),
    [
        ({"mode": "alternate"}, {"stateless": False}, "alternate.*remembers"),
        ({"mode": "shadow", "segments": {"swap_arms": True}}, {}, "swap_arms.*expected mode: twin"),
        ({}, {"isolation": "remap"}, "only isolation: domain is safe"),
        ({"live_domain": 7, "control_domain": 7}, {}, "control_domain: got 7"),
        ({"live_domain": 7}, {"domain": {"source": 5, "followup": 7}}, "fixes domain 7.*no follow-up command"),
        ({"control_domain": 8}, {"domain": {"source": 8, "followup": 9}}, "fixes domain 8"),
    ],
)
def test_what_could_harm_or_cannot_work_is_refused(
    given: dict[str, object], changes: dict[str, object], told: str
) -> None:
    stack = load_stack("reference_detector")
    fits = live_config({key: value for key, value in given.items() if key == "live_domain"}, "test")
    check_live(fits, stack)
    with pytest.raises(UsageError, match=told):
        check_live(live_config(given, "test"), dataclasses.replace(stack, **changes))  # type: ignore[arg-type]


def test_a_stack_that_remembers_runs_beside_a_live_one() -> None:
    check_live(LiveConfig(), Stack(stateless=False))


def test_autostart_decides_how_a_run_begins_and_commands_how_it_goes_on() -> None:
    assert _commands().wishes.state is RunState.RUNNING
    commands = _commands(autostart=False)
    steps = (
        ("", RunState.WAITING),
        ("start", RunState.RUNNING),
        ("pause", RunState.PAUSED),
        ("start", RunState.RUNNING),
    )
    for command, state in (*steps, ("stop", RunState.STOPPING)):
        assert not command or getattr(commands, command)().ok
        assert commands.wishes.state is state


def test_a_run_that_ends_does_not_begin_again() -> None:
    commands = _commands()
    commands.stop()
    for late in (commands.start(), commands.pause()):
        assert not late.ok
        assert "mt live --config" in late.text
    assert commands.stop().ok
    assert commands.wishes.state is RunState.STOPPING


def test_relations_are_chosen_among_those_loaded() -> None:
    commands = _commands()
    assert commands.wishes.relations == LOADED
    assert commands.choose(["cloud_mirrored", "fog_monotone"]).ok
    assert commands.wishes.relations == ("cloud_mirrored", "fog_monotone")
    for wrong, told in (
        (["fog_monotne"], "did you mean 'fog_monotone'"),
        (["zzz"], "loaded are noise_outside_roi_10"),
        ([], "expected some of"),
        (["fog_monotone", "fog_monotone"], "twice"),
    ):
        reply = commands.choose(wrong)
        assert not reply.ok
        assert told in reply.text
    assert commands.wishes.relations == ("cloud_mirrored", "fog_monotone")
    for words in (["all"], ["*"], ["noise_*", "tag:cloud_mirrored", "weather"]):
        assert commands.choose(words).ok and set(commands.wishes.relations) == set(LOADED)
    assert commands.choose(["weather"]).ok and commands.wishes.relations == ("fog_monotone",)
    assert not commands.choose(["rain_*"]).ok and not commands.choose(["tag:qqq"]).ok


def test_what_is_safe_changes_and_the_rest_is_refused_with_a_reason() -> None:
    commands = _commands()
    assert commands.change("segments.test_bundles", 7).ok
    assert commands.change("limits.duty", 0.25).ok
    assert (commands.wishes.segments.test_bundles, commands.wishes.limits.duty) == (7, 0.25)
    for name, value, told in (
        ("seed", 3, "holds for the whole run"),
        ("delay_s", 0.5, "holds for the whole run"),
        ("segments.test_bundles", 0, "test_bundles"),
        ("segments.test_bundles", "many", "test_bundles"),
        ("limits.duti", 0.1, "did you mean 'limits.duty'"),
        ("segments.swap_arms", True, "mode twin only"),
    ):
        reply = commands.change(name, value)
        assert not reply.ok, name
        assert told in reply.text
    assert commands.wishes.segments.test_bundles == 7


def test_every_changeable_parameter_takes_its_own_value() -> None:
    commands = _commands(mode="twin")
    for part, keys in CHANGEABLE.items():
        for key in keys:
            assert commands.change(f"{part}.{key}", getattr(getattr(commands.wishes, part), key)).ok


def test_commands_of_several_threads_are_all_kept() -> None:
    commands = _commands()
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    names = ("settle_bundles", "test_bundles", "restart_after_bundles", "give_up_after_restarts")

    def change(name: str) -> None:
        for value in range(1, 51):
            assert commands.change(f"segments.{name}", value).ok

    threads = [threading.Thread(target=change, args=(name,)) for name in names]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval_s)
    assert {name: getattr(commands.wishes.segments, name) for name in names} == dict.fromkeys(names, 50)
