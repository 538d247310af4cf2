"""Volumes and virtual disks against what they say. The parts are chosen by bench/run."""
