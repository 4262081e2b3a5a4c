"""Placements: who is where, what a node still has room for, and what today's placements are worth (S3, S6.5)."""

from dovetail.placement.compat import Obstacle, mix_holds, obstacle
from dovetail.placement.place import Place, Places, by_workload
from dovetail.placement.room import Room
from dovetail.placement.today import Today, judge
from dovetail.placement.view import View

__all__ = ["Obstacle", "Place", "Places", "Room", "Today", "View", "by_workload", "judge", "mix_holds", "obstacle"]
