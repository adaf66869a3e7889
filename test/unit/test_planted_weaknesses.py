# SPDX-License-Identifier: Apache-2.0
"""The table of planted weaknesses: what counts as found, and that nothing counts where nothing was driven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planted_weaknesses import RULES, WAYS, compared, main, unfound

NAMES = (*RULES, *WAYS)


def arms(violated: int, decided: int = 20) -> dict[str, Any]:
    nothing = {"violated": 0, "decided": decided}
    return {"violated": violated, "decided": decided, "control": nothing, "sham": nothing}


def network(decided: int = 20, **violated: int) -> dict[str, dict[str, Any]]:
    return {name: arms(violated.get(name, 0), decided) for name in NAMES}


def test_a_weakness_is_found_where_the_network_violates_what_the_first_holds() -> None:
    driven = {
        "pilotnet": network(rain_slows=20),
        "pilotnet_no_night": network(rain_slows=20, night_slows=19),
        "pilotnet_no_rain": network(rain_slows=20, rain_keeps_way=15),
    }
    rows = compared(driven)
    assert unfound(rows) == []
    p = {(row["network"], row["relation"]): row["p"] for row in rows}
    assert p["pilotnet", "night_slows"] is None and p["pilotnet_no_rain", "night_slows"] == 1.0
    assert p["pilotnet_no_night", "night_slows"] < p["pilotnet_no_rain", "rain_keeps_way"] < 0.001
    assert p["pilotnet_no_night", "rain_slows"] == 1.0, "what both violate tells nothing of the weakness"


@pytest.mark.parametrize(
    ("no_night", "no_rain"),
    [
        (network(), network(rain_slows=20)),
        (network(night_slows=4), network(rain_slows=20)),
        (network(rain_slows=20), network(rain_slows=20)),
        (network(decided=0), network(rain_slows=20)),
    ],
    ids=["holds", "too few", "by another relation", "nothing decided"],
)
def test_it_is_not_found_otherwise(no_night: dict[str, Any], no_rain: dict[str, Any]) -> None:
    rows = compared({"pilotnet": network(), "pilotnet_no_night": no_night, "pilotnet_no_rain": no_rain})
    assert unfound(rows) == ["not found: that a network has learned nothing of night"]


def test_a_first_network_that_violates_as_often_or_more_finds_nothing() -> None:
    driven = {"pilotnet": network(night_slows=20), "pilotnet_no_night": network(), "pilotnet_no_rain": network()}
    assert len(unfound(compared(driven))) == 2


def test_without_a_network_to_compare_with_nothing_is_driven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path)])
    assert "got no pilotnet/weights.pt" in capsys.readouterr().err


def test_a_network_that_is_not_there_is_told() -> None:
    assert unfound(compared({"pilotnet": network()})) == ["no such network: night", "no such network: rain"]
