"""A plot as SVG, written by hand: the same figures give the same bytes, and nothing is needed to draw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log10

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 330, 200  # of a panel
LEFT, TOP, RIGHT, BOTTOM = 50, 30, 104, 32
COLUMNS = 3
INK, FAINT, LINE = "#24292f", "#d0d7de", "#0969da"
STYLE = f"text{{font:11px sans-serif;fill:{INK}}} .t{{font-weight:bold}} .s{{font-size:10px}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One list of pods: gaps in per cent over seconds, and the gaps of the baselines as levels."""

    title: str
    points: Points
    levels: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Axes:
    """Both axes are logarithmic: seconds across, gap in per cent up."""

    seconds: tuple[float, float]
    gap: tuple[float, float]

    def x(self, value: float) -> float:
        return LEFT + _share(value, *self.seconds) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (1 - _share(value, *self.gap)) * (HEIGHT - TOP - BOTTOM)


def svg(panels: Sequence[Panel], seconds: tuple[float, float], gap: tuple[float, float]) -> str:
    """Return panels side by side; gaps below the least of the axis lie on its border."""
    axes = Axes(seconds, gap)
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="Gap to the proved bound against time">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for index, panel in enumerate(panels):
        row, column = divmod(index, COLUMNS)
        lines.append(f'<g transform="translate({column * WIDTH} {row * HEIGHT})">')
        lines += [*_frame(panel, axes), *_levels(panel, axes), *_curve(panel, axes)]
        lines.append("</g>")
    return "\n".join([*lines, "</svg>"]) + "\n"


def _frame(panel: Panel, axes: Axes) -> list[str]:
    lines = [_text(LEFT, 18, panel.title, "t")]
    left, right, bottom = axes.x(axes.seconds[0]), axes.x(axes.seconds[1]), axes.y(axes.gap[0])
    for value in _decades(axes.gap):
        lines.append(_line(left, axes.y(value), right, axes.y(value), FAINT))
        lines.append(_text(left - 4, axes.y(value) + 4, f"{value:g} %", "s", "end"))
    for value in _decades(axes.seconds):
        lines.append(_line(axes.x(value), TOP, axes.x(value), bottom, FAINT))
        lines.append(_text(axes.x(value), bottom + 14, f"{value:g} s", "s", "middle"))
    return lines


def _levels(panel: Panel, axes: Axes) -> list[str]:
    lines = []
    for name, gap in panel.levels.items():
        height = axes.y(_within(gap, axes.gap))
        lines.append(_line(axes.x(axes.seconds[0]), height, axes.x(axes.seconds[1]), height, INK, "4 3"))
        lines.append(_text(axes.x(axes.seconds[1]) + 4, height + 3, name, "s"))
    return lines


def _curve(panel: Panel, axes: Axes) -> list[str]:
    """Draw steps: a gap holds until the next one is reached, the last to the end of the axis."""
    if not panel.points:
        return []
    path = ""
    for seconds, gap in panel.points:
        x, y = axes.x(_within(seconds, axes.seconds)), axes.y(_within(gap, axes.gap))
        path += f"M{x:.1f} {y:.1f}" if not path else f"H{x:.1f}V{y:.1f}"
    path += f"H{axes.x(axes.seconds[1]):.1f}"
    last = panel.points[-1][1]
    label = _text(axes.x(axes.seconds[1]) + 4, axes.y(_within(last, axes.gap)) + 3, f"dovetail {last:.2f} %", "s")
    return [f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="2"/>', label]


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds over a number of GPUs."""

    name: str
    points: Points


COLOURS = (
    "#0969da",
    "#cf222e",
    "#1a7f37",
    "#9a6700",
    "#8250df",
    "#57606a",
    "#bf3989",
    "#0550ae",
    "#bc4c00",
    "#24292f",
)
WIDE, TALL = 640, 360


def curves(found: Sequence[Curve]) -> str:
    """Return seconds against GPUs, both axes logarithmic, with a name at the end of each curve."""
    sizes = [gpus for curve in found for gpus, _ in curve.points] or [1000.0]
    low, high = min(sizes) / 1.5, max(sizes) * 1.5
    least, most = 0.01, max([10.0, *(seconds for curve in found for _, seconds in curve.points)]) * 1.5

    def x(value: float) -> float:
        return LEFT + _share(value, low, high) * (WIDE - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (1 - _share(_within(value, (least, most)), least, most)) * (TALL - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {TALL}" width="{WIDE}" height="{TALL}" '
        'role="img" aria-label="Seconds of each phase against the number of GPUs">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDE}" height="{TALL}" fill="#ffffff"/>',
    ]
    for value in _decades((least, most)):
        lines.append(_line(LEFT, y(value), WIDE - RIGHT, y(value), FAINT))
        lines.append(_text(LEFT - 4, y(value) + 4, f"{value:g} s", "s", "end"))
    for size in sorted(set(sizes)):
        lines.append(_line(x(size), TOP, x(size), TALL - BOTTOM, FAINT))
        lines.append(_text(x(size), TALL - BOTTOM + 14, f"{size:,.0f}", "s", "middle"))
    below = 0.0
    for number, curve in enumerate(sorted(found, key=lambda each: -each.points[-1][1])):
        colour = COLOURS[number % len(COLOURS)]
        path = "L".join(f"{x(gpus):.1f} {y(seconds):.1f}" for gpus, seconds in curve.points)
        lines.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        below = max(below + 11, y(curve.points[-1][1]) + 3)  # names one under the other
        name = _text(x(curve.points[-1][0]) + 6, below, curve.name, "s")
        lines.append(name.replace("<text ", f'<text style="fill:{colour}" '))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _share(value: float, low: float, high: float) -> float:
    return (log10(value) - log10(low)) / (log10(high) - log10(low))


def _within(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])


def _decades(limits: tuple[float, float]) -> list[float]:
    return [10.0**power for power in range(-6, 7) if limits[0] <= 10.0**power <= limits[1]]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = "") -> str:
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dash}/>'


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'
