# SPDX-License-Identifier: Apache-2.0
"""Driving models in PyTorch: their layers, training and files, and they as stacks under test. Toys, tiny pictures."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

torch = pytest.importorskip("torch", reason="needs the extra 'models'")
pytest.importorskip("torchvision", reason="needs the extra 'models'")

sys.path.insert(0, str(Path(__file__).parents[1]))

from mt_nodes.base.errors import InfrastructureError, UsageError  # noqa: E402
from mt_nodes.cli.main import main  # noqa: E402
from mt_nodes.data.bags.bundles import write_bundles  # noqa: E402
from mt_nodes.runs.models import training  # noqa: E402
from mt_nodes.runs.models.driving_model import DrivingModel  # noqa: E402
from mt_nodes.runs.models.extra import device_of  # noqa: E402
from mt_nodes.runs.models.network_catalogue import NETWORKS  # noqa: E402
from mt_nodes.runs.models.networks import make_network  # noqa: E402
from mt_nodes.runs.models.preprocessing import Preparation  # noqa: E402
from mt_nodes.runs.models.recipe import EpochReport, Recipe  # noqa: E402
from mt_nodes.runs.models.samples import Frames, PictureSample, load_frames, write_samples  # noqa: E402
from mt_nodes.runs.models.samples import Sample as Row  # noqa: E402
from mt_nodes.runs.models.torch_files import read_torch, write_torch  # noqa: E402
from mt_nodes.runs.models.training import predictions_of, train  # noqa: E402
from mt_nodes.runs.models.weights_file import About, Scale, Weights, load_weights  # noqa: E402
from mt_nodes.world.scene.camera_rendering import CameraSensor  # noqa: E402
from mt_nodes.world.scene.drive import generate_drive  # noqa: E402

device_of("cpu")
#: Smallest pictures that each network can see, or nearly so.
SIZES = {
    "pilotnet": (66, 70),
    "pilotnet_published": (66, 70),
    "epoch": (16, 16),
    "resnet101": (32, 32),
    "vgg16": (32, 32),
    "cnn_lstm": (66, 70),
    "cnn3d": (66, 70),
}


def toy(drives: int, count: int, seed: int = 0) -> Iterator[PictureSample]:
    """Pictures of a bright post: where it stands tells steering, how wide it is the speed."""
    rng = np.random.default_rng(seed)
    for drive in range(drives):
        at, half = 50.0, 6.0
        for _ in range(count):
            at = float(np.clip(at + rng.normal(0.0, 12.0), 20.0, 80.0))
            half = float(np.clip(half + rng.normal(0.0, 2.0), 3.0, 12.0))
            rgb = rng.integers(0, 40, (72, 100, 3), dtype=np.uint8)
            rgb[20:60, int(at - half) : int(at + half)] = 220
            yield PictureSample(rgb, half, (50.0 - at) / 100.0, str(drive))


@cache
def toys(name: str, drives: int = 2, count: int = 40) -> tuple[Frames, Preparation]:
    height, width = SIZES[name]
    prepared = Preparation(height_px=height, width_px=width)
    return load_frames([toy(drives, count)], prepared), prepared


def quick(name: str, **changed: Any) -> Recipe:
    return Recipe(**{"network": name, "epochs": 3, "batch": 16, "ahead": 0, **changed})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PilotNet that has learned the toy."""
    frames, prepared = toys("pilotnet", 4, 60)
    out = tmp_path_factory.mktemp("trained")
    train(frames, prepared, quick("pilotnet", epochs=12, batch=32), out)
    return out


def model(name: str, path: Path) -> Path:
    """A file of weights that were begun and never trained."""
    torch.manual_seed(0)
    scale = Scale(5.0, 2.0, 0.0, 0.2)
    made = {"ahead": 0}
    prepared = Preparation(*SIZES[name])
    Weights(About(name, prepared, scale, made), make_network(name, SIZES[name])).save(path)
    return path


# --- layers


