# SPDX-License-Identifier: Apache-2.0
"""The arrays behind a picture: what is shown is kept, how much was added is kept whole."""

from __future__ import annotations

from pathlib import Path

from mt_nodes.engine import Answer, Heard
from mt_nodes.outputs import Detections, Output
from mt_nodes.pictures import write_view
from mt_nodes.pipeline import MutationPipeline
from mt_nodes.relations import load_relation
from mt_nodes.report.view import load_view
from mt_nodes.scene.drive import generate_drive


def test_clouds_are_cut_to_the_window_and_added_points_are_all_there(tmp_path: Path) -> None:
    bundle = next(iter(generate_drive(1)))
    relation = load_relation("noise_outside_roi_1000")
    derived = MutationPipeline(relation.mutate, 0, relation.id).derive(bundle)
    said = Output(detections=Detections.make("base_link", bundle.stamp_ns, [[10.0, 0.0, 1.0]], [[4.0, 2.0, 1.5]]))
    heard = Answer(Heard.ANSWERED, said).output
    path = tmp_path / "view.npz"
    detail = {"lost_at": [[10.0, 0.0, "car"]], "gained_at": []}
    followup = derived.followup.first
    write_view(
        path, bundle, followup, outputs=(heard, heard), effects=derived.effects, check=relation.check, detail=detail
    )
    view = load_view(path)
    x0, x1, y0, y1 = view.window
    for cloud in (view.source_xyz, view.followup_xyz):
        assert 0 < len(cloud) < len(bundle.cloud())
        assert (cloud[:, 0] >= x0).all() and (cloud[:, 0] <= x1).all()
        assert (cloud[:, 1] >= y0).all() and (cloud[:, 1] <= y1).all()
    assert len(view.added_xyz) == 1000
    assert view.source_boxes.shape == (1, 7) and view.lost_at.tolist() == [[10.0, 0.0]]
