"""The commands; `TABLE` is the one place that lists them, in the order that help shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Parameters
    ----------
    name : the word after `dovetail`.
    summary : what it does, in one line.
    module : where its function `run` (or, for a group of commands, its `app`) is; imported when it is called.
    """

    name: str
    summary: str
    module: str


TABLE: tuple[Command, ...] = (
    Command("init", "Write a small project that plans at once.", "init"),
    Command("validate", "Check the documents: syntax, schemas, references, arithmetic.", "validate"),
    Command("plan", "Solve, show the difference to the base, write the plan.", "plan"),
    Command("verify", "Check a plan against the documents, without any solver.", "verify"),
    Command("diff", "Show what changes from one plan to another, and what it costs.", "diff"),
    Command("show", "Read a plan.", "show"),
    Command("policies", "List the policies: sources, whom they bind, what they cost.", "policies"),
    Command("whatif", "Plan a scenario and show it beside the base.", "whatif"),
    Command("test", "Run the tests of policies and what scenarios expect.", "test"),
    Command("import", "Turn files of other formats into documents.", "importing"),
    Command("export", "Write a plan in the formats of other programs.", "exporting"),
    Command("explain", "Say why work waits, what a node holds, what a code means.", "explain"),
    Command("schema", "Print the JSON Schema of a kind of document.", "schema"),
    Command("fmt", "Write documents and plans in their canonical form.", "fmt"),
    Command("accelerators", "Look up accelerators and draw their MIG layouts.", "accelerators"),
    Command("doctor", "Look at the installation, or at a project's model.", "doctor"),
    Command("version", "Print the version.", "version"),
)
