"""Placements: who is where, what a node still has room for, and what today's placements are worth (S3, S6.5)."""

from dovetail.placement.compat import Obstacle, hardware_obstacle, mix_holds, obstacle
from dovetail.placement.copies import copies, laid
from dovetail.placement.instances import holds, least_profiles, profiles_for
from dovetail.placement.layouts import Layouts, layout_of
from dovetail.placement.makes import Makes, amounts_of, ask_of, make_of
from dovetail.placement.place import Held, Place, Places, Recovery, by_workload
from dovetail.placement.room import Room
from dovetail.placement.today import Today, judge
from dovetail.placement.view import View

__all__ = [
    "Held",
    "Layouts",
    "Makes",
    "Obstacle",
    "Place",
    "Places",
    "Recovery",
    "Room",
    "Today",
    "View",
    "amounts_of",
    "ask_of",
    "by_workload",
    "copies",
    "hardware_obstacle",
    "holds",
    "judge",
    "laid",
    "layout_of",
    "least_profiles",
    "make_of",
    "mix_holds",
    "obstacle",
    "profiles_for",
]
