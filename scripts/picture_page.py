# SPDX-License-Identifier: Apache-2.0
"""Makes docs/pictures.md: marks and figures of changed pictures, before and now, beside other libraries."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
Figures = Mapping[str, float | None]
State = Mapping[str, Figures]
BEFORE, NOW = "before", "now"
LIBRARIES = ("albumentations", "imagecorruptions")
_INTRO = """# Pictures beside recorded ones

This page says how far changed pictures pass for recorded ones: marks that people gave, and figures that need no
reference. Use it to judge whether a violation can come from a picture that no camera would take.

`make pictures ARGS=BAG` makes a page of forty pairs of pictures, before and after a change, of any bag with a camera
and a LiDAR (without `BAG`: of a generated drive), with the same pictures changed by [other
libraries](#other-libraries) if they are installed. `make picture-figures ARGS=BAG` measures the figures, and
`make fog-agreement ARGS=BAG` what fog does to detectors. `kitti_drive` is the drive that [real data](real_data.md)
describes; its pictures are not ours to publish. *Before* is the state of 26 November 2026 in which pictures were first
measured."""
_MARKS = """## Marks

From 1 (false at first sight) over 3 (passes at a glance) to 5 (taken for a recording), given by a maker of the package,
at full size, one by one, with the pair's source beside it. They stand in `scripts/picture_pairs.yaml`: change them
there. Marks of *now* are of one frame each, in the middle of the drive."""
_THINGS = """## Added things

*Told from recorded* is the area under the ROC curve of a classifier (extremely randomised trees on residuals, spectra,
gradients and colours of windows of 16 pixels) that has to tell windows of added things from windows of recorded ones;
0.5 is a guess, 1 is certainty. It is judged by kinds of things and directions that it has not learned from. What the
same classifier makes of two halves of the recorded things is the floor: contents differ, too. *Grain* is the residual
of windows without texture over that of the host's at the same brightness, *edges* the width of strong edges over that
of recorded things, *flicker* how much the brightness at a return differs from frame to frame with the ego's motion
taken out, over that at returns of recorded things: 1 is right for all three. *Hits* is the share of the thing's LiDAR
returns that lie within what its picture shows: the goal is 98 %. Returns that the LiDAR sees past or over a nearer
thing, which hides them from the camera, do not count: the two are 0.3 m apart. In every second frame where car and van
are in full view (8 frames with 4,561 returns of the car, 92.7 to 100 % each, and 5 with 6,316 of the van, 99.0 to
100 %), all that miss lie behind what the depth of the picture takes for nearer, in two frames 4 and 7 % of the car's.

What told added things best was how the residuals of red, green and blue go together: of a camera with a mosaic of
colour filters they hardly do (a correlation of -0.2), of a rendering nearly always (0.6). Things now go through the
host's mosaic. What is left is mostly content: added things stand in the sun, the recorded ones of this drive are dark
cars and lorries seen against it, and cloth, fur and spokes have more texture than paint. [Cut-outs of your own labelled
frames](added_objects.md#cut-outs-of-real-objects) are not measured here: they need labels, which this drive has not."""
_WHOLE = """## Whole pictures

Windows of 32 pixels of whole pictures, brought to one contrast, so that fog is not told by its lack of contrast alone;
each is judged by trees that saw other frames. Most changes leave a trace that trees find: compare the columns with each
other and with the other libraries, not with 0.5. *Grain* is over the source's at the same brightness: a change of the
scene, which the camera then records, leaves it at 1, and blur and noise do not. *New edges* are strong edges of the
changed picture without any edge of the source within 2 pixels: particles, and seams of the depth. *Flicker* is as
above, at returns of recorded things, over the source's: 1 or less for what stands still in the air."""
_FOG = """## Fog and detectors

What a detector finds in our fog is compared with what it finds in fog by Koschmieder's law at the ranges of LiDAR
returns, at visibilities of 40, 80 and 200 m (`scripts/fog_agreement.py`). A pair is one frame; a box is one that the
detector finds in clear air and has to keep. There are two such pictures. In both, what a box of the source holds is one
surface, at the median range of the returns in its inner half and within the convex hull of those about as far, and any
other pixel is as far away as the return that lies nearest in the picture:

- *plain*: the law over the source picture, with the airlight that fits our picture at the returns. The sun still
  shines, no lamp glows, and the sky is as near as what is below it.
- *at LiDAR range*: the law in our light (without the sun's part that fog takes away, in our airlight, with our glow of
  lamps), and our own picture where no return lies within 12 pixels, for there the law has no range. It differs from
  ours by depth alone, and in how edges are drawn.

Boxes decide: where a pair has many, all pictures lose one of them, and the pairs agree whatever was drawn. The goal is
that 95 % of the boxes agree with the law at LiDAR range. Boxes *lost in ours alone* are false violations.

A detector in fog is near its threshold, and boxes flip by themselves: *stays* says how many boxes of the picture at
LiDAR range stay as they are when its samples change by one step, when it is shifted by one pixel, and when visibility
is 5 % more. More agreement than that cannot be asked of any rendering. *Sure* boxes are those that no such change
flips, in ours or in the other.

Boxes lost in one of the two alone are mostly those of the near car on the left, whose roof and windows give few
returns, of the lorry behind it, and of the tanker on the right, of which the picture shows a part. Had the law taken
the whole rectangle of a box for one surface, with the road and the background in its corners, 3 % fewer of the boxes of
`yolox_nano` and `nanodet_m` would agree (on every third frame).

`reference_yolo` is [our own](models.md), trained on made-up streets; `yolox_nano` and `nanodet_m` are public networks
trained on COCO, run outside of this repository from Kazuhito00/YOLOX-ONNX-TFLite-Sample (3d4f111) and
hpc203/nanodet-opncv-dnn-cpp-python (15dd99c). Sources' boxes count from a score of 0.35 and 0.38, those of follow-ups
from 0.25. With the threshold that `mt doctor` proposes for `yolox_nano`, 0.5, fewer boxes are demanded (256), and 87 %
of the pairs and 91 % of the boxes agree."""
_LIBRARIES = """## Other libraries

They are optional and not installed with the package; nothing but these comparisons uses them:

```
pip install --target peers --no-deps albumentations==2.0.8 albucore==0.0.24 imagecorruptions==1.1.2 \\
    scikit-image simsimd stringzilla numba llvmlite pydantic pydantic_core annotated_types typing_inspection \\
    lazy_loader imageio tifffile pywavelets networkx 'setuptools<81'
PYTHONPATH=peers make pictures ARGS=BAG
```

Their operators and settings are in `scripts/picture_peers.py`: of albumentations those of similar strength, of
imagecorruptions severity 3. Both know nothing of depth, sun or earlier frames, and add no things."""
_DEPTH, _APART = "Flicker of depth", "Added things told from recorded ones"
_STATISTICS, _FLICKER, _HITS = (
    "Grain and edges of added things",
    "Flicker of added things",
    "Returns within the silhouette, %",
)
_INVALID = "INVALID pairs"
_PARTS = (_APART, _STATISTICS, _FLICKER, _HITS, _DEPTH, _INVALID)
_COLUMNS = {
    "told from recorded, by grain": "told, by grain",
    "told from recorded, by edges": "told, by edges",
    "grain over the host's": "grain",
    "edges that the source has not, %": "new edges, %",
    "flicker over the source's": "flicker",
}


def picture_page(root: Path, table: Table) -> str:
    """Return the page."""
    scripts = root / "scripts"
    rows = yaml.safe_load((scripts / "picture_pairs.yaml").read_text(encoding="utf-8"))["pairs"]
    figures = _read(scripts / "picture_figures.json")
    parts = [_INTRO, _MARKS, _summary(rows), table(("picture", BEFORE, NOW, *LIBRARIES, "why"), map(_marks, rows))]
    for drive, states in figures.items():
        parts += [_THINGS if len(parts) < 5 else "", f"On `{drive}`:", _things(states, table), _general(states, table)]
    parts.append(_WHOLE)
    for drive, states in figures.items():
        columns = ("picture", *_COLUMNS.values())
        parts += [f"On `{drive}`, before → now:", table(columns, _whole(states))]
    parts += [
        _FOG,
        table(("detector", "state", *_FOG_COLUMNS.values()), _fog(_read(scripts / "fog_agreement.json"))),
        _LIBRARIES,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the median and the lowest mark of each column in words, over the operators that have one."""
    texts = []
    for who in (BEFORE, NOW, *LIBRARIES):
        marks = [row["marks"][who]["mark"] for row in rows if who in row.get("marks", {})]
        if marks:
            texts.append(f"{who}: median {statistics.median(marks):g}, lowest {min(marks):g}, of {len(marks)}")
    return f"{'; '.join(texts)}. The aim is a median of 4 and none below 3." if texts else "No marks were given yet."


def _marks(row: Mapping[str, Any]) -> tuple[str, ...]:
    marks = row.get("marks", {})
    given = (f"{marks[who]['mark']:g}" if who in marks else "" for who in (BEFORE, NOW, *LIBRARIES))
    why = "; ".join(f"{who}: {marks[who]['why']}" for who in (BEFORE, NOW, *LIBRARIES) if who in marks)
    return f"{row['name']} (`{row['mutation']}`)", *given, why


def _things(states: Mapping[str, State], table: Table) -> str:
    kinds = dict.fromkeys(k for state in states.values() for k in state.get(_HITS, {}) if "aside" not in k)
    keys = {
        "grain": (_STATISTICS, "grain of {} over the host's"),
        "edges": (_STATISTICS, "width of edges of {} over the host's"),
        "flicker": (_FLICKER, "of {}, over recorded things'"),
        "hits, %": (_HITS, "{}"),
    }
    rows = [(kind, *(_both(states, part, key.format(kind)) for part, key in keys.values())) for kind in kinds]
    return table(("added", *keys), rows)


def _general(states: Mapping[str, State], table: Table) -> str:
    names = {
        _APART: lambda name: name,
        _DEPTH: lambda name: f"depth that {name}",
        _HITS: lambda name: f"hits, {name}, %" if "aside" in name else "",
        _FLICKER: lambda name: f"flicker {name}" if "samples" in name else "",
        _INVALID: lambda name: f"INVALID pairs, {name}",
    }
    rows = []
    for part, label in names.items():
        for name in dict.fromkeys(n for state in states.values() for n in state.get(part, {})):
            if label(name):
                rows.append((label(name), *(_number(states.get(s, {}).get(part, {}).get(name)) for s in (BEFORE, NOW))))
    return table(("figure", BEFORE, NOW), rows)


def _whole(states: Mapping[str, State]) -> Iterator[tuple[str, ...]]:
    pictures = dict.fromkeys(n for state in states.values() for n in state if n not in _PARTS)
    for name in sorted(pictures):
        yield name, *(_both(states, name, key) for key in _COLUMNS)


def _both(states: Mapping[str, State], part: str, name: str) -> str:
    """Return a figure before and now; one alone where the other is missing."""
    texts = [_number(states.get(state, {}).get(part, {}).get(name)) for state in (BEFORE, NOW)]
    if NOW not in states or BEFORE not in states:
        return texts[0] or texts[1]
    return f"{texts[0] or '?'} → {texts[1] or '?'}" if any(texts) else ""


_FOG_COLUMNS = {
    "pairs decided": "pairs decided",
    "pairs violated, ours": "violated, ours",
    "pairs violated, plain": "plain",
    "pairs violated, at LiDAR range": "at LiDAR range",
    "pairs that agree, %": "pairs agree, %",
    "boxes": "boxes",
    "boxes that agree with plain, %": "agree with plain, %",
    "boxes lost in ours alone": "lost in ours alone",
    "boxes lost at LiDAR range alone": "at LiDAR range alone",
    "boxes that agree, %": "agree, %",
    "boxes that stay after one step, %": "stays after one step, %",
    "boxes that stay after one pixel, %": "one pixel, %",
    "boxes that stay after 5 % of visibility, %": "5 % of visibility, %",
    "sure boxes": "sure",
    "sure boxes that agree, %": "sure, agree, %",
}


def _fog(states: Mapping[str, Mapping[str, Figures]]) -> Iterator[tuple[str, ...]]:
    for state, stacks in states.items():
        for stack, found in stacks.items():
            yield f"`{stack}`", state, *(_number(found.get(key)) for key in _FOG_COLUMNS)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
