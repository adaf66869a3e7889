# SPDX-License-Identifier: Apache-2.0
"""``mt models edit-video``: a recording edited by a video model, or invented from edited pictures."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import settings

if TYPE_CHECKING:
    from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed


def add_edit_video_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models edit-video my_bag --set model=cogvideox --set instruction='the street at night'"
    add = parser.add_argument
    add("bag", metavar="BAG", help="bag or data set with images")
    add("--set", action="append", default=[], metavar="K=V", help="set a parameter of image_instructed, such as model")
    add("--frames", type=int, metavar="N", help="images of a clip, as the model takes them (16; with video=, 25)")
    add("--overlap", type=int, metavar="N", help="images that are faded over from clip to clip (4)")
    add("--keep", type=int, metavar="N", help="with --set video=MODEL: images that are used of each clip (10)")
    add("--begins-within", type=float, metavar="SHARE", help="with video=: how far a clip may be from its edit (0.1)")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help="where the bag has several of a role")
    add("--limit", type=int, metavar="N", help="edit at most N images of each camera")


def run_edit_video(args: argparse.Namespace) -> int:
    """Store an edit of every image, and say how relations use them.

    Raises UsageError: an argument is wrong, or the model is no video model.
    """
    from mt_nodes.base.params import build
    from mt_nodes.cli.terminal import progress_bar, text
    from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed
    from mt_nodes.world.camera.diffusion import EditCache

    edits = build(ImageInstructed, settings(args.set), "--set")
    making, stored = _making(args, edits), 0
    with progress_bar("{task.completed} images") as progress:
        task = progress.add_task("edit-video", total=args.limit)
        for stored in making:
            progress.update(task, completed=stored)
    done = "made, of which the first of each clip is judged" if edits.video else "edited"
    text(f"{stored} images {done}, stored in {EditCache.at(edits.cache).directory}. Use them:")
    given = " ".join(f"--set {word}" for word in args.set)
    text(f"  mt mutate {args.bag} --mutation image_instructed {given} --set when_missing=refuse --out edited")
    return 0


def _making(args: argparse.Namespace, edits: ImageInstructed) -> Iterator[int]:
    """Return what makes the pictures, clip by clip. Raises UsageError: an option is of the other way."""
    from mt_nodes.runs.models.invented_clips import BEGINS_WITHIN, ClipInventor
    from mt_nodes.runs.models.video_edits import VideoEditor

    given = vars(args)
    wrong = ("overlap",) if edits.video else ("keep", "begins_within")
    if others := [name for name in wrong if given[name] is not None]:
        where = "not taken with" if edits.video else "expected with"
        raise UsageError(f"--{others[0].replace('_', '-')}: {where} --set video=MODEL, which invents clips")

    def value(name: str, usual: float) -> float:
        return usual if given[name] is None else given[name]

    editor = (
        ClipInventor(edits, int(value("frames", 25)), int(value("keep", 10)), value("begins_within", BEGINS_WITHIN))
        if edits.video
        else VideoEditor(edits, int(value("frames", 16)), int(value("overlap", 4)))
    )
    return editor.edit(Path(args.bag), role_topics(args.topic), args.limit)
