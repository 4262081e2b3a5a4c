"""The current state as a Placement document tells it (S6.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from dovetail.build.cursor import Cursor, Log, cursor, frozen
from dovetail.build.partitions import read_layout
from dovetail.documents import Document
from dovetail.mig import Instance, parse_instance
from dovetail.placement import layout_of
from dovetail.placement.clients import equal_parts
from dovetail.quantities import parse_duration
from dovetail.spec import Current, Layout, Node, PresentReplica, ReplicaId, Role, Setting, Spec
from dovetail.spec.identity import IdentityError, ReplicaRange, parse_range

MOST_REPLICAS: Final = 1_000_000


def read_current(document: Document, log: Log, spec: Spec | None = None) -> Current:
    """Return what runs today; what reality has and the documents lack is kept, and no fault.

    Parameters
    ----------
    spec : what is declared; where given, what runs of other workloads gives a warning, and layouts must be legal.
    """
    workloads = spec.by_id if spec else None
    here = cursor(document, log)
    found = read_places(here, spec)
    elapsed = {}
    for workload, running in here.fields("running"):
        elapsed[workload] = running["elapsed"].quantity(parse_duration, 0)
        if workloads is not None and workload not in workloads:
            running.warn("DT1914", f"no workload '{workload}' is declared", of_key=True)
    if spec is not None:
        _look_at_gpus(here, spec)
    gpus, settings = dict(_layouts(here, spec)), dict(_settings(here, spec))
    present = tuple(found[replica] for replica in sorted(found))
    return Current(present, frozen(elapsed), gpus=frozen(gpus), settings=frozen(settings))


def read_places(here: Cursor, spec: Spec | None = None) -> dict[ReplicaId, PresentReplica]:
    """Return replicas and their places, as the mapping `placements` of a value tells them.

    Parameters
    ----------
    spec : what is declared; where given, replicas and places that are not give a warning.
    """
    left = MOST_REPLICAS
    warnings = _Warnings(spec) if spec else None
    found: dict[ReplicaId, PresentReplica] = {}
    for text, row in here.fields("placements"):
        replicas = _range(text, row, left)
        if replicas is None:
            continue
        left -= replicas.size
        if warnings is not None:
            warnings.look_at(replicas, row)
        before, place = len(found), (row.raw("node"), tuple(sorted(row.raw("gpus", ()))), _instance(row))
        found |= {replica: PresentReplica(replica, *place) for replica in replicas.replicas()}
        if len(found) < before + replicas.size:
            row.fault("DT1702", f"{text} has a place already", of_key=True)
    return found


def _instance(row: Cursor) -> str:
    """Return the MIG instance of a row, empty where it has none."""
    text: str = row.raw("instance", "")
    if text and "@" not in text:
        _told(row["instance"])
    elif text and len(row.raw("gpus", ())) != 1:
        row["instance"].fault("DT1705", "a MIG instance is on one GPU", "name that GPU in 'gpus'", of_key=True)
    else:
        return text
    return ""


def _look_at_gpus(here: Cursor, spec: Spec) -> None:
    """Warn of GPUs that are told to be cut or shared, and are not there or cannot be shared so."""
    for gpu, row in here.fields("gpus"):
        name, _, index = gpu.rpartition("/")
        node = spec.cluster.by_name.get(name)
        if node is None:
            row.warn("DT1923", f"there is no node '{name}'", row.log.suggest(name, spec.cluster.by_name), of_key=True)
        elif int(index) >= node.gpus:
            _warn_of_gpu(row, node, int(index), of_key=True)
        elif (mode := row.raw("mode")) != "mig" and not equal_parts(node):
            message = f"GPUs of '{node.name}' are in no mode, and this one is told to be in {mode}"
            row.warn("DT1930", message, "modes are of nodes with 'sharing' by devicePlugin or dra", of_key=True)


def _warn_of_gpu(told: Cursor, node: Node, index: int, *, of_key: bool = False) -> None:
    """Warn of a GPU that a node lacks."""
    hint = f"it has {node.gpus}, counted from 0"
    told.warn("DT1923", f"'{node.name}' has no GPU {index}", hint, of_key=of_key)


def _layouts(here: Cursor, spec: Spec | None) -> Iterator[tuple[str, Layout]]:
    """Yield the layouts of GPUs in MIG mode, by `node/index`."""
    for name, row in here.fields("gpus"):
        node = spec.cluster.by_name.get(name.rpartition("/")[0]) if spec else None
        card = spec.accelerators.get(node.accelerator or "") if spec and node else None
        if row.raw("mode") != "mig":
            continue
        if "clients" in row.value:
            message = "clients share a GPU in another mode; one that is cut has instances"
            row["clients"].fault("DT1706", message, of_key=True)
        if card is not None:
            yield name, read_layout(row.items("instances"), card, {}) or ()
        else:
            yield name, layout_of(filter(None, map(_told, row.items("instances"))))


def _settings(here: Cursor, spec: Spec | None) -> Iterator[tuple[str, Setting]]:
    """Yield what GPUs that are shared by equal parts are set to, by `node/index`."""
    before: dict[str, Setting] = {}
    for name, row in here.fields("gpus"):
        mode, clients = row.raw("mode"), row.raw("clients")
        if mode == "mig":
            continue
        if clients is None or "instances" in row.value:
            row.fault("DT1706", f"a GPU in mode {mode} has 'clients', and no instances")
            continue
        setting = Setting(mode, clients)
        node = spec.cluster.by_name.get(name.rpartition("/")[0]) if spec else None
        if node is not None and node.mechanism == "devicePlugin" and before.setdefault(node.name, setting) != setting:
            other = f"{before[node.name].mode} with {before[node.name].clients} clients"
            row.fault("DT1706", f"another GPU of '{node.name}' is in mode {other}", "a device plugin has one for all")
        yield name, setting


def _told(here: Cursor) -> Instance | None:
    """Return an instance of a GPU of which nothing is known; a fault where it does not say its start."""
    if "@" in here.value:
        return parse_instance(here.value)
    here.fault("DT1430", f"'{here.value}' does not say where it starts", "write profile@start, such as 3g.40gb@4")
    return None


def _range(text: str, row: Cursor, most: int) -> ReplicaRange | None:
    """Return the replicas that a row speaks of, None after a fault."""
    try:
        found = parse_range(text)
    except IdentityError as error:
        row.fault("DT1701", str(error), of_key=True)
        return None
    if found.size > most:
        row.fault("DT1703", f"{text} brings the replicas above {MOST_REPLICAS:,}", of_key=True)
        return None
    return found


@dataclass(slots=True)
class _Warnings:
    """What reality has and the documents lack: kept, and told."""

    spec: Spec
    _whole: dict[str, str] = field(default_factory=dict)  # GPUs with a replica that has whole ones, and which

    def look_at(self, replicas: ReplicaRange, row: Cursor) -> None:
        """Warn of a row whose workload, or whose place, is not there."""
        workload = self.spec.by_id.get(replicas.workload)
        if workload is None:
            hint = row.log.suggest(replicas.workload, self.spec.by_id)
            row.warn("DT1914", f"no workload '{replicas.workload}' is declared", hint, of_key=True)
        elif (role := workload.by_role.get(replicas.role)) is None:
            what = f"role '{replicas.role}'" if replicas.role else "replicas outside its roles"
            row.warn("DT1914", f"the workload '{replicas.workload}' has no {what}", of_key=True)
        else:
            self._look_at_place(replicas, role, row)

    def _look_at_place(self, replicas: ReplicaRange, role: Role, row: Cursor) -> None:
        name, gpus = row.raw("node"), row.raw("gpus", ())
        node = self.spec.cluster.by_name.get(name)
        if node is None:
            row["node"].warn("DT1923", f"there is no node '{name}'")
        elif gpus and max(gpus) >= node.gpus:
            _warn_of_gpu(row["gpus"], node, max(gpus))
        elif role.request.gpus:
            self._take(replicas, [f"{name}/{gpu}" for gpu in gpus], row)

    def _take(self, replicas: ReplicaRange, gpus: Sequence[str], row: Cursor) -> None:
        """Warn where another replica, or another one of these, has one of these GPUs as a whole."""
        others = next((self._whole[gpu] for gpu in gpus if gpu in self._whole), None)
        if others is not None or (gpus and replicas.size > 1):
            told = f"{others} has" if others else f"these {replicas.size} replicas have"
            row.warn("DT1924", f"{told} the same GPUs, which as whole ones are one replica's alone", of_key=True)
        self._whole.update(dict.fromkeys(gpus, str(replicas)))
