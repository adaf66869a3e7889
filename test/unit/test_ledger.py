# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutations_for_tests import Echo, Shuffle
from recordings import bundles, camera_info, image, stamp

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.ledger import Ledger, draws_name, find_followup, load_draws, read_ledger
from mt_nodes.engine.message_digests import sha256_of, sha256_of_followup
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.pipeline import MutationPipeline

PAIR = Pair(0, 0, "shuffled")
MUTATIONS = [Shuffle(drop=2), Echo(5)]


def test_a_followup_is_made_again_bit_for_bit_from_the_ledger(tmp_path: Path) -> None:
    (bundle,) = bundles(1)
    pipeline = MutationPipeline(MUTATIONS, 7, "shuffled")
    made = pipeline.derive(bundle)
    with Ledger(tmp_path) as ledger:
        ledger.followup(PAIR, MUTATIONS, made.draws, made.followup)
    line = find_followup(tmp_path, Pair(0, 0, "shuffled", "0@any_check"))
    assert line["relation"] == "shuffled"
    assert line["mutations"][0] == {"name": "shuffle", "params": {"drop": 2, "every_third": True, "lie": False}}
    assert line["effects"] == json.loads(json.dumps(made.effects.as_plain()))
    assert [s["delay_ns"] for s in line["stamps"]] == [0, 5]
    assert [s["/points"] for s in line["stamps"]] == [stamp(0), stamp(0) + 5]
    again = pipeline.rebuild(bundle, load_draws(tmp_path, line))
    assert sha256_of_followup(again) == line["sha256"]


def record(directory: Path, draws: list[Draw], pair: Pair = PAIR) -> dict[str, Any]:
    with Ledger(directory) as ledger:
        ledger.followup(pair, [Shuffle()], draws, Followup(((0, bundles(1)[0]),)))
    return find_followup(directory, pair)


def test_draws_load_as_they_were(tmp_path: Path) -> None:
    layout = np.dtype({"names": ["x", "t"], "formats": [">f4", "u1"], "offsets": [0, 6], "itemsize": 12})
    draws: list[Draw] = [
        {"many": 10**20, "share": 0.1, "far": float("inf"), "yes": True, "none": None, "name": "ä"},
        {},
        {"f4": np.float32(0.1), "u2": np.arange(3, dtype=">u2"), "empty": np.empty((0, 3)), "file": np.arange(2),
         "fortran": np.asfortranarray(np.eye(3)), "points": np.zeros(2, layout), "raw": np.zeros(2, "V5"),
         "/points|xyz": np.array([[1.0, np.nan, 3.0]])},
    ]  # fmt: skip
    back = load_draws(tmp_path, record(tmp_path, draws))
    assert back[:2] == draws[:2]
    assert list(back[2]) == list(draws[2])
    for name, value in draws[2].items():
        assert type(back[2][name]) is type(value)
        assert back[2][name].dtype == value.dtype
        assert back[2][name].tobytes() == value.tobytes()


def test_small_draws_need_no_file(tmp_path: Path) -> None:
    line = record(tmp_path, [{"n": 3}])
    assert line["arrays"] is None and line["draw"] == [{"n": 3}]
    assert not (tmp_path / "draws").exists()


def test_equal_draws_make_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        record(tmp_path / name, [{"order": np.arange(5)}])
    a, b = (tmp_path / n / "draws" / draws_name(PAIR) for n in "ab")
    assert a.read_bytes() == b.read_bytes()
    assert {i.date_time[0] for i in zipfile.ZipFile(a).infolist()} == {1980}
    assert (tmp_path / "a" / "ledger.jsonl").read_bytes() == (tmp_path / "b" / "ledger.jsonl").read_bytes()


@pytest.mark.parametrize("bad", [{"a": [1]}, {"a": np.array([{}])}, {"a": {"b": 1}}])
def test_what_a_draw_must_not_hold(tmp_path: Path, bad: Draw) -> None:
    with pytest.raises(TypeError, match=r"draw 0, 'a': got (list|ndarray|dict), expected array, number or text"):
        record(tmp_path, [bad])


