# SPDX-License-Identifier: Apache-2.0
"""Detailed meshes of added objects, modelled by code: people, animals, cars, bicycles, in variants.

A kind that pictures show often has a module here; :mod:`.model_variants` lists its variants. Everything else keeps the
plain mesh of :mod:`mt_nodes.world.scene.objects`. May use meshes, paints and lamps of :mod:`mt_nodes.world.scene`.
"""
