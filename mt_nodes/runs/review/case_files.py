# SPDX-License-Identifier: Apache-2.0
"""What raters see of a case: both inputs, both answers, and nothing that tells how it was judged."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import MtError
from mt_nodes.base.wording import counted
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.markers import ADD, CUBE, IMAGE_MARKER, LINES, MARKERS, PATH
from mt_nodes.data.messages import Wire
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.evidence import evidence_name, read_evidence
from mt_nodes.engine.pair_view import SHAPES, PairView, evidence_file, load_view
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.report import birdseye, camera_view
from mt_nodes.report.evidence_view import write_views
from mt_nodes.runs.again.changed_since import reproduction_verdict
from mt_nodes.runs.review.sample import FOLDER, SampledCase

#: Of arrays of a picture: what was concluded from it, and what only a violated pair would have.
_TELLING = ("lost_at", "gained_at", "lost_px", "gained_px", "added_xyz", "added_px", "expected_lines_px")
#: Numbers of an unknown message that are told.
_MOST_NUMBERS = 12
Play = Callable[[ReplayRequest, Path], Any]


class Shower:
    """Makes what is shown of cases, in ``review/cases`` of a results directory."""

    def __init__(self, results_dir: Path, play: Play, transport: str = "", bag: str = "") -> None:
        """Prepare.

        ``results_dir``: of a finished run. ``play``: carries out a replay of one pair, into a directory. ``transport``,
        ``bag``: as :meth:`mt_nodes.engine.recorded_pair.RecordedPair.request` takes them.
        """
        self._dir, self._play, self._how = results_dir, play, (transport, bag)

    def __call__(self, case: SampledCase) -> str:
        """Make what is shown of a case; return why that cannot be, "" when it could."""
        pair = Pair.parse(case.pair)
        if pair.bundle is None:
            return "it stands for a whole sequence, of which there are no pictures"
        try:
            shown = {"because": case.because, **self._shown(pair)}
        except MtError as error:
            return str(error)
        path = case_file(self._dir, case.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(shown))
        return ""

    def _shown(self, pair: Pair) -> dict[str, Any]:
        finished = RecordedPair.find(self._dir, str(pair))
        place = self._dir if finished.evidence.is_file() else self._played(finished)
        evidence = read_evidence(place / "evidence" / evidence_name(pair), pair)
        write_views(place, [str(pair)])
        view = load_view(evidence_file(place, pair))
        if place != self._dir:
            shutil.rmtree(place)
        return {
            "pictures": list(_pictures(blind(view))),
            "answers": [list(_answers(evidence.answers[arm])) for arm in ("source", "followup")],
        }

    def _played(self, finished: RecordedPair) -> Path:
        """Play a pair of which no evidence was kept again, and return where its evidence is now."""
        out = self._dir / FOLDER / "played" / str(finished.pair).replace("/", "_")
        if out.exists():
            shutil.rmtree(out)  # of a review that was interrupted
        out.parent.mkdir(parents=True, exist_ok=True)
        self._play(finished.request(*self._how), out)
        now = reproduction_verdict(out, finished.pair)
        was = finished.verdict.outcome
        if now is None or now.outcome is not was:
            ended = Outcome.ERROR if now is None else now.outcome
            raise MtError(f"played again it ended as {ended.value}, was {was.value} in the run")
        return out


def case_file(results_dir: Path, identifier: str) -> Path:
    """Return where what is shown of a case lies."""
    return results_dir / FOLDER / "cases" / f"{identifier}.json"


def blind(view: PairView) -> PairView:
    """Return a picture's arrays without what would tell the verdict."""
    empty: dict[str, Any] = {name: np.empty((0, *SHAPES[name])) for name in _TELLING}
    return replace(view, **empty)


def _pictures(view: PairView) -> Iterator[dict[str, str]]:
    """Yield what is seen by each way of looking, before and after the change, as data URIs."""
    if len(view.source_image):
        before, after = camera_view.draw(view)
        yield {"name": "camera", "before": before, "after": after}
    if len(view.source_xyz) or not len(view.source_image):
        before, after = birdseye.draw(view)
        yield {"name": "seen from above", "before": before, "after": after}


def _answers(wires: Iterable[Wire]) -> Iterator[str]:
    """Yield what an arm answered in words, message by message."""
    for wire in wires:
        tell = _DESCRIPTIONS.get(wire.type, _numbers)
        try:
            yield tell(codec.decode(wire.type, wire.cdr))
        except (LookupError, TypeError, ValueError):
            yield f"a message of type {wire.type}, which cannot be read here"


def _obstacles(message: Any) -> str:
    names = Counter(m.ns or "unknown" for m in message.markers if (m.action, m.type) == (ADD, CUBE))
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(names.items()))
    return counted(sum(names.values()), "obstacle") + (f": {kinds}" if kinds else "")


def _boxes(message: Any) -> str:
    return f"{len(message.points) // len(LINES)} found in the picture"


def _path(message: Any) -> str:
    places = np.array([[p.pose.position.x, p.pose.position.y] for p in message.poses]).reshape(-1, 2)
    return f"a path of {np.linalg.norm(np.diff(places, axis=0), axis=1).sum():.1f} m"


def _numbers(message: Any) -> str:
    values = [f"{name} {value:.4g}" for name, value in _leaves(message) if "stamp" not in name and value]
    return ", ".join(values[:_MOST_NUMBERS]) or "all values are zero"


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the single numbers of a message by their paths; arrays are left out."""
    if isinstance(value, (bool, int, float, np.number)):
        yield name, float(value)
    else:
        for key, inner in getattr(value, "__dict__", {}).items():
            if not key.startswith("_"):
                yield from _leaves(inner, f"{name}.{key}" if name else key)


_DESCRIPTIONS: dict[str, Callable[[Any], str]] = {MARKERS: _obstacles, IMAGE_MARKER: _boxes, PATH: _path}
