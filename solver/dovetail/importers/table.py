"""The table of importers, in the order in which help shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dovetail.importers.kueue_topology import import_kueue_topology
from dovetail.importers.mig_geometry import import_mig_geometry
from dovetail.importers.mig_parted import import_mig_parted
from dovetail.importers.openb import import_openb
from dovetail.importers.project import ImportedProject
from dovetail.importers.slurm_topology import import_slurm_topology


@dataclass(frozen=True, slots=True)
class Input:
    """One file that an importer reads.

    Parameters
    ----------
    option
        The key in `Importer.run`'s mapping, and the name of the command's option.
    help
        What the file holds, for the option's help.
    metavar
        What help shows for its value; a name that is no file is a path of one part.
    """

    option: str
    help: str
    metavar: str = "FILE"


@dataclass(frozen=True, slots=True)
class Importer:
    """One format that can be imported.

    Parameters
    ----------
    name
        The word after ``dovetail import``.
    summary
        What it imports, in one line.
    inputs
        The files it needs, every one of them.
    run
        From the path of each input to the documents; raises `dovetail.faults.Refused`.
    """

    name: str
    summary: str
    inputs: tuple[Input, ...]
    run: Callable[[Mapping[str, Path]], ImportedProject]


IMPORTERS: tuple[Importer, ...] = (
    Importer(
        name="openb",
        summary="the Alibaba GPU trace 2023 (openb): its nodes and one of its lists of pods",
        inputs=(
            Input("nodes", "CSV with the columns sn, cpu_milli, memory_mib, gpu, model"),
            Input("pods", "CSV with the columns name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec"),
        ),
        run=lambda inputs: import_openb(inputs["nodes"], inputs["pods"]),
    ),
    Importer(
        name="mig-geometry",
        summary="the MIG table that a driver prints, as an Accelerator document that goes before the catalogue",
        inputs=(
            Input("accelerator", "Id or alias of the accelerator that the table is of", "NAME"),
            Input("lgip", "What `nvidia-smi mig -lgip` prints: profiles"),
            Input("lgipp", "What `nvidia-smi mig -lgipp` prints: placements"),
        ),
        run=lambda inputs: import_mig_geometry(str(inputs["accelerator"]), inputs["lgip"], inputs["lgipp"]),
    ),
    Importer(
        name="mig-parted",
        summary="what GPUs are cut into today, from mig-parted's configurations and the nodes' labels",
        inputs=(
            Input("config", "Configurations of mig-parted"),
            Input("nodes", "What `kubectl get nodes -o json` prints"),
            Input("project", "The project, which says what GPUs each node has", "PATH"),
        ),
        run=lambda inputs: import_mig_parted(inputs["config"], inputs["nodes"], inputs["project"]),
    ),
    Importer(
        name="slurm-topology",
        summary="a cluster of Slurm: its switches or blocks, with the nodes of its configuration",
        inputs=(
            Input("topology", "topology.conf or topology.yaml: a tree of switches, or blocks"),
            Input("nodes", "slurm.conf, or its lines NodeName="),
        ),
        run=lambda inputs: import_slurm_topology(inputs["topology"], inputs["nodes"]),
    ),
    Importer(
        name="kueue-topology",
        summary="a cluster as Kueue's topology-aware scheduling sees it: a Topology, with the nodes' labels",
        inputs=(
            Input("topology", "YAML with one Topology"),
            Input("nodes", "What `kubectl get nodes -o json` prints"),
        ),
        run=lambda inputs: import_kueue_topology(inputs["topology"], inputs["nodes"]),
    ),
)
"""Every importer; a new one is one module and one entry here."""
