# SPDX-License-Identifier: Apache-2.0
"""Pictures edited by a diffusion model: slow, so each edit is cached.

``diffusers`` and ``torch`` come with the extra ``diffusion`` and are imported only when a model is needed.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError, UsageError, needs_extra

Rgb = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class EditRequest:
    """A complete request to a model: equal requests have equal edits.

    Attributes:
        model: directory of a ``diffusers`` pipeline, or its id on the hub.
        prompt: what the picture should show, or what to change.
        steps: of denoising. guidance: how strictly the prompt is followed. seed: of the model's own noise.
        size_px: longer side of the picture that the model gets; results are scaled back.
        device: ``auto``, ``cpu``, ``cuda``…
        place: of the picture in a clip, and which model made that; empty for pictures that are edited by themselves.
    """

    model: str
    prompt: str
    steps: int
    guidance: float
    seed: int
    size_px: int
    device: str = "auto"
    place: str = ""

    def key(self, rgb: Rgb, mask: npt.NDArray[np.uint8] | None) -> str:
        """Return the SHA-256 cache key of an edit of a picture; the device does not count."""
        digest = hashlib.sha256()
        for part in (self.model, self.prompt, self.steps, self.guidance, self.seed, self.size_px, rgb.shape):
            digest.update(repr(part).encode() + b"\0")
        if self.place:  # others keep the keys that they have always had
            digest.update(repr(self.place).encode() + b"\0")
        digest.update(np.ascontiguousarray(rgb).data)
        if mask is not None:
            digest.update(np.ascontiguousarray(mask).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class EditCache:
    """Cached edits on disk, one PNG each; several processes may share it."""

    directory: Path

    @classmethod
    def at(cls, directory: str) -> EditCache:
        """Return the cache in a directory; by default the user's own cache directory."""
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mt_nodes" / "edits"
        return cls(Path(directory).expanduser() if directory else base)

    def has(self, key: str) -> bool:
        """Whether there is a cached edit."""
        return self._path(key).is_file()

    def drop(self, key: str) -> None:
        """Forget a cached edit, if there is one."""
        self._path(key).unlink(missing_ok=True)

    def get(self, key: str) -> Rgb | None:
        """Return a cached edit (H, W, 3), None if there is none. Raises InfrastructureError: the file is damaged."""
        path = self._path(key)
        if not path.is_file():
            return None
        bgr = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_COLOR)
        if bgr is None:
            raise InfrastructureError(f"{path}: got no readable PNG; delete it, and the edit is made again")
        return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB))

    def put(self, key: str, rgb: Rgb) -> None:
        """Cache an edit. Raises InfrastructureError: it cannot be written."""
        path = self._path(key)
        _, data = cv2.imencode(".png", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))
        partial = path.with_suffix(f".{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(data.tobytes())
            partial.replace(path)  # whole or not at all, whoever else writes it
        except OSError as error:
            raise InfrastructureError(f"{path}: the edit cannot be kept: {error}") from error

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key}.png"


def edit(request: EditRequest, rgb: Rgb, mask: npt.NDArray[np.uint8] | None = None) -> Rgb:
    """Return a picture (H, W, 3) edited by a model; with a mask (H, W), nonzero where to paint, an inpainted one.

    The model gets the picture at its own size, each side a multiple of 16; with the same seed on the same device, the
    result is the same.
    Raises UsageError: the extra is not installed, or the model is not there or of another kind.
    """
    size = _model_size(request, rgb)
    given: dict[str, Any] = {"image": _as_pil(rgb, size)}
    if mask is not None:
        given |= {"mask_image": _as_pil(mask, size), "height": size[1], "width": size[0]}
    return _full_size(_asked(request, "edits by instruction" if mask is None else "inpaints", given).images[0], rgb)


def edit_clip(request: EditRequest, clip: Sequence[Rgb]) -> list[Rgb]:
    """Return successive pictures (H, W, 3) of one size, edited together by a model that edits videos.

    Sizes and the seed are as for :func:`edit`. Raises UsageError: as :func:`edit`, or the model returns another number
    of pictures, as some do that take only certain lengths.
    """
    size = _model_size(request, clip[0])
    made = _asked(request, "edits videos", {"video": [_as_pil(rgb, size) for rgb in clip]})
    return _frames(made, request.model, len(clip), clip[0])


