"""Keys and values of many sequences at once, each in a row of its own, each at its own length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

__all__ = ["Row", "SlotCache"]

Row: TypeAlias = tuple[int, Sequence[int], int]
"""Slot, tokens to compute, and the position of the first: the slot holds all that comes before."""

GROWTH = 256
"""Positions by which the rows are made longer when a sequence needs it."""


class SlotCache:
    """Runs a decoder of transformers over its own cache (as `past_key_values`; see `update`)."""

    is_compileable = False

    def __init__(self, model: Any, slots: int) -> None:
        self._model = model
        self._count = slots
        self._capacity = 0
        self._stores: dict[int, tuple[Tensor, Tensor]] = {}
        self._rows = self._places = torch.empty(0, dtype=torch.long)
        self._whole = 0
        self._top = 0

    def forward(self, rows: Sequence[Row]) -> Tensor:
        """Logits after the last token of each row: (rows, vocabulary)."""
        longest = max(len(tokens) for _, tokens, _ in rows)
        device = self._model.device
        self._grow(max(start for _, _, start in rows) + longest + 1)
        wanted = [slot for slot, _, _ in rows]
        top = max(start + len(tokens) for _, tokens, start in rows)
        dense = longest == 1 and len(rows) * 2 > max(wanted)
        if dense:
            rows = _filled(rows, self._capacity - 1)
        ids = torch.tensor([[*tokens, *[0] * (longest - len(tokens))] for _, tokens, _ in rows])
        starts = torch.tensor([start for _, _, start in rows])
        lengths = torch.tensor([len(tokens) for _, tokens, _ in rows])
        steps = torch.arange(longest)
        # What pads a row is written behind the last position that anyone looks at.
        places = torch.where(steps < lengths[:, None], starts[:, None] + steps, self._capacity - 1)
        self._rows = torch.tensor([slot for slot, _, _ in rows], device=device)
        self._places = places.to(device)
        self._whole = len(rows) if dense else 0
        self._top = top
        mask = torch.arange(self._top, device=device) <= self._places[:, :, None]
        hidden = self._model.base_model(
            input_ids=ids.to(device),
            position_ids=self._places,
            attention_mask=mask[:, None],
            past_key_values=self,
            use_cache=True,
        ).last_hidden_state
        last = hidden[torch.arange(len(rows)), lengths - 1]
        if dense:
            last = last[torch.tensor(wanted)]
        logits: Tensor = self._model.get_output_embeddings()(last)
        return logits

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> Any:
        """Called by each attention layer: keep what is new, (rows, heads, tokens, size); give all."""
        if layer not in self._stores:
            shape = (self._count, self._capacity, keys.shape[1])
            self._stores[layer] = tuple(
                part.new_zeros(*shape, part.shape[-1]) for part in (keys, values)
            )
        return tuple(
            self._keep(store, part)
            for store, part in zip(self._stores[layer], (keys, values), strict=True)
        )

    def _keep(self, store: Tensor, new: Tensor) -> Tensor:
        store[self._rows[:, None], self._places] = new.transpose(1, 2)
        seen = store[: self._whole] if self._whole else store[self._rows]
        return seen[:, : self._top].transpose(1, 2)

    def get_seq_length(self, *_: Any) -> int:
        """Part of the interface; positions are given, so nobody counts on it."""
        return 0

    def _grow(self, needed: int) -> None:
        if needed <= self._capacity:
            return
        more = -(-(needed - self._capacity) // GROWTH) * GROWTH
        self._capacity += more
        self._stores = {
            layer: tuple(
                torch.cat([part, part.new_zeros(part.shape[0], more, *part.shape[2:])], 1)
                for part in pair
            )
            for layer, pair in self._stores.items()
        }


def _filled(rows: Sequence[Row], nowhere: int) -> list[Row]:
    """A row for each slot from 0 on: a slice of the cache costs nothing, a choice of rows a copy."""
    by_slot = {row[0]: row for row in rows}
    return [by_slot.get(slot, (slot, [0], nowhere)) for slot in range(max(by_slot) + 1)]
