# SPDX-License-Identifier: Apache-2.0
"""A OneFormer of random weights: its processor asks it by a sentence, as other segmentation models are not asked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'diffusion'")
transformers = pytest.importorskip("transformers", reason="needs the extra 'diffusion'")

from mt_nodes.world.camera.segmentation import pixels_of  # noqa: E402

LABELS = {0: "road", 1: "sky", 2: "building"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def tokenizer(directory: Path) -> tuple[object, int]:
    """A tokenizer of single letters, and the number of its words."""
    words = ["<|startoftext|>", "<|endoftext|>", *LETTERS, *(f"{letter}</w>" for letter in LETTERS)]
    (directory / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (directory / "merges.txt").write_text("#version: 0.2\n")
    files = (str(directory / name) for name in ("vocab.json", "merges.txt"))
    return transformers.CLIPTokenizer(*files, model_max_length=77), len(words)


def test_a_oneformer_gives_each_pixel_one_label(tmp_path: Path) -> None:
    torch.manual_seed(0)
    words, count = tokenizer(tmp_path)
    classes = {str(i): {"name": name, "isthing": 0} for i, name in LABELS.items()}
    (tmp_path / "classes.json").write_text(json.dumps(classes))
    swin = transformers.SwinConfig(
        image_size=64, embed_dim=16, depths=[1] * 4, num_heads=[1] * 4, window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = transformers.OneFormerConfig(
        backbone_config=swin, use_pretrained_backbone=False, id2label=LABELS, num_queries=10, hidden_dim=32,
        mask_dim=32, conv_dim=32, encoder_feedforward_dim=32, encoder_layers=1, decoder_layers=2, dim_feedforward=32,
        num_attention_heads=4, text_encoder_width=32, text_encoder_n_ctx=4, text_encoder_num_layers=1,
        text_encoder_vocab_size=count, query_dec_layers=1,
    )  # fmt: skip
    transformers.OneFormerForUniversalSegmentation(config).save_pretrained(tmp_path)
    pictures = transformers.OneFormerImageProcessor(
        size={"shortest_edge": 64, "longest_edge": 128}, repo_path=str(tmp_path), class_info_file="classes.json",
        num_text=4, num_labels=3, ignore_index=255,
    )  # fmt: skip
    transformers.OneFormerProcessor(image_processor=pictures, tokenizer=words).save_pretrained(tmp_path)
    rgb = np.random.default_rng(0).integers(0, 255, (96, 160, 3), np.uint8)
    masks = [pixels_of(str(tmp_path), rgb, (label,), "cpu") != 0 for label in LABELS.values()]
    assert (np.sum(masks, axis=0) == 1).all()
