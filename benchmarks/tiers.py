"""How the names of tiers begin that benchmarks look for."""

from __future__ import annotations

from typing import Final

GPU_WORK: Final = "admitted["
DISRUPTION: Final = "disruption."
MEND: Final = "mend"
