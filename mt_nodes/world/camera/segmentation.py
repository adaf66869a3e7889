# SPDX-License-Identifier: Apache-2.0
"""Which pixels of a picture show a road, the sky or a building, by a segmentation network of the user's.

Any model of ``transformers`` for image segmentation serves: OneFormer, as in AutoMT (arXiv 2510.19438), Mask2Former,
SegFormer. The library comes with the extra ``diffusion`` and is imported only when a model is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError, needs_extra, suggest

Rgb = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.uint8]
#: Draw, change and proof of a mutation ask for the same picture.
_KEPT = 4
_segments: OrderedDict[tuple[str, str, str], dict[str, Mask]] = OrderedDict()


def pixels_of(model: str, rgb: Rgb, labels: Sequence[str], device: str = "auto") -> Mask:
    """Return a mask (H, W), 255 where a picture (H, W, 3) shows one of the labels.

    ``model``: directory of a segmentation model, or its id on the hub. Raises UsageError: the extra is not installed,
    the model is not there or of another kind, or knows no such label.
    """
    segmenter = _segmenter(model, device)
    known = sorted(set(segmenter.model.config.id2label.values()))
    for label in labels:
        if label not in known:
            raise UsageError(f"model '{model}' has no label '{label}'{suggest(label, known)}")
    found = _segments_of(segmenter, model, device, rgb)
    mask = np.zeros(rgb.shape[:2], np.uint8)
    for label in labels:
        if label in found:
            np.maximum(mask, found[label], out=mask)
    return mask


def _segments_of(segmenter: Any, model: str, device: str, rgb: Rgb) -> dict[str, Mask]:
    key = (model, device, sha256(np.ascontiguousarray(rgb).data).hexdigest())
    if key not in _segments:
        from PIL import Image as Pil

        rows = segmenter(Pil.fromarray(rgb), subtask="semantic")
        _segments[key] = {row["label"]: np.asarray(row["mask"], np.uint8) for row in rows}
        while len(_segments) > _KEPT:
            _segments.popitem(last=False)
    return _segments[key]


@lru_cache(maxsize=2)
def _segmenter(model: str, device: str) -> Any:
    """Load a model, with the processing of pictures that its directory names, onto a device."""
    with needs_extra("diffusion", "segmentation needs the extra"):
        import torch
        from transformers import pipeline
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    try:
        return pipeline("image-segmentation", model=model, device=where)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        lines = str(error).strip().splitlines()
        what = lines[0] if lines else type(error).__name__
        raise UsageError(f"segmenter '{model}' cannot be loaded: {what}; give a directory or a hub id") from error
