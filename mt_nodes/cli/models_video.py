# SPDX-License-Identifier: Apache-2.0
"""``mt models edit-video``: a recording edited by a model that edits videos, for ``image_instructed``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import settings


def add_edit_video_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models edit-video my_bag --set model=cogvideox --set instruction='the street at night'"
    add = parser.add_argument
    add("bag", metavar="BAG", help="bag or data set with images")
    add("--set", action="append", default=[], metavar="K=V", help="set a parameter of image_instructed, such as model")
    add("--frames", type=int, default=16, metavar="N", help="images of a clip, as the model takes them")
    add("--overlap", type=int, default=4, metavar="N", help="images that are faded over from clip to clip")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help="where the bag has several of a role")
    add("--limit", type=int, metavar="N", help="edit at most N images of each camera")


def run_edit_video(args: argparse.Namespace) -> int:
    """Store an edit of every image, and say how relations use them.

    Raises UsageError: an argument is wrong, or the model is no video model.
    """
    from mt_nodes.base.params import build
    from mt_nodes.cli.terminal import progress_bar, text
    from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed
    from mt_nodes.runs.models.video_edits import VideoEditor
    from mt_nodes.world.camera.diffusion import EditCache

    edits = build(ImageInstructed, settings(args.set), "--set")
    editor, stored = VideoEditor(edits, args.frames, args.overlap), 0
    with progress_bar("{task.completed} images") as progress:
        task = progress.add_task("edit-video", total=args.limit)
        for stored in editor.edit(Path(args.bag), role_topics(args.topic), args.limit):
            progress.update(task, completed=stored)
    text(f"{stored} images edited, stored in {EditCache.at(edits.cache).directory}. Use them:")
    given = " ".join(f"--set {word}" for word in args.set)
    text(f"  mt mutate {args.bag} --mutation image_instructed {given} --set when_missing=refuse --out edited")
    return 0
