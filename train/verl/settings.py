"""What a verl config says of AnyHarness, under its key `anyharness`. Nothing here imports verl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from rollout.errors import UsageError
from rollout.types import Record
from suites.command.options import Forced
from train.advantages import AdvantageRules
from train.credit import CreditRules, Estimator
from train.mix import HarnessSpec, draw, parse_mix
from train.runs import Source
from train.samples import Calls, Rules

__all__ = ["Settings"]


class Settings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How episodes are run, and what becomes of them."""

    suite: str
    """`NAME`, or with options of its own: `"NAME --option ..."`. The tasks that are trained on."""
    harness: str
    """`NAME[:PRESET][/TOOLS][:WEIGHT]`, several with commas: drawn for each group by weight."""
    val_suite: str = ""
    """Validation tasks; empty: those of `suite`."""
    val_harness: str = ""
    """What validation runs them in, each of them in all; empty: in those of `harness`."""
    options: str = ""
    """Options that all suites share, as on their command line: `--sandbox docker --timeout 600`."""
    memory_mb: int = 4096
    """What a harness's command may use in its sandbox."""
    cpus: float = 0.0
    """Cores of a harness's command; 0 is no limit."""
    concurrency: int = 16
    """Episodes under way at once, in each of verl's rollout workers."""
    retries: int = 2
    """How often an attempt is run again after an infrastructure error."""
    give_up_after: int = 16
    """Groups in a row without a single grade, in one worker, after which training stops."""
    max_tokens: int = 8192
    """Of one reply."""
    out: str = ""
    """Folder for the episodes, one run a group; empty: none are kept."""

    calls: Calls = "all"
    truncated: Literal["train", "mask"] = "train"
    overlong: Literal["split", "drop"] = "split"
    """Episodes longer than max_prompt_length + max_response_length: more rows, or none for that chain."""

    estimator: Estimator = "grpo"
    reward: Literal["score", "passed"] = "score"
    unclean: Literal["drop", "mask", "score"] = "drop"
    timeouts: Literal["score", "drop"] = "score"
    zero_variance: Literal["keep", "filter"] = "keep"

    gamma: float = 1.0
    """r_t = gamma^(T - t) r_T."""
    gigpo: float = 0.0
    """Weight w of GiGPO's step advantage; 0 is off."""
    episode_weights: bool = True
    """Every episode weighs the same in the loss, however many rows it came apart into."""
    one_update: bool = True
    """One optimizer step a batch; else as many as `ppo_mini_batch_size` makes of its rows."""

    def __post_init__(self) -> None:
        if not 0 < self.gamma <= 1:
            raise ValueError(f"gamma must be above 0 and at most 1, not {self.gamma}")
        if self.gigpo < 0:
            raise ValueError(f"gigpo must not be negative, but is {self.gigpo}")
        if self.cpus < 0:
            raise ValueError(f"cpus must not be negative, but is {self.cpus}")
        if self.gamma < 1 and not self.gigpo and self.estimator != "dr_grpo":
            raise ValueError(f"gamma below 1 needs estimator: dr_grpo, not {self.estimator}")
        for name in ("memory_mb", "concurrency", "give_up_after", "max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")

    @classmethod
    def read(cls, told: Any) -> Settings:
        """From a plain mapping. Raises UsageError naming the field."""
        try:
            return msgspec.convert(told, cls)
        except msgspec.ValidationError as error:
            text = str(error).replace("`$.", "`anyharness.").replace("`$`", "`anyharness`")
            raise UsageError(f"anyharness: {text}") from error

    @property
    def credit(self) -> CreditRules:
        """For `train.credit.assign`."""
        names = ("estimator", "reward", "unclean", "timeouts", "zero_variance")
        return CreditRules(**{name: getattr(self, name) for name in names})

    @property
    def advantage(self) -> AdvantageRules:
        """For `train.advantages`."""
        return AdvantageRules(estimator=self.estimator, gamma=self.gamma, gigpo=self.gigpo)

    def samples(self, max_tokens: int) -> Rules:
        """For `train.samples.build_samples`; rows have `max_tokens` at most."""
        return Rules(
            calls=self.calls,
            truncated=self.truncated,
            overlong=self.overlong,
            max_tokens=max_tokens,
        )

    @property
    def mix(self) -> tuple[HarnessSpec, ...]:
        """The harnesses that are trained in. Raises UsageError."""
        return parse_mix(self.harness)

    def drawn(self, row: Mapping[str, Any], step: int) -> HarnessSpec:
        """The harness of a dataset's row in one step: its own, or one drawn by weight.

        All attempts of a group get the same.
        """
        if row["harness"]:
            return parse_mix(row["harness"])[0]
        return draw(self.mix, 1, f"{step}/{row['index']}")[0]

    def source(
        self,
        suite: str = "",
        spec: HarnessSpec | None = None,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Source:
        """A suite in a harness: the training one, in the first of the mix, unless told otherwise.

        Raises UsageError.
        """
        forced: Forced = {
            **(spec or self.mix[0]).options,
            "max_tokens": self.max_tokens,
            "temperature": temperature,
            "top_p": top_p,
        }
        return Source.parse(suite or self.suite, self.options, forced=forced)
