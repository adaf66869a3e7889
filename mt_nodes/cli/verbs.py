# SPDX-License-Identifier: Apache-2.0
"""The verbs of the commands that are nothing but several, such as ``mt models train``, and the module of each."""

from __future__ import annotations

from collections.abc import Mapping

from mt_nodes.cli.options import Verbs

VERBS: Mapping[str, Verbs] = {
    "evidence": {
        "plan": ("evidence_plan", "sign a plan before the data are seen"),
        "countersign": ("evidence_plan", "sign somebody else's plan as a witness"),
        "make": ("evidence_bundle", "make a signed bundle of a plan and its runs"),
        "verify": ("evidence_bundle", "verify a bundle off line, and reproduce a pair of it"),
    },
    "experiment": {
        "noise-outside-roi": (
            "noise_experiment",
            "Zhou & Sun, CACM 2019: noise outside the region must not hide an obstacle inside",
        ),
        "moral": (
            "moral",
            "Tang et al., 2025: whom a stack hits in unavoidable collisions, judged by moral principles",
        ),
        "moral-search": (
            "moral_search",
            "what a search of dilemmas finds, by principle, mutation operator and guidance, over several seeds",
        ),
        "moral-levels": (
            "moral_levels",
            "the same dilemmas with true objects, a LiDAR and a camera: which module chose, perception or planning",
        ),
        "automt": ("automt", "Liang et al., 2025: how often follow-ups from traffic rules are valid, and are violated"),
        "routes": ("route_experiment", "Brown, Zhou & Chow, 2018: routes of related questions must agree in length"),
    },
    "models": {
        "list": ("models_list", "List the networks, and the weights that are available"),
        "record": ("models_data", "Record images of an expert's drives, with its speed and steering"),
        "train": ("models_train", "Train a network on images labelled with speed and steering"),
        "evaluate": ("models_evaluate", "Measure the errors of a trained driving model"),
        "train-detector": ("models_detector", "Train a LiDAR or camera detector on generated streets"),
        "evaluate-detector": ("models_detector", "Measure recall and precision of a stack on generated streets"),
        "cutouts": ("models_cutouts", "Cut real objects out of your labelled images, for added objects"),
        "edit-video": ("models_video", "Edit a recording by a video model, for image_instructed"),
    },
    "rules": {
        "extract": ("rules_extract", "Extract relations from traffic rules"),
        "compare": ("rules_compare", "Read rules by several readers; print how far they agree"),
        "check": ("rules_check", "Check that every relation is bound to mutations and a check"),
        "import": ("rules_store", "Import relations from CSV, YAML and .feature files into a store"),
        "export": ("rules_store", "Export the relations of a store to a CSV, YAML or .feature file"),
        "list": ("rules_store", "List the relations of a store"),
        "match": ("rules_match", "Describe frames of a bag and choose a relation for each, with reasons"),
        "review": ("rules_review", "Let people rate relations on a sheet; print the ratings and how far raters agree"),
        "stats": ("rules_check", "Count relations; measure precision and recall of their readers"),
    },
}
