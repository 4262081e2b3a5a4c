"""Codes of documents that are well-formed one by one and make no sense together (DT13xx to DT17xx, DT191x)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dovetail.faults.info import CodeInfo

REFERENCES: Final[Mapping[str, CodeInfo]] = {
    "DT1304": CodeInfo(
        "unknown accelerator",
        "Neither the built-in catalogue nor an Accelerator document has this id or alias. Declare it by a document.",
    ),
    "DT1305": CodeInfo(
        "name of another accelerator", "An id or alias stands for one accelerator; another one has it already."
    ),
    "DT1306": CodeInfo("unknown level", "The cluster declares no topology level of this name."),
    "DT1307": CodeInfo("node group declared twice", "Node groups of a cluster have different names."),
    "DT1308": CodeInfo("unknown node", "No node group of the cluster has a node of this name."),
    "DT1309": CodeInfo(
        "unknown domain", "No node lies in a domain of this path, or of a path that ends in this name."
    ),
    "DT1310": CodeInfo(
        "ambiguous domain", "Several domains end in this name. Write the whole path, such as `b1/r1`."
    ),
    "DT1311": CodeInfo("unknown node group", "The cluster declares no node group of this name."),
    "DT1312": CodeInfo(
        "unknown workload",
        "No document declares this workload. One in a namespace is named with it: `namespace/name`.",
    ),
    "DT1313": CodeInfo("unknown tenant", "The project lists its tenants, and this is none of them."),
    "DT1314": CodeInfo("unknown policy", "No pack of the project and no document has a policy of this name."),
    "DT1315": CodeInfo("unknown objective", "No document of kind Objective has this name."),
    "DT1316": CodeInfo("not one cluster", "The documents of a project declare exactly one Cluster."),
    "DT1318": CodeInfo(
        "namespace without meaning",
        "Only workloads are in namespaces. To limit a policy to one, match it by `workloads: {namespaces: [...]}`.",
    ),
    "DT1319": CodeInfo("unknown service class", "`Project.spec.sloClasses` declares the service classes there are."),
}

CLUSTER: Final[Mapping[str, CodeInfo]] = {
    "DT1401": CodeInfo("accelerator without memory", "The memory of an accelerator is at least 1 MiB."),
    "DT1402": CodeInfo(
        "not a list of names", "Names are plain, or a hostlist such as `gpu-[001-064,070]`, which stands for many."
    ),
    "DT1403": CodeInfo(
        "too many names", "A cluster has at most 200,000 nodes, and a list names no more nodes than there are."
    ),
    "DT1404": CodeInfo("node declared twice", "The names of nodes are unique in the cluster."),
    "DT1405": CodeInfo("more reserved than there is", "What is kept back for daemons is part of the node."),
    "DT1406": CodeInfo("GPUs without accelerator", "A node group with GPUs says which accelerator they are."),
    "DT1407": CodeInfo("accelerator without GPUs", "A node group whose nodes have no GPU names no accelerator."),
    "DT1408": CodeInfo("no such GPU", "The index is not below the number of GPUs of the node; it counts from 0."),
    "DT1410": CodeInfo(
        "sizes do not add up", "The sizes of a group's domains add up to the number of its nodes, exactly."
    ),
    "DT1411": CodeInfo(
        "domain across a border", "A domain that is cut by size lies inside one domain of the level outside it."
    ),
    "DT1412": CodeInfo("node in no domain", "The ranges of a level name every node of the group."),
    "DT1413": CodeInfo("node of another group", "The ranges of a group's domains name nodes of that group."),
    "DT1414": CodeInfo("node in two domains", "A node lies in one domain of each level."),
    "DT1415": CodeInfo(
        "domain with two parents",
        "The range is named by a path whose outer part is not where one of its nodes lies.",
    ),
    "DT1416": CodeInfo("label missing", "A level that is read from a label needs that label on every node."),
    "DT1417": CodeInfo("level declared twice", "The topology levels of a cluster have different names."),
    "DT1418": CodeInfo(
        "reserved level",
        "`gpu`, `island` and `socket` are levels inside every node. After `node`, `island` and `socket` may say a "
        "`bandwidthGBs`, and nothing else.",
    ),
    "DT1419": CodeInfo("node is not the last level", "Levels go from the outermost to `node`, the last one."),
    "DT1420": CodeInfo("too many levels", "A cluster has at most 16 topology levels, `node` included."),
    "DT1421": CodeInfo("MIG table makes no sense", "A profile takes more of a GPU than the table says there is."),
    "DT1422": CodeInfo(
        "MIG table not verified",
        "Nobody has seen this table on hardware. Allow it by `mig: {allowUnverified: true}` in an Accelerator "
        "document, or import what `nvidia-smi mig -lgip` and `-lgipp` print (`dovetail import mig-geometry`).",
    ),
    "DT1423": CodeInfo(
        "unknown MIG profile",
        "Profiles are those of one product: `1g.10gb` of an A100-40GB is not that of an A100-80GB. "
        "`dovetail accelerators NAME` shows what a product has.",
    ),
    "DT1424": CodeInfo(
        "no such MIG layout",
        "Instances have legal starts, do not overlap, and share the slices and engines of one GPU. "
        "`dovetail accelerators NAME` draws what exists.",
    ),
    "DT1426": CodeInfo(
        "islands that do not make up the node",
        "Every GPU of a node is in one island, and at one socket, where these are declared.",
    ),
    "DT1427": CodeInfo(
        "islands across sockets",
        "An island and a socket of a node have nothing in common, or one of them holds all GPUs of the other.",
    ),
    "DT1428": CodeInfo("no speed", "The speed of a node is above 0; one that does no work has failed."),
    "DT1429": CodeInfo("no throughput", "The throughput of an accelerator is above 0, as shares are measured by it."),
    "DT1430": CodeInfo("instance without a start", "A MIG instance of today is told with its start position."),
    "DT1431": CodeInfo("layout of a GPU that is not there", "GPU indices run from 0 to the node's GPUs less one."),
    "DT1432": CodeInfo("equal parts beside fractions", "GPUs that are shared by fractions have no equal parts."),
    "DT1433": CodeInfo("more parts than clients", "A GPU has as many equal parts as clients may share it at most."),
    "DT1434": CodeInfo("driver branch that is no number", "A driver branch is its number, such as 580."),
    "DT1435": CodeInfo("oversubscription below 1", "`oversubscription` is what may be promised over what there is."),
    "DT1436": CodeInfo(
        "MIG table of too many layouts",
        "The profiles of a table make at most 1,000 sets of instances that its slices, engines and maxima allow on "
        "one GPU; the largest built-in table makes 128.",
    ),
}

WORKLOADS: Final[Mapping[str, CodeInfo]] = {
    "DT1501": CodeInfo("empty request", "A replica asks for something: a GPU, CPU, memory or a resource."),
    "DT1503": CodeInfo("GPU field without GPU", "The field speaks of GPUs, and no replica asks for one."),
    "DT1504": CodeInfo(
        "atomic with fewer replicas",
        "An atomic workload runs with all its replicas or not at all; `minReplicas` is all.",
    ),
    "DT1505": CodeInfo("minReplicas above replicas", "The workload could never be admitted."),
    "DT1506": CodeInfo("role declared twice", "The roles of a workload have different names."),
    "DT1507": CodeInfo(
        "mix without atomic", "`mix` says how all replicas of an atomic workload go together; others run one by one."
    ),
    "DT1508": CodeInfo("more observed than possible", "A replica cannot use more GPUs than it is on."),
    "DT1509": CodeInfo(
        "toleration without effect",
        "`Equal` compares a key and its value; `Exists` takes a key and no value, or neither to tolerate everything.",
    ),
    "DT1510": CodeInfo("whole GPUs and a share", "A replica asks for whole GPUs, for a share of one, or for no GPU."),
    "DT1511": CodeInfo("accelerator listed twice", "Two names of the list stand for the same accelerator."),
    "DT1512": CodeInfo("share larger than a card", "No accelerator that the workload accepts has that much memory."),
    "DT1520": CodeInfo(
        "group of what",
        "A group says how many replicas it has: `of` in a workload without roles, `roles` in one with roles.",
    ),
    "DT1521": CodeInfo("unknown role of a group", "The workload has no role of this name."),
    "DT1522": CodeInfo(
        "level not inside", "What is wished or grouped lies at a level inside the one that is demanded around it."
    ),
    "DT1523": CodeInfo(
        "no whole groups", "The replicas of every role in a group are a multiple of its size, as many groups of each."
    ),
    "DT1524": CodeInfo("groups that do not nest", "The size of an inner group divides that of the one around it."),
    "DT1525": CodeInfo(
        "widths that cannot be", "An elastic role has `min` to `max` replicas, and `max` is whole steps above `min`."
    ),
    "DT1526": CodeInfo(
        "least number said twice", "Elastic replicas, or the minimum of groups, say how few are worth admitting."
    ),
    "DT1527": CodeInfo(
        "nothing inside a node", "Replicas without GPU are in no island and at no socket, so they can demand none."
    ),
    "DT1531": CodeInfo(
        "MIG for replicas that communicate", "MIG instances cannot talk to each other, not even on one GPU."
    ),
    "DT1532": CodeInfo(
        "isolation that nothing gives", "Only MIG keeps the faults of shares apart, and it keeps them from talking."
    ),
    "DT1533": CodeInfo("peak below the mean", "`burstiness` is peak over mean compute, so at least 1."),
    "DT1540": CodeInfo("rate of what is no service", "Only a service of one role with GPUs promises a rate."),
    "DT1541": CodeInfo(
        "no rate anywhere", "Nothing that the replicas of a service may be on has a rate above 0 in its table."
    ),
    "DT1542": CodeInfo(
        "rate without effect", "The table of a service names what its replicas are never on: whole GPUs or instances."
    ),
    "DT1543": CodeInfo("deadline of what has no GPUs", "Only a workload of one role with GPUs keeps a deadline."),
    "DT1544": CodeInfo("throughput without effect", "Throughputs tell how fast work is done that has a deadline."),
    "DT1545": CodeInfo(
        "worth of widths", "An elastic role tells what each width is worth, from `min` on, never falling."
    ),
    "DT1546": CodeInfo(
        "share of a reference accelerator",
        "One GPU of an accelerator that it may be on is enough for a share, whatever that takes of it.",
    ),
    "DT1547": CodeInfo(
        "atomic without a number", "All replicas or none takes a number of them, and a rate alone leaves it open."
    ),
}

POLICIES: Final[Mapping[str, CodeInfo]] = {
    "DT1601": CodeInfo("policy of two packs", "Two packs of the project have a policy of the same name."),
    "DT1602": CodeInfo(
        "policy left out and declared",
        "`withoutPolicies` drops policies of packs; a document of the same name replaces one. Do either.",
    ),
    "DT1603": CodeInfo("policy declared twice", "The policies of a pack have different names."),
    "DT1604": CodeInfo("nodes not given", "The rule is about nodes, and `match.nodes` does not say which."),
    "DT1605": CodeInfo("nodes without effect", "The rule is not about nodes, so `match.nodes` would be ignored."),
    "DT1606": CodeInfo("rule makes no sense", "The parameters of the rule contradict each other."),
    "DT1607": CodeInfo("tier given twice", "Each tier of an objective stands in one place of the order."),
    "DT1608": CodeInfo(
        "nothing to gain from work", "An objective without the tier `admitted` is best met by an empty cluster."
    ),
    "DT1609": CodeInfo("empty range of priorities", "The lower end is above the upper one."),
    "DT1610": CodeInfo("values without effect", "`Exists` and `DoesNotExist` look at the key alone."),
    "DT1611": CodeInfo(
        "label that nothing carries",
        "The rule tells workloads apart by a label that no workload carries, so that it would bind nobody.",
    ),
    "DT1612": CodeInfo("not one integer", "`Gt` and `Lt` compare the label of a node with one integer."),
    "DT1613": CodeInfo(
        "waiver that lifts nothing",
        "The policy binds no workloads of its own: what it holds, lets be promised or gives a cohort is for all.",
    ),
    "DT1620": CodeInfo(
        "workloads without effect", "The rule is not about workloads, so `match.workloads` would be ignored."
    ),
    "DT1621": CodeInfo(
        "policies leave no node",
        "Hard policies demand the admission of a workload and close every node that could host a replica of it.",
    ),
    "DT1622": CodeInfo(
        "policies demand more than a quota",
        "Hard policies demand the admission of work that asks for more than another one lets it hold.",
    ),
    "DT1623": CodeInfo(
        "policies leave too few domains",
        "Hard policies demand the admission of more replicas than another one lets into the domains that are open.",
    ),
    "DT1624": CodeInfo(
        "policies leave too few GPUs",
        "Hard policies demand the admission of work that asks for more GPUs than the nodes have that are open to it.",
    ),
    "DT1625": CodeInfo(
        "policies keep too many apart",
        "Hard policies demand the admission of work that has to be kept apart in more domains than are open to it.",
    ),
    "DT1626": CodeInfo(
        "policies put together what is kept apart",
        "Hard policies demand that workloads share a domain, and that they never do.",
    ),
    "DT1627": CodeInfo(
        "policies put together what is spread",
        "Hard policies demand that all replicas are in one domain, and that it holds fewer of them.",
    ),
    "DT1628": CodeInfo(
        "policies leave no domain wide enough",
        "Hard policies demand the admission of work that has to be in one domain, and none has that many GPUs.",
    ),
    "DT1629": CodeInfo(
        "policies hold too much free",
        "What hard policies demand and what they hold free are, together, more GPUs than the cluster has.",
    ),
    "DT1630": CodeInfo(
        "mix without its tier", "`futureMix` says what `fragmentation` is judged by, and that is no tier."
    ),
    "DT1631": CodeInfo(
        "amount without effect on fragmentation", "Fragmentation is about GPUs and their node's CPU (S5.5)."
    ),
    "DT1633": CodeInfo(
        "what has to survive restarts nowhere",
        "Hard policies demand the admission of work that has to survive failures, and none of it could restart. No "
        "GPU is cut for that: it takes instances that there are today or that evictable work gives up.",
    ),
    "DT1650": CodeInfo(
        "name of a built-in policy", "Plans call what workloads demand of topology by this name. Choose another one."
    ),
}

CURRENT_STATE: Final[Mapping[str, CodeInfo]] = {
    "DT1701": CodeInfo(
        "not a replica", "A replica is written `[namespace/]workload[.role]#index`, a run of them `...#first-last`."
    ),
    "DT1702": CodeInfo("replica in two places", "Two rows, or a row and a range, place the same replica."),
    "DT1703": CodeInfo("too many replicas", "The rows of a current state stand for at most a million replicas."),
    "DT1704": CodeInfo("two current states", "What runs today is told by one Placement document."),
    "DT1705": CodeInfo("instance without its GPU", "A MIG instance is on one GPU, which the row names."),
    "DT1706": CodeInfo(
        "mode not told in full", "A GPU in MIG mode has instances; one that clients share says how many there may be."
    ),
}

WARNINGS: Final[Mapping[str, CodeInfo]] = {
    "DT1632": CodeInfo(
        "policy holds more free than there is",
        "A hard policy holds more places or domains free than there would be if nothing ran. There is no plan.",
    ),
    "DT1911": CodeInfo("selects no workload", "No workload meets all conditions, so nothing comes of this."),
    "DT1912": CodeInfo("selects no node", "No node meets all conditions."),
    "DT1913": CodeInfo(
        "tenants not listed", "Without `Project.spec.tenants`, any word is a tenant, misspelt ones too."
    ),
    "DT1914": CodeInfo(
        "runs but is not declared",
        "The current state holds work that no document declares; the plan frees its place.",
    ),
    "DT1915": CodeInfo(
        "shares without a place", "Shares land on nodes that say how GPUs are shared; there are none."
    ),
    "DT1916": CodeInfo("objective not used", "`Project.spec.objective` names the objective that applies."),
    "DT1917": CodeInfo(
        "condition on a label that nothing carries",
        "`NotIn` and `DoesNotExist` hold for all that does not carry the label; a key that is nearly one in use is "
        "probably misspelt.",
    ),
    "DT1918": CodeInfo("waiver without effect", "The policy binds none of the workloads that the waiver selects."),
    "DT1919": CodeInfo("waiver ends soon", "Within 14 days of its end a waiver is told, its last day included."),
    "DT1920": CodeInfo(
        "policies never admit a workload",
        "No plan that keeps these hard policies runs the workload. Nothing demands that it runs, so there are plans.",
    ),
    "DT1921": CodeInfo(
        "policies keep up what breaks one of them",
        "A workload runs on nodes that a hard policy closes to it, which today excuses; another never lets it move.",
    ),
    "DT1922": CodeInfo(
        "what is held free never can be",
        "What runs today excuses that a hard policy lacks places or domains; an empty cluster would lack some too.",
    ),
    "DT1923": CodeInfo(
        "runs where nothing is",
        "The current state names a node, or a GPU of one, that the Cluster lacks; what ran there starts anew, and "
        "how such a GPU is cut or shared counts for nothing.",
    ),
    "DT1924": CodeInfo(
        "whole GPUs taken twice",
        "The current state has several replicas on the same whole GPUs; one keeps its place, the others start anew.",
    ),
    "DT1925": CodeInfo(
        "waiver is over", "It excuses nothing any more, and as long as it stands in the documents runs end with 4."
    ),
    "DT1926": CodeInfo("deadline is over", "On the day of `--as-of` the deadline has passed, and nothing meets it."),
    "DT1927": CodeInfo(
        "preference without a tier", "Workloads prefer a level, and no tier of the objective looks at topology."
    ),
    "DT1928": CodeInfo(
        "soft policy without a tier",
        "Soft policies that name no tier are weighed in `policies`, which the objective leaves out.",
    ),
    "DT1929": CodeInfo(
        "fits no node",
        "No node could hold a replica, were it empty and all of it sound; nothing demands that it runs.",
    ),
    "DT1930": CodeInfo(
        "mode of a GPU that is in none",
        "The current state says that a GPU is shared by MPS or time-slicing, and its node shares by thousandths or "
        "not at all; that counts for nothing.",
    ),
}
