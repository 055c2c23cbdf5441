# SPDX-License-Identifier: Apache-2.0
"""What each figure is to be, of the figures that `make bench` prints. None: reported, not held against anything."""
import operator
from typing import Any

GOALS: dict[str, str | None] = {
    'codegen_chain_60_ms': '<= 1',
    'codegen_100k_nodes_s': '<= 1',
    'codegen_100k_nodes_mb': '<= 1024',
    'codegen_growth_10k_100k': None,  # near ten
    'corpus_rows_within': '>= 46',
    'corpus_rows_total': '>= 46',
    'tiling_vs_exhaustive_p95': '<= 1.03',
    'tiling_over_pipe_bound_max': '<= 1.25',
    'hit_memo_handle_us': '<= 0.3',
    'hit_memo_text_us': '<= 1.5',
    'hit_hot_us': None,
    'hit_hot_over_lmdb': '<= 3',
    'hit_stream_p50_over_echo': '<= 2',
    'hit_stream_p99_over_echo': '<= 3',
    'process_hit_vs_ccache': '>= 5',
    'process_hit_vs_sccache': '>= 50',
    'stream_hits_over_echo': '>= 0.4',
    'hot_hits_per_s': 'times_one_first_hit >= 1.6',
    'storm_fragment_compiles': '== 500',
    'storm_slots_busy': '>= 0.95',
    'storm_ccache_compiles': None,
    'storm_sccache_compiles': None,
    'fair_share_worst': '<= 1.5',
    'store_1e6_added_us': '<= 3',
    'store_1e5_64k_added_us': None,
    'rss_anon_mb': '<= 20',
    'evict_p99_ratio': '<= 3',
    'hostile_throughput_kept': '>= 0.8',
}
OPERATORS = {'<=': operator.le, '>=': operator.ge, '==': operator.eq}


def judge(figure: dict[str, Any]) -> None:
    """Adds goal and met to a figure that has one. A goal may be of another of its numbers: that one's name comes first."""
    goal = GOALS.get(figure['name'])
    if goal is None:
        return
    *field, op, limit = goal.split()
    figure['goal'] = goal
    figure['met'] = bool(OPERATORS[op](figure[field[0] if field else 'value'], float(limit)))


def missing(figures: list[dict[str, Any]], only: str) -> list[str]:
    """Names that begin with `only` and were not printed."""
    printed = {f['name'] for f in figures}
    return [n for n in GOALS if n.startswith(only) and n not in printed]
