# SPDX-License-Identifier: Apache-2.0
"""Relations of a run that names none, and how they can be named; it imports nothing, so that help stays quick."""

from __future__ import annotations

#: What stands for relations on every command line and in every file that names some.
RELATION_WORDS = "names of relations, .yaml files, patterns such as 'noise_*', tag:fog, suites (`mt list suites`), all"
DEFAULT = ("noise_outside_roi_10", "noise_outside_roi_100", "noise_outside_roi_1000")
#: Defaults for stacks with other inputs and outputs: the first list that fits.
OTHER_DEFAULTS = (
    ("brightness_lowered_boxes", "exposure_half_stop_up_boxes", "jpeg_quality_40_boxes"),
    ("exposure_one_stop_down_steering", "pixels_dead_steering", "lens_dirt_steering"),
    ("brightness_raised_lane", "sensor_noise_lane", "jpeg_quality_50_lane"),
    ("noise_beside_lane_keeps_current",),
    ("noise_outside_roi_1000_tracks", "noise_outside_roi_1000_predictions", "noise_outside_roi_1000_occupied"),
    ("noise_outside_roi_1000_tracks", "noise_outside_roi_1000_predictions"),
    ("noise_outside_roi_1000_occupied", "noise_outside_roi_1000_free"),
    ("brightness_raised_lane_lines", "jpeg_quality_50_lane_lines", "jpeg_quality_40_signals"),
    ("brightness_raised_lane_lines", "jpeg_quality_50_lane_lines"),
    ("exposure_one_stop_down_signals", "jpeg_quality_40_signals"),
    ("radar_clutter_outside_roi_30", "radar_ghosts_behind_walls", "radar_weak_targets_missed_beyond_25_m"),
)
#: Defaults of the closed loop: decided by every scenario, the quickest first.
LOOP_DEFAULT = ("far_object_same_trace", "far_crowd_brakes", "far_crowd_collisions", "world_moved_same_trace")