def test_names_of_draws_are_never_shared() -> None:
    pairs = [Pair(0, 1, "a.0"), Pair(0, 1, "a", "0.0"), Pair(0, None, "a"), Pair(0, 1, "a"), Pair(0, 1, "a%2E0")]
    names = {draws_name(p) for p in [*pairs, Pair(0, 1, "../../a")]}
    assert len(names) >= len(pairs)
    assert not any("/" in n for n in names)


def test_a_resumed_run_must_make_the_same_again(tmp_path: Path) -> None:
    (bundle,) = bundles(1)
    same, other = Followup(((0, bundle),)), Followup(((1, bundle),))
    with Ledger(tmp_path) as ledger:
        assert ledger.followup(PAIR, [], [], same) is not None
    before = (tmp_path / "ledger.jsonl").read_bytes()
    with Ledger(tmp_path) as resumed:
        assert resumed.followup(PAIR, [], [], same) is None
        with pytest.raises(InfrastructureError, match=r"follow-up 0/0/shuffled/0 has SHA-256 .* before"):
            resumed.followup(PAIR, [], [], other)
    assert (tmp_path / "ledger.jsonl").read_bytes() == before


def test_what_is_missing_or_damaged_is_said(tmp_path: Path) -> None:
    line = record(tmp_path, [{"order": np.arange(5)}])
    with pytest.raises(UsageError, match="no follow-up of pair '0/9/shuffled/0'"):
        find_followup(tmp_path, Pair(0, 9, "shuffled"))
    with pytest.raises(UsageError, match=r"has no ledger\.jsonl"):
        list(read_ledger(tmp_path / "elsewhere"))
    file = tmp_path / line["arrays"]
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InfrastructureError, match="cannot read the draws of pair 0/0/shuffled/0"):
        load_draws(tmp_path, line)


def variants() -> dict[str, Bundle]:
    (b,) = bundles(1)
    cloud = b.cloud()
    raw = cloud.raw.copy()
    raw.view(np.uint8)[14] ^= 1  # a byte of padding
    f4 = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("ring", "<f4")])
    clouds = {
        "topic": replace(cloud, topic="/other"),
        "stamp": replace(cloud, stamp_ns=1),
        "frame": replace(cloud, frame_id="f"),
        "data": cloud.with_raw(raw),
        "order": cloud.with_raw(cloud.raw[::-1]),
        "rows": replace(cloud, height=2),
        "dense": replace(cloud, is_dense=False),
        "layout": replace(cloud, points=cloud.raw.view(f4)),
    }
    made = {name: replace(b, clouds=(c,)) for name, c in clouds.items()}
    pixels = image(0).pixels
    made["image shape"] = replace(b, images=(replace(image(0), pixels=pixels.reshape(8, 6, 3)),))
    made["encoding"] = replace(b, images=(replace(image(0), encoding="rgb8"),))
    made["pixels"] = replace(b, images=(replace(image(0), pixels=pixels ^ 1),))
    made["compressed"] = replace(b, images=(replace(image(0), compressed=b"1"),))
    made["intrinsics"] = replace(b, camera_infos=(replace(camera_info(0), k=np.eye(3)),))
    made["missing"] = replace(b, images=())
    return {"none": b, **made}


def test_the_hash_covers_topic_stamp_frame_layout_and_data() -> None:
    hashes = {name: sha256_of(bundle) for name, bundle in variants().items()}
    assert len(set(hashes.values())) == len(hashes)


def test_the_hash_is_not_of_the_bytes_on_the_wire() -> None:
    (b,) = bundles(1)
    through = [codec.cloud_from_msg(c.topic, codec.decode(codec.POINT_CLOUD, codec.encode_cloud(c))) for c in b.clouds]
    strided = replace(b.cloud(), points=np.repeat(b.cloud().raw, 2)[::2].view(b.cloud().points.dtype))
    assert sha256_of(b) == sha256_of(b.with_clouds(through)) == sha256_of(b.with_clouds([strided]))
    assert sha256_of(b, ["/points"]) == sha256_of(replace(b, images=(), camera_infos=()))
