"""Slurm's network topology as a cluster: `topology.conf` or `topology.yaml`, with the nodes of `slurm.conf`.

Formats: topology.conf(5), topology.yaml(5) and slurm.conf(5) of Slurm 25.05. Of a tree every tier of switches is a
level, `leaf` the innermost; a node that hangs on a switch further out is, at the tiers inside, in a domain of that
switch's name. Of blocks `block` is a level, and so is each larger block size, as many base blocks in a row. Nodes
of the configuration that the topology does not have are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dovetail.faults import FaultLog, Position, nearest
from dovetail.importers.clusterfile import Host, few, project, unknown_parts
from dovetail.importers.project import ImportedProject
from dovetail.importers.slurmconf import Line, read_lines
from dovetail.importers.slurmnodes import DOWN_KEYS, NODE_KEYS, check_keys, host_of, state_of
from dovetail.importers.switches import Topology, read_topology


def import_slurm_topology(topology: Path, nodes: Path) -> ImportedProject:
    """Turn a topology and the nodes of a configuration into the documents of a cluster.

    Parameters
    ----------
    topology : `topology.conf`, or `topology.yaml` by its name's ending; of several topologies in it the cluster's
        default, else the first.
    nodes : `slurm.conf`, or the part of it with the lines `NodeName=` and `DownNodes=`; other lines are not read.

    Raises
    ------
    dovetail.faults.Refused
        With all that is wrong with either file.
    """
    log = FaultLog()
    tree = read_topology(topology, log)
    hardware = _hardware(nodes, log)
    log.raise_if_errors()
    hosts = _hosts(tree, hardware, nodes, log)
    log.raise_if_errors()
    without = len(hardware) - len(hosts)
    heading = (
        f"A cluster made by `dovetail import slurm-topology` from {topology.name} and {nodes.name}.",
        "Link speeds, weights, features and reserved cores are not part of it.",
        *([f"Left out, as the topology does not have them: {without} of {len(hardware)} nodes."] if without else []),
    )
    return replace(project("slurm", heading, tree.levels, hosts), warnings=log.warnings)


def _hosts(tree: Topology, hardware: Mapping[str, tuple[Host, Line]], nodes: Path, log: FaultLog) -> list[Host]:
    _check_names(tree, hardware, log)
    for name, place in tree.places.items():
        if name not in hardware:
            near = nearest(name, hardware)
            place(f"{nodes.name} has no node '{name}'", f"did you mean {near}?" if near else None)
    without = [name for name in hardware if name not in tree.paths]
    if without:
        hint = "they are no part of the cluster that is made; a switch or block that names them brings them in"
        message = f"left out, as the topology does not have them: {few(without)}"
        hardware[without[0]][1].warning(log, message, "nodename", hint)
    if len(without) == len(hardware):
        hint = "name them under Nodes= of a switch or block"
        hardware[without[0]][1].fault(log, f"the topology has no node of {nodes.name}", "nodename", hint)
    return [replace(host, domains=tree.paths[name]) for name, (host, _) in hardware.items() if name in tree.paths]


def _check_names(tree: Topology, hardware: Mapping[str, tuple[Host, Line]], log: FaultLog) -> None:
    """Refuse names that no node and no domain can have, at the line of the node, or of one in the domain."""
    hint = "letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    message = "{!r} cannot be the name of a node or a domain"
    for name in unknown_parts(hardware):
        hardware[name][1].fault(log, message.format(name[:40]), "nodename", hint)
    inside = {part: node for node, path in tree.paths.items() for part in path}
    for name in unknown_parts(inside):
        tree.places[inside[name]](message.format(name[:40]), hint)


def _hardware(path: Path, log: FaultLog) -> dict[str, tuple[Host, Line]]:
    """Return the nodes of a configuration and the lines that say so, by name."""
    found: dict[str, tuple[Host, Line]] = {}
    default: dict[str, str] = {}
    down: list[Line] = []
    before = len(log.errors)
    for line in read_lines(path, log):
        if "nodename" in line.values:
            check_keys(line, NODE_KEYS, log)
        if line.values.get("nodename", "").lower() == "default":
            default |= line.values
        elif "nodename" in line.values:
            whole = Line(line.file, line.number, line.text, {**default, **line.values}, line.columns)
            for name in line.names(log, "nodename"):
                if name in found:
                    line.fault(log, f"the node '{name}' is there twice", "nodename", "a node has one line NodeName=")
                found[name] = host_of(whole, name, log), line
        elif "downnodes" in line.values:
            down.append(line)
    if not found and len(log.errors) == before:
        log.add(
            "DT1957", f"{path} has no line NodeName=", Position(str(path), 1, 1), "give slurm.conf, or a part of it"
        )
    for line in down:
        _take_down(line, found, log)
    return found


def _take_down(line: Line, found: dict[str, tuple[Host, Line]], log: FaultLog) -> None:
    """Give nodes the state that a line `DownNodes=` gives them, `DOWN` if it names none."""
    check_keys(line, DOWN_KEYS, log)
    state = state_of(line, "down", log)
    for name in line.names(log, "downnodes"):
        if name in found:
            host, at = found[name]
            found[name] = replace(host, state=state), at
        else:
            near = nearest(name, found)
            message = f"there is no line NodeName= of '{name}'"
            line.fault(log, message, "downnodes", f"did you mean {near}?" if near else "name it there")
