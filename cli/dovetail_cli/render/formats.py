"""The formats that a review of a plan can be printed in."""

from __future__ import annotations

from dovetail.diff.document import without_difference
from dovetail.plan import to_document
from dovetail_cli.render import annotated, annotation, machine, markdown, text
from dovetail_cli.render.columns import PLAIN, Screen
from dovetail_cli.render.review import Review

PLAN = ("table", "json", "yaml", "md", *annotated.FORMATS)
DIFF = ("table", "json", "yaml", "md")


def of_plan(review: Review, name: str, screen: Screen = PLAIN) -> str:
    """Return a plan in a format; `json` and `yaml` hold the whole Plan, the others the review."""
    if name in ("json", "yaml"):
        return _plan(review, name)
    if name == "md":
        return markdown.rendered(review)
    if name in annotated.FORMATS:
        return annotated.rendered(annotation.of_review(review), name)
    return text.rendered(review, screen)


def _plan(review: Review, name: str) -> str:
    if name == "yaml":
        from dovetail.plan import write

        return write(review.plan)
    return machine.rendered(to_document(review.plan), name)


def of_diff(review: Review, name: str, screen: Screen = PLAIN) -> str:
    """Return a difference in a format; `json` and `yaml` hold the PlanDiff."""
    if name in ("json", "yaml") and review.diff is not None:
        return machine.rendered(review.diff.to_document(), name)
    if name in ("json", "yaml") and review.apart is not None:
        return machine.rendered(without_difference(review.apart, review.plan), name)
    return markdown.rendered(review, "diff") if name == "md" else text.rendered(review, screen, "diff")
