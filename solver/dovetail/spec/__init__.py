"""The domain's words as frozen values: what the documents mean, with all units resolved (S1, S2, S4, S5).

Integers throughout: compute in thousandths of a GPU (milli-GPU), memory in MiB, CPU in milli-cores, time in
milliseconds, money in millionths per hour.
"""

from dovetail.spec.cluster import (
    Accelerator,
    Cluster,
    EqualParts,
    Layout,
    Node,
    NodeGroup,
    Setting,
    Taint,
    Toleration,
)
from dovetail.spec.current import Current, PresentReplica
from dovetail.spec.objective import Expected, Objective
from dovetail.spec.options import Options
from dovetail.spec.policy import Enforcement, NodeSelector, Policy, Requirement, Waiver, WorkloadSelector
from dovetail.spec.slo import ServiceClass, Slo
from dovetail.spec.spec import Spec
from dovetail.spec.topology import Group, Nest, Topology
from dovetail.spec.workload import Observed, ReplicaId, Request, Role, Share, Workload

__all__ = [
    "Accelerator",
    "Cluster",
    "Current",
    "Enforcement",
    "EqualParts",
    "Expected",
    "Group",
    "Layout",
    "Nest",
    "Node",
    "NodeGroup",
    "NodeSelector",
    "Objective",
    "Observed",
    "Options",
    "Policy",
    "PresentReplica",
    "ReplicaId",
    "Request",
    "Requirement",
    "Role",
    "ServiceClass",
    "Setting",
    "Share",
    "Slo",
    "Spec",
    "Taint",
    "Toleration",
    "Topology",
    "Waiver",
    "Workload",
    "WorkloadSelector",
]