def invent_clip(request: EditRequest, first: Rgb, length: int, fps: int, motion: int | None) -> list[Rgb]:
    """Return ``length`` pictures that a model invents from one (H, W, 3), the first of them its own version of that.

    ``fps``: pictures a second. ``motion``: how much moves, 0 to 255 as of Stable Video Diffusion; None: as the model
    takes for granted. A model that takes neither goes without. The seed is as for :func:`edit`; each side that the
    model gets is a multiple of 64. Raises UsageError: as :func:`edit_clip`.
    """
    width, height = _model_size(request, first, 64)
    given = {"image": _as_pil(first, (width, height)), "num_frames": length, "height": height, "width": width}
    wishes = {"fps": fps} if motion is None else {"fps": fps, "motion_bucket_id": motion}
    return _frames(_asked(request, _INVENTS, given, wishes), request.model, length, first)


def _frames(made: Any, model: str, length: int, like: Rgb) -> list[Rgb]:
    frames = np.asarray(made.frames)
    frames = frames[0] if frames.ndim == 5 else frames  # newer versions return a batch
    if len(frames) != length:
        raise UsageError(f"model '{model}': got {len(frames)} pictures of {length}; take another length")
    return [_full_size(frame, like) for frame in frames]


_INVENTS = "makes a video of one picture"


def _kind(takes: Container[str]) -> str:
    """Return what a pipeline does, by the names of its arguments."""
    if "video" in takes:
        return "edits videos"
    if "mask_image" in takes:
        return "inpaints"
    return _INVENTS if "num_frames" in takes and "image" in takes else "edits by instruction"


def _asked(request: EditRequest, does: str, given: dict[str, Any], wishes: Mapping[str, Any] | None = None) -> Any:
    """Return what a pipeline makes of an input and of those ``wishes`` that it takes.

    Raises UsageError: it is of another kind.
    """
    pipeline, noise = _pipeline(request.model, request.device)
    takes = inspect.signature(type(pipeline).__call__).parameters
    kind = _kind(takes)
    if kind != does:
        raise UsageError(
            f"model '{request.model}' is a {type(pipeline).__name__}, which {kind}; expected one that {does}"
        )
    words = {"prompt": request.prompt, "guidance_scale": request.guidance} if "prompt" in takes else {}
    return pipeline(
        **words,
        **{name: value for name, value in (wishes or {}).items() if name in takes},
        num_inference_steps=request.steps,
        generator=noise.manual_seed(request.seed),
        output_type="np",
        **given,
    )


def _model_size(request: EditRequest, rgb: Rgb, step: int = 16) -> tuple[int, ...]:
    """Return width and height of what the model gets, multiples of ``step``."""
    height, width = rgb.shape[:2]
    scale = min(1.0, request.size_px / max(height, width))
    return tuple(max(step, step * round(side * scale / step)) for side in (width, height))


def _full_size(output: Any, rgb: Rgb) -> Rgb:
    """Return a model's picture, 0 to 1, in the size of the original."""
    full = np.rint(np.clip(np.asarray(output, np.float32), 0.0, 1.0) * 255.0).astype(np.uint8)
    return np.asarray(cv2.resize(full, rgb.shape[1::-1], interpolation=cv2.INTER_CUBIC))


@lru_cache(maxsize=2)
def _pipeline(model: str, device: str) -> tuple[Any, Any]:
    """Load a pipeline, of the class that its directory names, onto a device; return it and a noise generator.

    Noise is generated on the CPU, so that it is the same for every device.
    """
    with needs_extra("diffusion", "edits by diffusion need the extra"):
        import torch
        from diffusers import DiffusionPipeline
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    dtype = torch.bfloat16 if where.startswith("cuda") else torch.float32
    try:
        pipeline = DiffusionPipeline.from_pretrained(model, torch_dtype=dtype).to(where)
    except (OSError, ValueError, RuntimeError) as error:
        lines = str(error).strip().splitlines()
        what = lines[0] if lines else type(error).__name__
        raise UsageError(f"model '{model}' cannot be loaded: {what}; give a directory or a hub id") from error
    pipeline.set_progress_bar_config(disable=True)
    return pipeline, torch.Generator("cpu")


def _as_pil(pixels: npt.NDArray[np.uint8], size: tuple[int, ...]) -> Any:
    from PIL import Image as Pil

    how = cv2.INTER_AREA if pixels.ndim == 3 else cv2.INTER_NEAREST
    return Pil.fromarray(cv2.resize(pixels, size, interpolation=how))
