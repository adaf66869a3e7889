# SPDX-License-Identifier: Apache-2.0
"""What `mt inline` tells its operator: a line whenever something changes, and a table at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.cli import inline_command
from mt_nodes.runs.vehicle.interlock import cause
from mt_nodes.runs.vehicle.sentry import RelayFate

TOPIC = "/lidar/points"


def event(ambiguous: int = 0, replaced: int = 0, **more: Any) -> dict[str, Any]:
    told = {
        "relay": 1,
        "granted": True,
        "why": "",
        "mutator": True,
        "waiting_for": [],
        "changed": "",
        "guarded": True,
        "topics": {TOPIC: {"ambiguous": ambiguous, "replaced": replaced}},
    }
    return {**told, **more}


def shown(capsys: pytest.CaptureFixture[str], *events: dict[str, Any]) -> list[str]:
    line = inline_command._StateLine(on_stderr=False)
    for each in events:
        line.show(each)
    return [said.split(" ", 1)[1] for said in capsys.readouterr().out.splitlines()]


def test_the_same_is_said_once_and_what_is_new_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    no = event(granted=False, why="/dead_man: data is False")
    said = shown(capsys, no, no, event(), event(), no)
    only = "forwarding only: /dead_man: data is False"
    assert said == [only, "INPUT IS CHANGED", only]


def test_a_topic_that_cannot_be_changed_is_not_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    """As a bag that is played again and again: each stamp comes again."""
    said = shown(capsys, event(0, 3), event(5, 3), event(10, 3), event(10, 8), event(11, 9))
    assert said[0] == said[2] == "INPUT IS CHANGED" and len(said) == 3
    assert said[1].startswith(f"INPUT IS CHANGED (but not {TOPIC}: its messages have no stamp")


def test_where_no_topic_is_relayed_yet_nothing_is_said_to_be_changed(capsys: pytest.CaptureFixture[str]) -> None:
    (said,) = shown(capsys, event(topics={}, waiting_for=["/lidar/points_raw"]))
    assert said == "forwarding only: there is nothing to change (no publisher for /lidar/points_raw)"


def test_counts_of_another_relay_begin_anew(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, event(10, 3), event(4, 0, relay=2))
    assert len(said) == 2 and said[0] == "INPUT IS CHANGED" and TOPIC in said[1]


@pytest.mark.parametrize(
    "why",
    ["/a: nothing was heard for {} s", "/a: was published {} s before it came", "/odom: twist.linear.x is {}"],
)
def test_another_figure_of_the_same_reason_is_no_news(why: str, capsys: pytest.CaptureFixture[str]) -> None:
    events = [event(granted=False, why=why.format(figure)) for figure in ("0.56", "1.06", "-3.2", "1e-05", "2.5e-7")]
    assert shown(capsys, *events) == [f"forwarding only: {why.format('0.56')}"]
    assert len({cause(each["why"]) for each in events}) == 1
    assert cause("/gear2: data is 3") == "/gear2: data is 3"


def test_the_table_tells_what_was_not_replaced_and_who_took_over(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"originals": 7, "replaced": 0, "late": 0, "unasked": 0, "wrong": 0, "ambiguous": 1}
    summary = {
        "topics": {TOPIC: {**counts, "added_ms": {}}},
        "seconds": {"granted": 1.0},
        "restarts": {"relay": 3, "mutator": 1},
        "takeovers": [
            {"why": fate.value, "in_doubt": 0} for fate in (RelayFate.DIED, RelayFate.FROZEN, RelayFate.DEAF)
        ],
    }
    inline_command._print(json.loads(json.dumps(summary)), Path("out"))
    said = capsys.readouterr().out
    assert f"{TOPIC}: 1 message could not be replaced" in said
    assert "which died" in said and "sent no heartbeat" in said and "did not forward messages" in said
    assert "the relay was restarted 3 times" in said
    assert "the mutator was restarted 1 time\n" in said
