# SPDX-License-Identifier: Apache-2.0
"""A picture edited by an instruction to a diffusion model."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.camera.diffusion_edit import Edited
from mt_nodes.world.camera.diffusion import EditRequest


@dataclass(frozen=True)
class ImageInstructed(Edited):
    """Has a model of the InstructPix2Pix kind edit the whole picture as a sentence says ("make it night").

    What AutoMT does for "replaces". Whether the picture shows what was asked for, is not proven: look at it.

    Guaranteed: samples differ by 1 % of full scale or more on average; size, stamp and encoding stay.
    """

    instruction: str = param("make it a snowy day", help="what is to be done to the picture")
    model: str = param("timbrooks/instruct-pix2pix", help="directory of a diffusers pipeline, or its id on the hub")
    guidance: float = param(7.5, low=0.0, high=50.0, aspect="fixed", help="how strictly the instruction is followed")

    def request(self) -> EditRequest:
        """Ask for the instruction."""
        return EditRequest(
            self.model, self.instruction, self.steps, self.guidance, self.seed, self.size_px, self.device
        )
