"""Which calls continue which: a forest of calls, and the chains that it is cut into.

A call continues another when its prompt begins with the other's prompt and response, byte for byte.
Conversations are not lines: sub-agents, compacted or rewritten histories and retries fork or start anew.
The order in which calls arrived plays no part in this.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Forest", "Turn", "forest"]


class Turn(NamedTuple):
    """One call: what went in and what came out, as bytes of items of one fixed size."""

    whole: bytes
    """Prompt and response."""
    prompt: int
    """How many bytes of `whole` are the prompt."""
    lineage: Hashable = None
    """Who asked. At a fork the chain goes on with a call of the same lineage, if there is one."""


@dataclass(frozen=True)
class Forest:
    """The turns by their positions in what was given."""

    chains: list[list[int]]
    """Paths through the forest that hold each turn exactly once. At a fork one branch goes on with the
    chain, and each other branch starts a new one. Every chain ends in a leaf, so there are as few as
    possible."""
    depth: list[int]
    """How many turns came before on the path to each."""
    twins: list[int]
    """Turns left out because an earlier one has the same prompt and the same response."""


def forest(turns: Sequence[Turn]) -> Forest:
    """Link the turns. Takes time linear in their bytes where they continue one another in order.

    Sorting puts every turn right before all those that begin with it, so a stack of open prefixes is
    enough to find each one's parent: the longest that its prompt begins with.
    """
    order = sorted(range(len(turns)), key=lambda i: turns[i].prompt)
    order.sort(key=lambda i: turns[i].whole)
    parent = [-1] * len(turns)
    depth = [0] * len(turns)
    twins: list[int] = []
    kept: list[int] = []
    stack: list[int] = []
    for i in order:
        whole, prompt, _ = turns[i]
        if kept and turns[kept[-1]][:2] == (whole, prompt):
            twins.append(i)
            continue
        while stack and not whole.startswith(turns[stack[-1]].whole):
            stack.pop()
        up = next((j for j in reversed(stack) if len(turns[j].whole) <= prompt), -1)
        if up >= 0:
            parent[i], depth[i] = up, depth[up] + 1
        stack.append(i)
        kept.append(i)
    return Forest(_chains(turns, kept, parent), depth, twins)


def _chains(turns: Sequence[Turn], kept: Sequence[int], parent: Sequence[int]) -> list[list[int]]:
    """Parents come before their children in `kept`, which is in an order that the bytes alone decide."""
    heir = _heirs(turns, kept, parent)
    chains = []
    for i in kept:
        if parent[i] < 0 or heir[parent[i]] != i:
            chain = [i]
            while (following := heir.get(chain[-1])) is not None:
                chain.append(following)
            chains.append(chain)
    return chains


def _heirs(turns: Sequence[Turn], kept: Sequence[int], parent: Sequence[int]) -> dict[int, int]:
    """The child that each turn's chain goes on with: one of the same lineage, then the longest
    branch's."""
    reach = [len(turn.whole) for turn in turns]
    heir: dict[int, int] = {}
    rank: dict[int, tuple[bool, int]] = {}
    for i in reversed(kept):
        up = parent[i]
        if up < 0:
            continue
        mine = (turns[i].lineage == turns[up].lineage, reach[i])
        reach[up] = max(reach[up], reach[i])
        if up not in rank or mine > rank[up]:
            heir[up], rank[up] = i, mine
    return heir
