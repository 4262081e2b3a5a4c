"""What lines `NodeName=` and `DownNodes=` of `slurm.conf` say of nodes: hardware, GPUs and state.

Keys are those of slurm.conf(5); others are refused, as Slurm does. States are as slurm.conf(5) has them and as
`scontrol show node` and `sinfo` print them: several with `+` between them, short ones too, and signs behind them such
as `*` (does not respond).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dovetail.faults import FaultLog, nearest
from dovetail.importers.clusterfile import Host
from dovetail.importers.partedfile import PROFILE
from dovetail.importers.slurmconf import Line

NODE_KEYS: Final = (
    *("NodeName", "NodeHostname", "NodeAddr", "BcastAddr", "Port", "Boards", "SocketsPerBoard", "Sockets"),
    *("CoresPerSocket", "ThreadsPerCore", "CPUs", "Procs", "CoreSpecCount", "CpuSpecList", "CpuBind", "RealMemory"),
    *("MemSpecLimit", "TmpDisk", "Gres", "GresConf", "RestrictedCoresPerGPU", "Feature", "Features", "State"),
    *("Reason", "Weight", "TRESWeights", "Topology", "Parameters", "SuspendTime"),
)
DOWN_KEYS: Final = ("DownNodes", "State", "Reason")

_FAILED: Final = ("down", "error", "fail", "failing", "failg", "inval", "invalid_reg")
_CORDONED: Final = (
    *("drain", "drained", "draining", "drng", "future", "futr", "dynamic_future", "maint", "maintenance"),
    *("external", "no_respond", "not_responding"),
)
_GOOD: Final = (
    *("idle", "allocated", "alloc", "mixed", "mix", "completing", "comp", "unknown", "unk", "cloud", "dynamic_norm"),
    *("planned", "plnd", "reserved", "resv", "blocked", "perfctrs", "npc", "reboot", "reboot_requested"),
    *("reboot_issued", "boot", "power_down", "power_up", "powering_down", "powering_up", "powered_down", "pow_dn"),
    *("pow_up", "powered_dn", "powring_dn", "resume", "undrain"),
)
_STATES: Final = {
    **dict.fromkeys(_GOOD, ""),
    **dict.fromkeys(_CORDONED, "cordoned"),
    **dict.fromkeys(_FAILED, "failed"),
}
_SIGNS: Final = {"*": "no_respond", "$": "maint"}
"""Signs behind a state that keep new work off; the others of `sinfo` do not."""

_SIGNED: Final = re.compile(r"(?P<word>[a-z_]*)(?P<signs>[*~#!%$@^-]*)")
_TYPE: Final = re.compile(r"[A-Za-z0-9_.-]+")
_NUMBER: Final = re.compile(r"[0-9]+[KMGTPkmgtp]?")
_MOST_GPUS: Final = 256


def check_keys(line: Line, known: Sequence[str], log: FaultLog) -> None:
    """Refuse keys that a line cannot have."""
    lower = {key.lower() for key in known}
    for key in line.values:
        if key not in lower:
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
            line.fault(log, f"a line {known[0]}= has no key '{line.spelt(key)[:40]}'", key, hint)


def state_of(line: Line, default: str, log: FaultLog) -> str:
    """Return what a state of Slurm's is here: ``cordoned``, ``failed`` or empty."""
    found = set()
    for part in line.values.get("state", default).lower().split("+"):
        signed = _SIGNED.fullmatch(part)
        word = signed["word"] if signed else part
        if word and word not in _STATES:
            near = nearest(word, _STATES)
            hint = f"did you mean {near.upper()}?" if near else "such as IDLE, DRAIN, DOWN, or IDLE+DRAIN"
            line.fault(log, f"{part.upper()[:40]!r} is no state of a node", "state", hint)
        found.add(_STATES.get(word, ""))
        found |= {_STATES[_SIGNS[sign]] for sign in (signed["signs"] if signed else "") if sign in _SIGNS}
    return next((state for state in ("failed", "cordoned") if state in found), "")


def host_of(line: Line, name: str, log: FaultLog) -> Host:
    """Return what a line says of one of its nodes."""
    parts = (line.integer(log, key, 1) for key in ("boards", "socketsperboard", "corespersocket", "threadspercore"))
    boards, per_board, cores, threads = parts
    sockets = line.integer(log, "sockets", boards * per_board)  # all of the node
    cpus = line.integer(log, "cpus", line.integer(log, "procs", sockets * cores * threads))
    model, gpus = _gpus(line, log)
    memory = line.integer(log, "realmemory", 1)
    return Host(name, (), 1000 * cpus, memory, gpus, model, state_of(line, "unknown", log))


def _gpus(line: Line, log: FaultLog) -> tuple[str, int]:
    """Return the model and number of a node's GPUs; several models on one node are a fault."""
    found: dict[str, int] = {}
    for part in re.split(r",(?![^(]*\))", line.values.get("gres", "")):
        name, *rest = re.sub(r"\([^)]*\)$", "", part).split(":")
        if name.lower() != "gpu":
            continue
        told = _type_and_number(rest)
        if told is None:
            line.fault(log, f"'{part[:40]}' does not tell how many GPUs there are", "gres", "such as gpu:h100:8")
        elif PROFILE.search(told[0].lower()):
            hint = "leave the node out, and declare its GPUs in the Cluster that is made"
            line.fault(log, "GPUs that MIG cuts are not imported", "gres", hint)
        else:
            found[told[0]] = found.get(told[0], 0) + told[1]
    if len(found) > 1:
        message = f"GPUs of several models on one node ({', '.join(sorted(found))})"
        line.fault(log, message, "gres", "a node here has GPUs of one model; leave the others out")
    return next(iter(found.items())) if found else ("", 0)


def _type_and_number(rest: Sequence[str]) -> tuple[str, int] | None:
    """Return what is behind a resource's name, `[type][:no_consume][:number]`, None where it is something else."""
    parts = [part for part in rest if part.lower() != "no_consume"]
    number = parts.pop() if parts and _NUMBER.fullmatch(parts[-1]) else "1"
    if len(parts) > 1 or not all(map(_TYPE.fullmatch, parts)):
        return None
    if not number.isdigit() or len(number) > len(str(_MOST_GPUS)) or int(number) > _MOST_GPUS:
        return None
    return (parts[0] if parts else "unknown"), int(number)
