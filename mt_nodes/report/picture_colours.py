# SPDX-License-Identifier: Apache-2.0
"""Colours of all pictures: those of Okabe and Ito (Color Universal Design, 2008); marks also differ in shape."""

BLACK, BLUE, ORANGE, VERMILLION, GREEN, PURPLE = "#000000", "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7"
#: In place of blue on a dark ground.
LIGHT_BLUE = "#56B4E9"
GREY = "#8A8A8A"
