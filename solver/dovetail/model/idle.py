"""What a node has left, in the variables of a model: what tiers on stranded capacity ask of it."""

from __future__ import annotations

from dovetail.linear import Linear
from dovetail.model.variables import Variables
from dovetail.objectives import Idle, IdleGpu
from dovetail.objectives.sharing import Clients
from dovetail.placement.clients import Terms, equal_parts
from dovetail.placement.instances import share_memory
from dovetail.spec import Node
from dovetail.spec.workload import MILLI


def idle_of(variables: Variables, index: int) -> Idle:
    """Return what a node has left, by its index."""
    slots, made = variables.slots[index], variables.problem.nodes[index]
    cpu = {v: -amount for slot, v in slots.items() if (amount := variables.request(slot).cpu)}
    untouched = Linear(constant=len(made.healthy_gpus()))
    for slot, variable in slots.items():
        untouched.add_term(variable, -variables.request(slot).gpus)
    parted = []
    for gpu, flag in variables.shared.get(index, {}).items():
        untouched.add_term(flag, -1)
        parted.append(_idle_share(variables, index, gpu, flag))
    for gpu, flag in variables.partitions.flags.get(index, {}).items():
        untouched.add_term(flag, -1)
        parted.append(_idle_cut(variables, index, gpu, flag))
    clients = _clients(variables, index, made) if equal_parts(made) else None
    return Idle(Linear(cpu, made.cpu), untouched, tuple(parted), _surplus(variables, index), clients)


def _clients(variables: Variables, index: int, node: Node) -> Clients:
    """Return who is on GPUs of a node that are shared by equal parts."""
    on: dict[int, dict[Terms, Linear]] = {}
    whole = Linear()
    for slot, variable in variables.slots[index].items():
        whole.add_term(variable, variables.request(slot).gpus)
        terms = None if slot.profile or slot.gpu < 0 else variables.problem.terms(slot.shape, node)
        if terms is not None:
            on.setdefault(slot.gpu, {}).setdefault(terms, Linear()).add_term(variable)
    return Clients(node, variables.model, on, whole)


def _surplus(variables: Variables, index: int) -> Linear:
    node, total = variables.problem.nodes[index], Linear()
    geometry = variables.problem.geometry(node)
    for slot, variable in variables.slots[index].items():
        request = variables.problem.request(slot.shape, node)
        if slot.profile and request.share is not None and geometry is not None:
            total.add_term(variable, geometry.by_name[slot.profile].milli - request.gpu_milli)
    return total


def _idle_share(variables: Variables, index: int, gpu: int, flag: int) -> IdleGpu:
    node = variables.problem.nodes[index]
    card = variables.problem.spec.accelerators[node.accelerator or ""].memory
    amount, vram = Linear.of(flag, MILLI), Linear.of(flag, MILLI * card)
    for slot, variable in variables.slots[index].items():
        if slot.gpu == gpu and not slot.profile:
            request = variables.problem.request(slot.shape, node)
            amount.add_term(variable, -request.gpu_milli)
            vram.add_term(variable, -share_memory(request, card))
    if equal_parts(node):
        amount = variables.model.positive_part(amount)
    return IdleGpu(amount, vram, None, gpu)


def _idle_cut(variables: Variables, index: int, gpu: int, flag: int) -> IdleGpu:
    geometry = variables.problem.geometry(variables.problem.nodes[index])
    amount, held = Linear.of(flag, MILLI), dict[str, Linear]()
    for slot, variable in variables.slots[index].items():
        if slot.gpu == gpu and slot.profile and geometry is not None:
            amount.add_term(variable, -geometry.by_name[slot.profile].milli)
            held.setdefault(slot.profile, Linear()).add_term(variable)
    return IdleGpu(amount, Linear(), held, gpu)
