# SPDX-License-Identifier: Apache-2.0
"""Reads the common part of OpenSCENARIO 1.0 to 1.3 (``.xosc``).

Files are validated against the schemas of the library `scenariogeneration` (`pip install 'mt_nodes[openscenario]'`),
then read as follows; anything not named here is refused by name, because leaving it out would change the scenario.

- `ParameterDeclarations` of the file and of stories: `$name` anywhere, and arithmetic `${…}`; each of the file can be
  set from outside.
- `CatalogLocations`: entities, manoeuvres and routes of catalogues, with `ParameterAssignments`.
- `RoadNetwork/LogicFile`: an OpenDRIVE file beside the scenario, else the file name without its extension is the name
  of a shipped map. `LanePosition` refers to lanes of that file, or to lanes named `<roadId>.<laneId>` or `<roadId>`.
- `Entities`: `Vehicle`, `Pedestrian`, `MiscObject` with `BoundingBox`; the ego is named `ego` or `hero` and has the
  dimensions of its `BoundingBox` and `Axles`; `--set ego=NAME` names another entity. A pedestrian of category `animal`
  is of the species in the property `moral:species`, by default a deer. Properties `moral:age`, `gender`, `skin`,
  `mobility`, `build`, `status`, `rule` are attributes of people.
- `Init`: `TeleportAction` (`WorldPosition`, `LanePosition`, `RelativeWorldPosition`, `RelativeObjectPosition`,
  `RelativeLanePosition`), absolute and relative `SpeedAction`, `EnvironmentAction`: time of day, fog by its visual
  range, precipitation, clouds, wetness. A vehicle on a lane of an OpenDRIVE file follows it, straight on.
- Ways of acts: `FollowTrajectoryAction` along a `Polyline`, `AcquirePositionAction`, `AssignRouteAction`, in the order
  of the file. The position that the ego is to reach is its target; everything else about it is left to the stack.
- Other actions of acts become events of our scenario, which begin when their triggers and that of their act hold:
  absolute and relative `SpeedAction` (also `continuous`), `LaneChangeAction` and absolute `LaneOffsetAction` on lanes
  of OpenDRIVE, `TrafficSignalStateAction`. `TrafficSignalController` without a delay are programmes of lights. Speeds
  change evenly, whatever their shape; an offset without `maxLateralAcc` takes 1 m/s² (assumed).
- Conditions: `SimulationTimeCondition`; between middles, or bumpers with `freespace`, `RelativeDistanceCondition` (not
  lateral), `TimeHeadwayCondition`, `TimeToCollisionCondition` of two entities, all in a straight line;
  `DistanceCondition` and `ReachPositionCondition`; `SpeedCondition`, `AccelerationCondition` of the ego,
  `TraveledDistanceCondition`, `StandStillCondition`; `StoryboardElementStateCondition`, `TrafficSignalCondition`, and
  `ParameterCondition` if it holds. With groups, edges, delays, and triggering entities `any` and `all`. What starts a
  way knows only those of which all are the time or the approach of the ego. A `StopTrigger` with
  `SimulationTimeCondition` sets the maximum duration.
"""

from __future__ import annotations

import contextlib
import io
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from mt_nodes.base.errors import UsageError, needs_extra
from mt_nodes.base.yaml_files import read_text
from mt_nodes.world.drive.maps import is_map_file, load_map
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.drive.scenario_checks import checked
from mt_nodes.world.scenarios.open_scenario.entity_conversion import actors_and_obstacles, environment
from mt_nodes.world.scenarios.open_scenario.event_actions import programmes_of
from mt_nodes.world.scenarios.open_scenario.source import OpenScenarioFile
from mt_nodes.world.scenarios.open_scenario.story import Story, duration_s


def load_open_scenario(path: Path, parameters: Mapping[str, str] | None = None) -> Scenario:
    """Return the scenario of an OpenSCENARIO file.

    Args:
        parameters: values for names of its ``ParameterDeclarations``.

    Raises:
        UsageError: the library is missing, the file is invalid, or it has unsupported content; all of it is named.
    """
    text = read_text(path)
    _validate(path)
    return scenario_of(text, path.name, parameters or {}, folder=path.parent)


def _validate(path: Path) -> None:
    """Validate a file against the schema of its version.

    The library's schemas alone are used: its reader fails on valid files (attributes that may be left out).
    """
    with needs_extra("openscenario", f"{path}: OpenSCENARIO needs a library; type"):
        from scenariogeneration.xosc import xosc_reader
    try:
        tree = ET.parse(path)
        with contextlib.redirect_stdout(io.StringIO()):
            if xosc_reader.validate_schema(tree):
                return
    except Exception as error:  # whatever the library raises about a file is a fact about that file
        raise UsageError(f"{path}: not OpenSCENARIO 1.x: {type(error).__name__}: {error}") from error
    raise UsageError(f"{path}: not valid by the schema of the OpenSCENARIO version that its FileHeader says")


def scenario_of(
    text: str, name: str, parameters: Mapping[str, str], road: RoadMap | None = None, folder: Path | None = None
) -> Scenario:
    """Return the scenario of an OpenSCENARIO text.

    Args:
        name: of the file. road: instead of the map that the text names. folder: of the file, from which its map and its
            catalogues are looked for; None: there is none.

    Raises:
        UsageError: it has unsupported content, or is not playable; all problems are named.
    """
    source = OpenScenarioFile.of(text, name, parameters, folder)
    logic = source.root.find("RoadNetwork/LogicFile")
    if logic is None:
        raise UsageError(f"{name}: got no RoadNetwork/LogicFile, expected one with the name of a map")
    road = road or _map(logic.get("filepath", "").replace("\\", "/"), folder)
    story = Story(source, road)
    ego, actors, obstacles = actors_and_obstacles(source, story.entities)
    surroundings, longest_s = environment(source), duration_s(source)
    source.done()
    assert ego is not None  # else it would not be done
    scenario = Scenario(
        *(PurePosixPath(name).stem, road.name, ego, actors, obstacles, surroundings, longest_s),
        signals=programmes_of(source, road),
        events=tuple(story.events),
    )
    checked(scenario, road)
    return scenario


def _map(file: str, folder: Path | None) -> RoadMap:
    """Return the map of a file beside the scenario, if there is one, else the shipped one of its name."""
    path = None if folder is None else folder / file
    if path is not None and is_map_file(path.name) and path.is_file():
        return load_map(str(path.resolve()))
    return load_map(PurePosixPath(file).stem)
