"""Plans as arguments: a file, or `REV:path` out of git."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.spec.identity import speaks_of
from dovetail_cli import files, library
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.render.words import printable

if TYPE_CHECKING:
    from dovetail.documents import Document
    from dovetail.faults import Position
    from dovetail.plan import Plan
    from dovetail.proof.certificate import Certificate

_GIT_SECONDS = 60


def read_plan(reference: str) -> Plan:
    """Return the plan that an argument names.

    A file of that name wins over a revision. What is found must be a plan, else it is refused with its faults.
    """
    from dovetail.plan import read

    return read(plan_text(reference), reference)


def plan_text(reference: str, what: str = "plan") -> str:
    """Return the text that an argument names."""
    if not os.path.isfile(reference):
        revision, colon, inside = reference.partition(":")
        if colon and revision and inside:
            return _decoded(_from_git(revision, inside), reference)
        if os.path.isdir(reference):
            hint = f"give a plan's file, such as {printable(os.path.join(reference, 'plan.yaml'))}, or REV:path"
            raise usage(f"{printable(reference)} is a directory, not a {what}", hint)
        if os.path.exists(reference):
            raise usage(f"{printable(reference)} is no regular file", f"save the {what} in one first")
        raise usage(f"there is no {what} {printable(reference)}", "give a file, or REV:path such as HEAD:plan.yaml")
    return file_text(reference)


def file_text(file: str) -> str:
    """Return the text of a file, never that of a revision."""
    if not os.path.isfile(file):
        raise usage(f"there is no file {printable(file)}")
    try:
        return _decoded(Path(file).read_bytes(), file)
    except OSError as error:
        raise usage(f"{printable(file)} cannot be read: {error.strerror}") from None


def certificate_of(plan: Plan, reference: str, named: str | None) -> Certificate | None:
    """Return the certificate that a plan claims to have: the one named, else the one beside it, if any."""
    if not plan.claims_certificate:
        return None
    if named is not None:
        return library.read_certificate(plan_text(named, "certificate"), named)
    beside = files.certificate_file(reference)
    try:
        text = plan_text(beside)
    except CommandError:
        return None
    return library.read_certificate(text, beside)


def places_in(text: str, reference: str) -> Callable[[str], Position]:
    """Return what tells where a plan speaks of a subject: replica, node, GPU, workload, policy, tier or field."""
    from dovetail.documents import load_text

    file = reference if os.path.isfile(reference) else reference.partition(":")[2] or reference
    return functools.partial(_place_of, load_text(text, file)[0])


def _place_of(document: Document, subject: str) -> Position:
    spec = document.spec
    if subject in spec:
        return document.key_position("spec", subject)
    for key in ("policies", "admitted", "gpus", "summary", "placements"):
        if subject in spec.get(key, {}):
            return document.key_position("spec", key, subject)
    for index, tier in enumerate(spec.get("tiers", ())):
        if subject == tier["name"]:
            return document.position("spec", "tiers", index)
    rows = spec.get("placements", {})
    node, _, gpu = subject.rpartition("/")
    own = (text for text, row in rows.items() if row["node"] == subject or speaks_of(text, subject))
    beside = (text for text, row in rows.items() if row["node"] == node and gpu.isdigit())
    found = next(own, None) or next(beside, None)
    return document.key_position("spec", *(("outcome",) if found is None else ("placements", found)))


def _decoded(data: bytes, reference: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise usage(f"{printable(reference)} is not UTF-8 text") from None


def _from_git(revision: str, path: str) -> bytes:
    """Return a file as a revision has it; the path counts from the work tree's root, or from here with `./`."""
    git = shutil.which("git")
    if git is None:
        raise usage(f"git is not installed, so {revision}:{path} cannot be read")
    if revision.startswith("-"):
        raise usage(f"{printable(revision)} is not a revision")
    command = [git, "show", "--no-textconv", "--no-ext-diff", f"{revision}:{path}"]
    if _output([git, "cat-file", "-t", f"{revision}:{path}"]).strip() != b"blob":
        raise usage(f"{printable(revision)}:{printable(path)} is not a file")
    return _output(command)


def _output(command: list[str]) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise usage(f"git could not be run: {error}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["git failed"]
        raise usage(
            f"git: {printable(said[0])}", "paths count from the work tree's root; ./plan.yaml counts from here"
        )
    return done.stdout
