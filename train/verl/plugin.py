"""AnyHarness in verl 0.9.1, as released: `VERL_USE_EXTERNAL_MODULES=train.verl.plugin`.

Importing this registers the trainers (`trainer.v1.trainer_mode=anyharness_sync`, `..._colocate_async`,
`..._separate_async`) and the agent loop `anyharness`. The manager is named in the config:
`+actor_rollout_ref.rollout.agent.agent_loop_manager_class=train.verl.plugin.AnyHarnessManager`.
`python -m train.grpo --trainer verl` sets all of it; see docs/training-verl.md.
"""

from train.verl.data import SuiteTasks
from train.verl.loop import AnyHarnessLoop
from train.verl.manager import AnyHarnessManager
from train.verl.trainer import AnyHarnessColocateAsync, AnyHarnessSeparateAsync, AnyHarnessSync

__all__ = [
    "AnyHarnessColocateAsync",
    "AnyHarnessLoop",
    "AnyHarnessManager",
    "AnyHarnessSeparateAsync",
    "AnyHarnessSync",
    "SuiteTasks",
]