@pytest.mark.parametrize("name", NETWORKS)
def test_convolutions_leave_what_is_published_and_two_numbers_are_said(name: str) -> None:
    network = NETWORKS[name]
    size = network.height_px, network.width_px
    made = make_network(name, size).eval()
    given = torch.zeros((1, 3, *size) if network.frames == 1 else (1, network.frames, 3, *size))
    with torch.no_grad():
        assert made[0](given).shape[-1] == network.features
        assert made(given).shape == (1, 2)


def affine(name: str) -> bool:
    """Whether what is upon the convolutions is one linear map and a shift."""
    torch.manual_seed(1)
    head = make_network(name, SIZES[name])[1:].eval()
    features = make_network(name, SIZES[name])[0](torch.zeros(1, 3, *SIZES[name])).shape[-1]
    a, b = torch.randn(2, 1, features)
    with torch.no_grad():
        return bool(torch.allclose(head(a + b), head(a) + head(b) - head(torch.zeros_like(a)), atol=1e-4))


def test_only_the_published_pilotnet_has_no_activation_between_its_last_layers() -> None:
    assert affine("pilotnet_published") and not affine("pilotnet")


@pytest.mark.parametrize("name", ["cnn_lstm", "cnn3d"])
def test_what_looks_at_four_frames_heeds_each_and_their_order(name: str) -> None:
    torch.manual_seed(2)
    network = make_network(name, SIZES[name]).eval()
    frames = torch.rand(1, 4, 3, *SIZES[name])
    with torch.no_grad():
        said = network(frames)
        for i in range(4):
            other = frames.clone()
            other[:, i] = -1.0
            assert not torch.equal(network(other), said), f"frame {i} counts"
        assert not torch.equal(network(frames.flip(1)), said)


def test_pictures_that_are_too_small_and_names_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match="pilotnet cannot see pictures of 60 x 20 pixels"):
        make_network("pilotnet", (20, 60))
    with pytest.raises(UsageError, match="did you mean 'resnet101'"):
        make_network("resnet", (32, 32))


def test_a_trunk_of_torchvision_is_taken_and_any_other_file_refused(tmp_path: Path) -> None:
    from torchvision.models import vgg

    features = vgg.make_layers(vgg.cfgs["D"])
    given = {f"features.{key}": torch.full_like(value, 0.25) for key, value in features.state_dict().items()}
    write_torch(tmp_path / "vgg.pt", {**given, "classifier.0.weight": torch.zeros(3)})
    made = make_network("vgg16", (32, 32), tmp_path / "vgg.pt")
    assert (made[0][0][0].weight == 0.25).all() and (made[0][0][28].bias == 0.25).all()
    assert not (made[0][1].weight == 0.25).any(), "the convolution upon it is begun anew"
    with pytest.raises(UsageError, match=r"got no conv1\.weight of shape \(64, 3, 7, 7\)"):
        make_network("resnet101", (32, 32), tmp_path / "vgg.pt")
    with pytest.raises(UsageError, match="but epoch has none; resnet101 and vgg16 do"):
        make_network("epoch", (32, 32), tmp_path / "vgg.pt")


# --- training


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_trains(name: str, tmp_path: Path) -> None:
    frames, prepared = toys(name)
    if name in ("resnet101", "vgg16"):
        frames = dataclasses.replace(
            frames, planes=frames.planes[:20], commands=frames.commands[:20], drive=frames.drive[:20]
        )
    rate = 1e-5 if name == "vgg16" else 1e-3  # its wide layers run away on so few windows
    reports = train(frames, prepared, quick(name, epochs=4, brightness=0.0, rate=rate), tmp_path / "out")
    assert reports[-1].train_loss < 0.9 * reports[0].train_loss
    loaded = load_weights(tmp_path / "out" / "weights.pt")
    assert loaded.about.network == name and loaded.about.made["epochs"] == 4


def test_what_was_learned_is_better_than_who_always_says_the_same(trained: Path) -> None:
    from mt_nodes.runs.models.evaluation import errors_of

    loaded = load_weights(trained / "weights.pt")
    windows = load_frames([toy(1, 60, seed=9)], loaded.about.prepared).windows(1, 0)
    for row in errors_of(predictions_of(loaded, windows, "cpu"), windows.targets):
        assert row.mae < 0.6 * row.constant_mae, row


