"""Samples as tensors: what the model says of the tokens that are trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Batch", "Tokens", "collate", "logprobs", "micro_batches"]

MICRO_TOKENS = 4096
"""Of one forward pass, with padding: little enough to stay near a CPU's caches."""


class Tokens(Protocol):
    """A row: `train.samples.Sample` and `train.rows.RlRow` both are."""

    @property
    def prompt_ids(self) -> NDArray[np.int32]: ...
    @property
    def response_ids(self) -> NDArray[np.int32]: ...
    @property
    def response_mask(self) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Batch:
    """Rows padded on the right, where causal attention never looks: no mask is needed."""

    ids: Tensor
    rows: Tensor
    """Of each trained token: its row, and its place in the row."""
    places: Tensor

    @property
    def targets(self) -> Tensor:
        """The trained tokens."""
        return self.ids[self.rows, self.places]


def collate(rows: Sequence[Tokens], device: torch.device | str = "cpu") -> Batch:
    """Pad rows to one length."""
    longest = max(_length(row) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    trained = torch.zeros(len(rows), longest, dtype=torch.bool)
    for number, row in enumerate(rows):
        begin, end = len(row.prompt_ids), _length(row)
        ids[number, :begin] = torch.as_tensor(np.array(row.prompt_ids))
        ids[number, begin:end] = torch.as_tensor(np.array(row.response_ids))
        trained[number, begin:end] = torch.as_tensor(np.array(row.response_mask, bool))
    where = trained.nonzero(as_tuple=True)
    return Batch(*(part.to(device) for part in (ids, *where)))


def logprobs(
    model: Any, batch: Batch, temperature: float = 1.0, *, entropy: bool = False
) -> tuple[Tensor, Tensor]:
    """Log-probability of each trained token, and the entropy where it was drawn (else 0), in nats.

    Only the trained places are projected on the vocabulary, the costly part for small models.
    """
    hidden = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state
    logits = model.get_output_embeddings()(hidden[batch.rows, batch.places - 1])
    logits = logits.float() / (temperature or 1.0)
    told = torch.log_softmax(logits, -1)
    chosen = told.gather(-1, batch.targets[:, None])[:, 0]
    spread = -(told.exp() * told).sum(-1) if entropy else torch.zeros_like(chosen)
    return chosen, spread


def micro_batches(rows: Sequence[Tokens], max_tokens: int = MICRO_TOKENS) -> Iterator[list[int]]:
    """Positions of the rows in batches of at most `max_tokens` with padding, like lengths together."""
    order = sorted(range(len(rows)), key=lambda i: _length(rows[i]))
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) + 1) * _length(rows[i]) > max_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _length(row: Tokens) -> int:
    return len(row.prompt_ids) + len(row.response_ids)
