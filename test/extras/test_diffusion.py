# SPDX-License-Identifier: Apache-2.0
"""Edits by diffusion, on pipelines of random weights that are made here: loading and calling are the real thing."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'diffusion'")
diffusers = pytest.importorskip("diffusers", reason="needs the extra 'diffusion'")
transformers = pytest.importorskip("transformers", reason="needs the extra 'diffusion'")

sys.path.insert(0, str(Path(__file__).parents[1]))
from made_images import street_in  # noqa: E402

from mt_nodes.base.errors import InfrastructureError, NotApplicable, PluginError, UsageError  # noqa: E402
from mt_nodes.cli.main import main as mt  # noqa: E402
from mt_nodes.data.bags.bundles import BagSource, write_bundles  # noqa: E402
from mt_nodes.data.images.codecs import decode  # noqa: E402
from mt_nodes.data.messages import Bundle  # noqa: E402
from mt_nodes.relations.mutations.camera.diffusion_edit import Edited, ImageInpainted, ImageInstructed  # noqa: E402
from mt_nodes.relations.pipeline import MutationPipeline  # noqa: E402
from mt_nodes.runs.models import video_edits  # noqa: E402
from mt_nodes.world.camera import diffusion, segmentation  # noqa: E402
from mt_nodes.world.scene.camera_rendering import CameraSensor  # noqa: E402
from mt_nodes.world.scene.drive import generate_drive  # noqa: E402

BUNDLE = street_in("bgr8")
HIDDEN = 32


def text_parts(directory: Path) -> dict[str, Any]:
    """A text encoder and a tokenizer of single letters."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    directory.mkdir()
    (directory / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (directory / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = transformers.CLIPTokenizer(
        str(directory / "vocab.json"), str(directory / "merges.txt"), model_max_length=77
    )
    config = transformers.CLIPTextConfig(
        vocab_size=len(words), hidden_size=HIDDEN, intermediate_size=37, num_attention_heads=4, num_hidden_layers=2,
        projection_dim=HIDDEN, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    return {"text_encoder": transformers.CLIPTextModel(config).eval(), "tokenizer": tokenizer}


def tiny(kind: str, directory: Path) -> str:
    """Save a pipeline of a kind, of random weights, and return where."""
    torch.manual_seed(0)
    channels = 9 if kind == "StableDiffusionInpaintPipeline" else 8
    parts: dict[str, Any] = text_parts(directory / "words")
    parts["unet"] = diffusers.UNet2DConditionModel(
        block_out_channels=(32, 64), layers_per_block=1, sample_size=32, in_channels=channels, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=HIDDEN, attention_head_dim=8,
    )  # fmt: skip
    parts["vae"] = diffusers.AutoencoderKL(
        block_out_channels=(32, 64), in_channels=3, out_channels=3, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    parts["scheduler"] = diffusers.DDIMScheduler()
    checker = {"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
    getattr(diffusers, kind)(**parts, **checker).save_pretrained(directory / "model")
    return str(directory / "model")


@pytest.fixture(scope="module")
def inpainting(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny("StableDiffusionInpaintPipeline", tmp_path_factory.mktemp("inpaint"))


@pytest.fixture(scope="module")
def instructed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny("StableDiffusionInstructPix2PixPipeline", tmp_path_factory.mktemp("instruct"))


def small(cls: type[Edited], model: str, cache: Path, **more: Any) -> Any:
    return cls(model=model, steps=2, size_px=96, device="cpu", cache=str(cache), **more)  # type: ignore[call-arg]


def derived(mutation: Edited, bundle: Bundle = BUNDLE) -> Any:
    return MutationPipeline([mutation], 7, "edited").derive(bundle)


def pixels(made: Any) -> np.ndarray:
    return np.asarray(made.followup.first.images[0].pixels)


def test_inpainting_changes_its_place_and_nothing_else(inpainting: str, tmp_path: Path) -> None:
    made = derived(small(ImageInpainted, inpainting, tmp_path, range_m=8.0))
    assert made.broken is None
    (box,) = made.effects.image_boxes
    assert box.label == "pedestrian"
    x0, y0, x1, y1 = (int(side) for side in box.box_px)
    changed = (pixels(made) != np.asarray(BUNDLE.images[0].pixels)).any(axis=2)
    assert changed[y0 : y1 + 1, x0 : x1 + 1].mean() > 0.9
    changed[y0 : y1 + 1, x0 : x1 + 1] = False
    assert not changed.any()


def test_instructions_change_the_whole_picture(instructed: str, tmp_path: Path) -> None:
    made = derived(small(ImageInstructed, instructed, tmp_path, instruction="make it night"))
    assert made.broken is None
    assert (pixels(made) != np.asarray(BUNDLE.images[0].pixels)).any(axis=2).mean() > 0.9


def test_an_edit_is_made_once_and_replayed(instructed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = small(ImageInstructed, instructed, tmp_path)
    first = pixels(derived(mutation))
    assert len(list(tmp_path.rglob("*.png"))) == 1

    def never(*_: Any) -> None:
        raise AssertionError("the model was asked again")

    monkeypatch.setattr(diffusion, "_pipeline", never)
    assert (pixels(derived(mutation)) == first).all()
    assert (pixels(derived(replace(mutation, when_missing="refuse", device="cuda"))) == first).all()
    other = replace(mutation, instruction="make it rain", when_missing="refuse")
    with pytest.raises(NotApplicable, match="mt mutate"):
        derived(other)
    with pytest.raises(PluginError, match="asked again"):
        derived(replace(mutation, seed=1))


def test_the_same_seed_makes_the_same_edit_anew(instructed: str, tmp_path: Path) -> None:
    made = [pixels(derived(small(ImageInstructed, instructed, tmp_path / str(i)))) for i in range(2)]
    assert (made[0] == made[1]).all()
    assert (pixels(derived(small(ImageInstructed, instructed, tmp_path / "2", seed=5))) != made[0]).any()


def test_a_damaged_edit_is_named(instructed: str, tmp_path: Path) -> None:
    mutation = small(ImageInstructed, instructed, tmp_path)
    derived(mutation)
    (kept,) = tmp_path.rglob("*.png")
    kept.write_bytes(b"no picture")
    with pytest.raises(InfrastructureError, match="no readable PNG"):
        derived(mutation)


def test_what_is_no_model_is_refused(inpainting: str, instructed: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded"):
        derived(small(ImageInstructed, str(tmp_path), tmp_path))
    with pytest.raises(UsageError, match="expected one that inpaints"):
        derived(small(ImageInpainted, instructed, tmp_path, range_m=8.0))
    with pytest.raises(UsageError, match="expected one that edits"):
        derived(small(ImageInstructed, inpainting, tmp_path))


def test_a_place_out_of_sight_has_no_edit(inpainting: str, tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="is not seen"):
        derived(small(ImageInpainted, inpainting, tmp_path, range_m=5.0, left_m=40.0))
    with pytest.raises(NotApplicable, match="no CameraInfo"):
        derived(small(ImageInpainted, inpainting, tmp_path), replace(BUNDLE, camera_infos=()))


def test_pictures_without_colours_are_refused(instructed: str, tmp_path: Path) -> None:
    with pytest.raises(NotApplicable, match="mono8 is not 8 bits"):
        derived(small(ImageInstructed, instructed, tmp_path), street_in("mono8"))


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A video model of random weights."""
    directory = tmp_path_factory.mktemp("video")
    torch.manual_seed(0)
    unet = diffusers.UNet3DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=32, in_channels=4, out_channels=4,
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"), up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
        cross_attention_dim=HIDDEN, attention_head_dim=4, norm_num_groups=4,
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        block_out_channels=(32, 64), in_channels=3, out_channels=3, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    parts = {**text_parts(directory / "words"), "unet": unet, "vae": vae, "scheduler": diffusers.DDIMScheduler()}
    diffusers.VideoToVideoSDPipeline(**parts).save_pretrained(directory / "model")
    return str(directory / "model")


def test_a_video_model_edits_a_recording_clip_by_clip(
    video: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = CameraSensor(width=128, height=96)
    write_bundles(tmp_path / "bag", generate_drive(7, camera=sensor))
    given = [f"model={video}", "steps=4", "size_px=96", "device=cpu", f"cache={tmp_path / 'cache'}"]
    words = [word for value in given for word in ("--set", value)]
    lengths: list[int] = []
    whole = diffusion.edit_clip
    monkeypatch.setattr(video_edits, "edit_clip", lambda r, clip: lengths.append(len(clip)) or whole(r, clip))
    bag = str(tmp_path / "bag")
    assert mt(["models", "edit-video", bag, *words, "--frames", "3", "--overlap", "1"]) == 0
    assert lengths == [3, 3, 3] and "7 images edited" in capsys.readouterr().out
    assert len(list((tmp_path / "cache").rglob("*.png"))) == 7
    out = str(tmp_path / "edited")
    replayed = ["mutate", bag, "--mutation", "image_instructed", *words, "--set", "when_missing=refuse", "--out", out]
    assert mt(replayed) == 0
    assert "7 of 7 bundles mutated" in capsys.readouterr().out
    # Without overlap the last clip begins earlier, and so is as long as the others.
    lengths.clear()
    assert mt(["models", "edit-video", bag, *words, "--set", "seed=1", "--frames", "4", "--overlap", "0"]) == 0
    assert lengths == [4, 4]


@pytest.fixture(scope="module")
def inventing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Stable Video Diffusion with random weights."""
    torch.manual_seed(0)
    unet = diffusers.UNetSpatioTemporalConditionModel(
        block_out_channels=(32, 64), layers_per_block=1, sample_size=32, in_channels=8, out_channels=4,
        down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
        up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"), cross_attention_dim=HIDDEN,
        num_attention_heads=8, projection_class_embeddings_input_dim=96, addition_time_embed_dim=32,
    )  # fmt: skip
    vae = diffusers.AutoencoderKLTemporalDecoder(
        block_out_channels=(32, 64), layers_per_block=1, down_block_types=("DownEncoderBlock2D",) * 2
    )
    encoder = transformers.CLIPVisionModelWithProjection(
        transformers.CLIPVisionConfig(
            hidden_size=HIDDEN, projection_dim=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37,
            image_size=224, patch_size=32,
        )
    )  # fmt: skip
    scheduler = diffusers.EulerDiscreteScheduler(
        prediction_type="v_prediction", sigma_max=700.0, sigma_min=0.002, timestep_type="continuous",
        timestep_spacing="leading", use_karras_sigmas=True,
    )  # fmt: skip
    directory = tmp_path_factory.mktemp("invent") / "model"
    diffusers.StableVideoDiffusionPipeline(
        vae=vae, image_encoder=encoder, unet=unet, scheduler=scheduler,
        feature_extractor=transformers.CLIPImageProcessor(),
    ).save_pretrained(directory)  # fmt: skip
    return str(directory)


def test_a_video_of_one_edited_picture_is_judged_by_that_picture_alone(
    instructed: str, inventing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag, cache = str(tmp_path / "bag"), tmp_path / "cache"
    write_bundles(Path(bag), generate_drive(7, camera=CameraSensor(width=128, height=96)))
    given = {"model": instructed, "video": inventing, "steps": 2, "size_px": 128, "device": "cpu", "cache": str(cache)}
    words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    made = ["models", "edit-video", bag, *words, "--frames", "5", "--keep", "4"]
    assert mt(made) == 2 and "first picture differs from the edited one" in capsys.readouterr().err
    assert mt([*made, "--overlap", "1"]) == 2 and "--overlap: not taken with" in capsys.readouterr().err
    assert mt([*made, "--begins-within", "1"]) == 0 and "7 images made" in capsys.readouterr().out
    edits, shown = small(ImageInstructed, instructed, cache, video=inventing), []
    pipeline = MutationPipeline([replace(edits, size_px=128)], 7, "edited")
    with BagSource(Path(bag), {}) as source:
        made_of = [(bundle, pipeline.derive(bundle)) for bundle in source]
    plain = MutationPipeline([replace(edits, size_px=128, video="", when_missing="refuse")], 7, "edited")
    for bundle, derived_one in made_of:
        assert derived_one.broken is None
        shown.append(bool(derived_one.effects.invented))
        if not shown[-1]:
            assert (pixels(plain.derive(bundle)) == pixels(derived_one)).all(), "the edit itself"
    assert shown == [False, True, True, True, False, True, True]


def test_kinds_of_models_are_told_apart(video: str, instructed: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="which edits videos; expected one that edits by instruction"):
        derived(small(ImageInstructed, video, tmp_path))
    request = small(ImageInstructed, instructed, tmp_path).request()
    with pytest.raises(UsageError, match="which edits by instruction; expected one that makes a video of one picture"):
        diffusion.invent_clip(request, np.zeros((96, 96, 3), np.uint8), 2, 10, None)
    with pytest.raises(UsageError, match="which edits by instruction; expected one that edits videos"):
        diffusion.edit_clip(request, [np.zeros((96, 96, 3), np.uint8)] * 2)


LABELS = {0: "road", 1: "sky", 2: "building"}


def segformer(directory: Path) -> str:
    """Save a segmentation model of random weights, and return where."""
    torch.manual_seed(1)
    config = transformers.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, id2label=LABELS,
    )  # fmt: skip
    transformers.SegformerForSemanticSegmentation(config).save_pretrained(directory)
    transformers.SegformerImageProcessor(size={"height": 64, "width": 64}).save_pretrained(directory)
    return str(directory)


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory: pytest.TempPathFactory) -> str:
    return segformer(tmp_path_factory.mktemp("segment"))


def seen(segmenter: str) -> dict[str, np.ndarray]:
    """What it sees in the street; random weights see something."""
    rgb = decode(BUNDLE.images[0]).rgb8()
    return {label: segmentation.pixels_of(segmenter, rgb, (label,), "cpu") for label in LABELS.values()}


def test_each_pixel_has_one_label(segmenter: str) -> None:
    masks = seen(segmenter)
    assert (sum((mask != 0).astype(int) for mask in masks.values()) == 1).all()
    assert sum(mask.any() for mask in masks.values()) >= 2
    both = segmentation.pixels_of(segmenter, decode(BUNDLE.images[0]).rgb8(), ("road", "sky"), "cpu")
    assert ((both != 0) == ((masks["road"] != 0) | (masks["sky"] != 0))).all()


def test_an_edit_of_some_labels_leaves_all_others(instructed: str, segmenter: str, tmp_path: Path) -> None:
    masks = seen(segmenter)
    label = max(masks, key=lambda name: (0.0 < np.mean(masks[name] != 0) < 0.95) * np.mean(masks[name] != 0))
    made = derived(small(ImageInstructed, instructed, tmp_path, segmenter=segmenter, only=(label,)))
    assert made.broken is None
    changed = (pixels(made) != np.asarray(BUNDLE.images[0].pixels)).any(axis=2)
    assert changed[masks[label] != 0].mean() > 0.8 and not changed[masks[label] == 0].any()


def test_what_shows_no_such_label_has_no_edit(
    instructed: str, inpainting: str, segmenter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = {"segmenter": segmenter, "only": ("road",)}
    with pytest.raises(UsageError, match="no label 'rod'; did you mean 'road'"):
        derived(small(ImageInstructed, instructed, tmp_path, **{**some, "only": ("rod",)}))
    with pytest.raises(UsageError, match="got no segmenter"):
        derived(small(ImageInstructed, instructed, tmp_path, only=("road",)))
    with pytest.raises(UsageError, match="cannot be loaded"):
        derived(small(ImageInstructed, instructed, tmp_path, **{**some, "segmenter": str(tmp_path)}))
    size = BUNDLE.images[0].pixels.shape[:2]
    place = {"range_m": 8.0, "segmenter": segmenter, "stands_on": ("road",)}
    for share, stands in ((0, False), (255, True)):
        monkeypatch.setattr(
            segmentation, "_segments_of", lambda *_, share=share: {"road": np.full(size, share, np.uint8)}
        )
        if stands:
            assert derived(small(ImageInpainted, inpainting, tmp_path, **place)).broken is None
            continue
        with pytest.raises(NotApplicable, match="sees no road"):
            derived(small(ImageInstructed, instructed, tmp_path, **some))
        with pytest.raises(NotApplicable, match="0% of the place's ground is road"):
            derived(small(ImageInpainted, inpainting, tmp_path, **place))