def states(out: Path) -> dict[str, Any]:
    return dict(read_torch(out / training.CHECKPOINT)["network"])


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


class Killed(BaseException):
    """As a signal ends a process: nothing handles it."""


@pytest.mark.parametrize("name", ["epoch", "cnn_lstm"])
def test_a_resumed_training_is_the_undisturbed_one(name: str, tmp_path: Path) -> None:
    """Dropout, batch norm, Adam's moments, the order and the brightness of windows: all go on as they were."""
    frames, prepared = toys(name)
    recipe, whole, cut = quick(name), tmp_path / "whole", tmp_path / "cut"
    train(frames, prepared, recipe, whole)

    def kill(report: EpochReport) -> None:
        if report.epoch == 1:
            raise Killed

    with pytest.raises(Killed):
        train(frames, prepared, recipe, cut, progress=kill)
    assert len(read_torch(cut / training.CHECKPOINT)["reports"]) < len((whole / training.METRICS).read_text()) * 2
    seen: list[int] = []
    train(frames, prepared, recipe, cut, resume=True, progress=lambda report: seen.append(report.epoch))
    assert seen == [0, 1, 2]
    assert (cut / training.METRICS).read_text() == (whole / training.METRICS).read_text()
    assert same(states(cut), states(whole))
    best = [read_torch(out / training.WEIGHTS)["tensors"] for out in (cut, whole)]
    assert same(*best)


def test_seeds_decide_and_more_epochs_may_be_asked_for(tmp_path: Path) -> None:
    frames, prepared = toys("epoch")
    for out, seed, epochs in (("a", 0, 2), ("b", 0, 1), ("c", 1, 2)):
        train(frames, prepared, quick("epoch", seed=seed, epochs=epochs), tmp_path / out)
    train(frames, prepared, quick("epoch", epochs=2), tmp_path / "b", resume=True)
    assert same(states(tmp_path / "a"), states(tmp_path / "b"))
    assert not same(states(tmp_path / "a"), states(tmp_path / "c"))
    begun = [training._Training(frames, prepared, quick("epoch", seed=s), tmp_path, "cpu", None) for s in (0, 0, 1)]
    first = [one._model.network.state_dict() for one in begun]
    assert same(first[0], first[1]) and not same(first[0], first[2])


def test_validation_leaves_no_trace_in_what_is_learned(tmp_path: Path) -> None:
    """Where a network is not in evaluation mode meanwhile, batch norm takes its statistics of held-out pictures."""
    frames, prepared = toys("epoch")
    planes = frames.planes.copy()
    planes[frames.part != 0] = 255 - planes[frames.part != 0]
    train(frames, prepared, quick("epoch", epochs=2), tmp_path / "a")
    train(dataclasses.replace(frames, planes=planes), prepared, quick("epoch", epochs=2), tmp_path / "b")
    assert same(states(tmp_path / "a"), states(tmp_path / "b"))
    told = [json.loads((tmp_path / out / training.METRICS).read_text().splitlines()[-1]) for out in "ab"]
    assert told[0]["validation_loss"] != told[1]["validation_loss"]


def test_the_weights_are_those_of_the_lowest_validation_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter((3.0, 1.0, 2.0))
    monkeypatch.setattr(training._Training, "_validated", lambda self: (next(losses), 0.0, 0.0))
    frames, prepared = toys("epoch")
    train(frames, prepared, quick("epoch"), tmp_path / "out")
    assert load_weights(tmp_path / "out" / "weights.pt").about.made["epoch"] == 1
    rows = [json.loads(line) for line in (tmp_path / "out" / training.METRICS).read_text().splitlines()]
    assert [row["validation_loss"] for row in rows] == [3.0, 1.0, 2.0]


