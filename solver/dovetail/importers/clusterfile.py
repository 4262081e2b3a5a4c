"""A Cluster document out of an inventory of hosts and of what is around each of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dovetail import hostlist
from dovetail.catalogue import load
from dovetail.importers import emit
from dovetail.importers.project import ImportedProject
from dovetail.quantities import format_cpu, format_memory

PROJECT, CLUSTER, ACCELERATORS = "dovetail.yaml", "cluster.yaml", "accelerators.yaml"
OWNED = frozenset({PROJECT, CLUSTER, ACCELERATORS})
STAND_IN_MEMORY = "32Gi"
NODE_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?")
"""What a node may be called, and a part of a domain's path."""
_LONGEST_ID = 63
_FEW = 5


def few(names: Sequence[str]) -> str:
    """Return the first few names of hosts, and how many more there are, as a warning tells them."""
    return ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")


@dataclass(frozen=True, slots=True)
class Host:
    """A host: what it has, and the names of the domains around it, outermost first.

    Parameters
    ----------
    cpu, memory : milli-cores and MiB.
    model : the inventory's name of its GPUs, empty without any.
    state : ``cordoned``, ``failed`` or empty.
    """

    name: str
    domains: tuple[str, ...]
    cpu: int
    memory: int
    gpus: int = 0
    model: str = ""
    state: str = ""


def accelerator(model: str) -> str:
    """Return the id of the accelerator that an inventory's name stands for.

    An alias, or the beginning of one id alone, is the catalogue's; every other gets a document of its own.
    """
    entries = load().values()
    wanted = _label(model)
    exact = [e.id for e in entries if wanted in {_label(e.id), *map(_label, e.aliases)}]
    begun = [e.id for e in entries if _label(e.id).startswith(f"{wanted}-")]
    return next((found[0] for found in (exact, begun) if len(found) == 1), _own(wanted))


def _own(label: str) -> str:
    """Return an id for what the catalogue lacks; a long name is cut, and a digest keeps it apart from its like."""
    name = f"gpu-{label}".strip("-")
    if len(name) <= _LONGEST_ID:
        return name
    return f"{name[: _LONGEST_ID - 9].rstrip('-')}-{hashlib.sha256(name.encode('ascii')).hexdigest()[:8]}"


def project(name: str, heading: Sequence[str], levels: Sequence[str], hosts: Sequence[Host]) -> ImportedProject:
    """Return the documents of a cluster.

    Parameters
    ----------
    levels : names of the levels outside the node, outermost first; every host has a domain of each.
    """
    files = {
        PROJECT: emit.file(
            emit.comment(*heading),
            [emit.document("Project", {"name": name}, ['  documents: ["*.yaml"]', "  packs: []"])],
        ),
        CLUSTER: emit.file([], [emit.document("Cluster", {"name": name}, _cluster(levels, hosts))]),
    }
    others = sorted({accelerator(host.model) for host in hosts if host.model or host.gpus} - load().keys())
    if others:
        files[ACCELERATORS] = _accelerators(others)
    return ImportedProject(files, OWNED)


def _cluster(levels: Sequence[str], hosts: Sequence[Host]) -> list[str]:
    named = ", ".join(f"{{name: {emit.text(level)}}}" for level in (*levels, "node"))
    lines = [f"  levels: [{named}]", "  nodeGroups:"]
    groups: dict[tuple[str, int, int, int], list[Host]] = {}
    for host in hosts:
        model = accelerator(host.model) if host.gpus else ""
        groups.setdefault((model, host.gpus, host.cpu, host.memory), []).append(host)
    for number, ((model, gpus, cpu, memory), members) in enumerate(groups.items()):
        lines += [f"  - name: hosts-{number}", f"    names: {_folded(members)}"]
        lines += [f"    accelerator: {emit.text(model)}"] if gpus else []
        lines += [f"    gpus: {gpus}", f"    cpu: {format_cpu(cpu)}", f"    memory: {format_memory(memory)}"]
        lines += _domains(levels, members)
    apart = {host.name: host.state for host in hosts if host.state}
    lines += ["  nodes:"] if apart else []
    return lines + [f"    {emit.text(node)}: {{{state}: true}}" for node, state in apart.items()]


def _folded(hosts: Iterable[Host]) -> str:
    return emit.inline(hostlist.fold(host.name for host in hosts))


def _domains(levels: Sequence[str], hosts: Sequence[Host]) -> list[str]:
    lines = ["    domains:"] if levels else []
    for depth, level in enumerate(levels):
        inside: dict[str, list[Host]] = {}
        for host in hosts:
            inside.setdefault("/".join(host.domains[: depth + 1]), []).append(host)
        lines += [f"      {emit.text(level)}:", "        ranges:"]
        lines += [f"          {emit.text(path)}: {_folded(members)}" for path, members in inside.items()]
    return lines


def _accelerators(ids: Iterable[str]) -> str:
    heading = emit.comment(
        "GPUs that the built-in catalogue does not hold under these names, or has in several sizes. The memory is a",
        "stand-in: correct it before anything asks for a part of such a GPU.",
    )
    spec = [f"  memory: {STAND_IN_MEMORY}", '  source: "the inventory tells the name alone"', "  verified: false"]
    return emit.file(heading, [emit.document("Accelerator", {"name": each}, spec) for each in ids])


def _label(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def unknown_parts(names: Iterable[str]) -> Mapping[str, None]:
    """Return those of some names that no domain and no node can have, each once."""
    return dict.fromkeys(name for name in names if not NODE_NAME.fullmatch(name))