def test_mirrored_bends_are_learned_the_other_way(tmp_path: Path) -> None:
    frames, prepared = toys("pilotnet", 4, 60)
    left = np.flatnonzero(frames.commands[:, 1] > 0.0)
    turned = Frames(frames.planes[left], frames.commands[left], np.zeros(len(left), dtype=np.intp))
    train(turned, prepared, quick("pilotnet", epochs=15, mirror=True), tmp_path / "out")
    other = dataclasses.replace(turned, planes=np.ascontiguousarray(turned.planes[..., ::-1]))
    windows = other.windows(1, 0, "train")
    said = predictions_of(load_weights(tmp_path / "out" / "weights.pt"), windows, "cpu")[:, 1]
    assert np.corrcoef(said, windows.targets[:, 1])[0, 1] < -0.7


def test_what_cannot_be_trained_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, prepared = toys("epoch")
    few = dataclasses.replace(frames, planes=frames.planes[:9], commands=frames.commands[:9], drive=frames.drive[:9])
    with pytest.raises(UsageError, match="got 0 windows of the part validation, expected 1 at least"):
        train(few, prepared, quick("epoch"), tmp_path / "a")
    with pytest.raises(UsageError, match=r"a: got no checkpoint\.pt, expected a training to go on with"):
        train(frames, prepared, quick("epoch"), tmp_path / "a", resume=True)
    train(frames, prepared, quick("epoch", epochs=1), tmp_path / "a")
    with pytest.raises(UsageError, match="holds a training already; go on with it by --resume"):
        train(frames, prepared, quick("epoch"), tmp_path / "a")
    with pytest.raises(UsageError, match=r"other settings: rate 0\.001, not 0\.01"):
        train(frames, prepared, quick("epoch", epochs=1, rate=0.01), tmp_path / "a", resume=True)
    other = dataclasses.replace(frames, commands=frames.commands + 1.0)
    with pytest.raises(UsageError, match="other settings: frames "):
        train(other, prepared, quick("epoch", epochs=1), tmp_path / "a", resume=True)
    for device in ("tpu", "meta"):  # the latter PyTorch has, and computes nothing on it
        with pytest.raises(UsageError, match=f"device '{device}' cannot be used"):
            train(frames, prepared, quick("epoch"), tmp_path / "b", device=device)
    monkeypatch.setitem(training._LOSSES, "l1", lambda said, wanted: (said - wanted).sum() * float("nan"))
    with pytest.raises(InfrastructureError, match="epoch 0: the loss is no number any more; try a lower rate"):
        train(frames, prepared, quick("epoch"), tmp_path / "c")
    (tmp_path / "file").touch()
    monkeypatch.undo()
    with pytest.raises(InfrastructureError, match="cannot write results"):
        train(frames, prepared, quick("epoch"), tmp_path / "file")


# --- files


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_loaded_answers_as_what_was_saved(name: str, tmp_path: Path) -> None:
    path = model(name, tmp_path / "w.pt")
    loaded = load_weights(path)
    loaded.save(tmp_path / "half.pt", half=True)
    again, half = load_weights(path), load_weights(tmp_path / "half.pt")
    assert again.about == loaded.about == half.about
    windows = toys(name)[0].windows(NETWORKS[name].frames, 0, "test")
    said = predictions_of(loaded, windows, "cpu")
    assert (predictions_of(again, windows, "cpu") == said).all()
    assert np.abs(predictions_of(half, windows, "cpu") - said).max() < 0.02
    assert (tmp_path / "half.pt").stat().st_size < 0.6 * path.stat().st_size


def spoiled(path: Path, change: Any) -> Path:
    data = read_torch(path)
    change(data)
    write_torch(path, data)
    return path


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d.update(format=2), "got format 2, expected a file of format 1"),
        (lambda d: d.pop("about"), "got format 1, expected"),
        (lambda d: d.update(about="{}"), "what it says of itself cannot be read: 'prepared'"),
        (lambda d: d.update(about=d["about"].replace("pilotnet", "pilot")), "did you mean 'pilotnet'"),
        (lambda d: d.update(about=d["about"].replace('"area"', '"none"')), "expected one of area, lanczos"),
        (
            lambda d: d["tensors"].pop("0.0.weight"),
            r"0\.0\.weight: got None, expected numbers of shape \(24, 3, 5, 5\)",
        ),
        (lambda d: d["tensors"].update({"0.0.bias": torch.zeros(3)}), r"got \(3,\), expected numbers of shape \(24,\)"),
        (lambda d: d["tensors"]["0.0.bias"].fill_(float("nan")), "got numbers that are not finite"),
        (lambda d: d.update(tensors=[1]), "expected numbers of shape"),
    ],
)
def test_a_file_that_is_not_of_a_model_is_refused(change: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        load_weights(spoiled(model("pilotnet", tmp_path / "w.pt"), change))


def test_what_is_no_file_of_weights_is_refused_and_never_executed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no file .*gone\.pt; `mt models train` makes such files"):
        load_weights(tmp_path / "gone.pt")
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(UsageError, match="no file of weights can be read from it"):
        load_weights(tmp_path / "text.pt")
    torch.save({"format": 1, "about": Path("x"), "tensors": {}}, tmp_path / "object.pt")
    with pytest.raises(UsageError, match="no file of weights can be read from it"):
        load_weights(tmp_path / "object.pt")
    torch.save([1], tmp_path / "list.pt")
    with pytest.raises(UsageError, match="got a list, expected a mapping"):
        load_weights(tmp_path / "list.pt")
    whole = model("pilotnet", tmp_path / "w.pt")
    whole.write_bytes(whole.read_bytes()[:-500])
    with pytest.raises(UsageError, match="no file of weights can be read from it"):
        load_weights(whole)


# --- stacks


def test_a_stack_says_what_its_network_says(trained: Path) -> None:
    stack = DrivingModel(str(trained / "weights.pt"), wheelbase_m=2.0)
    pictures = list(toy(1, 5, seed=3))
    frames = load_frames([pictures], stack.about.prepared)
    expected = predictions_of(load_weights(trained / "weights.pt"), frames.windows(1, 0), "cpu")
    for i, shown in enumerate(pictures):
        control = stack(shown.rgb, i).control
        assert (control.speed_mps, control.steering_rad) == pytest.approx(expected[i], abs=2e-6)
        assert control.yaw_rate_radps == pytest.approx(control.speed_mps * np.tan(control.steering_rad) / 2.0, abs=1e-5)


def test_no_stack_drives_backwards(tmp_path: Path) -> None:
    path = model("pilotnet", tmp_path / "w.pt")
    spoiled(path, lambda d: d.update(about=d["about"].replace('"speed_mean_mps": 5.0', '"speed_mean_mps": -5.0')))
    assert DrivingModel(str(path))(np.zeros((72, 100, 3), np.uint8), 0).control.speed_mps == 0.0


def test_a_sequence_model_says_nothing_before_it_has_seen_four_frames_of_a_drive(tmp_path: Path) -> None:
    path = model("cnn_lstm", tmp_path / "w.pt")
    pictures = [shown.rgb for shown in toy(1, 9)]
    stack = DrivingModel(str(path))
    said = [stack(rgb, i * 100_000_000) for i, rgb in enumerate(pictures)]
    assert [output is None for output in said] == [True] * 3 + [False] * 6
    other = DrivingModel(str(path))
    later = [other(rgb, i * 100_000_000) for i, rgb in enumerate(pictures[5:])]
    assert later[-1].control == said[-1].control, "four frames are all it remembers"
    assert stack(pictures[0], 0) is not None, "a step back of a second is within a drive"
    assert stack(pictures[0], 1_000_000_001) is None, "a longer one is not"


#: Judged by control (image given twice), by sham (dithered), and by a picture mirrored.
RELATIONS = "image_mirrored_steering"


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bag = tmp_path_factory.mktemp("bags") / "street"
    write_bundles(bag, generate_drive(6, camera=CameraSensor(100, 72)))
    return bag


@pytest.mark.parametrize(("name", "offered", "decided"), [("pilotnet", 6, 6), ("cnn_lstm", 6, 3)])
def test_a_model_is_tested_like_any_stack(
    name: str, offered: int, decided: int, street: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"MT_WEIGHTS_{name.upper()}", str(model(name, tmp_path / "w.pt")))
    words = ["replay", str(street), "--stack", name, "--transport", "inprocess", "--relations", RELATIONS, "--json"]
    code = main([*words, "--out", str(tmp_path / "out")])
    told = json.loads(capsys.readouterr().out)
    assert code in (1, 3), "begun and never trained, it is no good, or there is too little to say so"
    row = told["relations"][RELATIONS]
    assert told["offered"] == 3 * offered and row["decided"] == decided
    assert (row["control"]["decided"], row["control"]["violated"]) == (decided, 0), "the same picture, the same answer"
    silent = told["outcomes"].get("UNPAIRED_BOTH", 0)
    assert silent == 3 * (offered - decided), "frames before the fourth have no answer in either arm"


def test_a_stack_without_weights_says_what_to_type(
    street: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MT_WEIGHTS_VGG16", raising=False)
    words = ["replay", str(street), "--stack", "vgg16", "--transport", "inprocess", "--relations", RELATIONS]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "MT_WEIGHTS_VGG16 is not set; type `mt models train" in capsys.readouterr().err


# --- the command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import cv2

    made = tmp_path_factory.mktemp("data")
    rows = []
    for i, shown in enumerate(toy(2, 40)):
        cv2.imwrite(str(made / f"{i}.png"), shown.rgb[..., ::-1])
        rows.append(Row(made / f"{i}.png", *shown[1:]))
    write_samples(made, rows)
    return made


def test_train_resume_and_evaluate_from_the_command_line(folder: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    size = ["--height-px", "66", "--width-px", "70", "--crop-top", "0.1", "--ahead", "0", "--batch", "16"]
    assert main(["models", "train", str(folder), "--out", str(out), "--epochs", "1", *size, "--half"]) == 0
    assert f"weights: {out / 'weights.pt'}" in capsys.readouterr().out
    assert (out / "weights_half.pt").is_file()
    assert main(["models", "train", "--resume", str(out), "--epochs", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["epochs"] == 3 and 0 <= told["best"]["epoch"] < 3
    assert load_weights(out / "weights.pt").about.prepared.crop_top == 0.1
    assert main(["models", "evaluate", str(out / "weights.pt"), str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(row["quantity"], row["windows"]) for row in told["errors"]] == [("speed", 8), ("steering", 8)]
    assert told["ahead_frames"] == 0 and told["part"] == "test"
    assert main(["models", "evaluate", str(out / "weights.pt"), str(folder), "--part", "all"]) == 0
    assert "constant prediction" in capsys.readouterr().out
    assert main(["models", "train", str(folder), "--out", str(out), *size]) == 2
    assert "holds a training already" in capsys.readouterr().err


def test_a_training_killed_in_its_first_epoch_begins_again(
    folder: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["models", "train", str(folder), "--out", str(tmp_path / "out"), "--epochs", "1", "--height-px", "66"]

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(training._Training, "epoch", interrupted)
        assert main(words) == 130
    assert f"go on with `mt models train --resume {tmp_path / 'out'}`" in capsys.readouterr().err
    assert main(["models", "train", "--resume", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 1


def test_a_bag_that_was_driven_can_be_learned_from(street: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["models", "train", str(street), "--out", str(tmp_path / "out")]) == 2
    assert "no topic of a known type tells it" in capsys.readouterr().err


def test_a_stack_file_of_ones_own_names_weights_and_device(trained: Path, tmp_path: Path) -> None:
    from mt_nodes.stacks.callables import load_callable
    from mt_nodes.stacks.stack import load_stack

    mine = {
        "callable": "mt_nodes.runs.models.driving_model:DrivingModel",
        "params": {"weights": str(trained / "weights.pt"), "device": "cpu"},
        "inputs": "camera",
        "outputs": "control",
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(mine))
    made = load_callable(load_stack(str(tmp_path / "mine.yaml")))
    assert made(next(toy(1, 1)).rgb).control is not None
