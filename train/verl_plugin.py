"""AnyHarness in verl 0.9.1, as released: `VERL_USE_EXTERNAL_MODULES=train.verl_plugin`.

Importing this registers the trainers (`trainer.v1.trainer_mode=anyharness_sync`, `..._colocate_async`,
`..._separate_async`) and the agent loop `anyharness`. The manager is named in the config:
`+actor_rollout_ref.rollout.agent.agent_loop_manager_class=train.verl_plugin.AnyHarnessManager`.
`python -m train.grpo --trainer verl` sets all of it; see docs/training-verl.md.
"""

from train.verl_data import SuiteTasks
from train.verl_loop import AnyHarnessLoop
from train.verl_manager import AnyHarnessManager
from train.verl_trainer import AnyHarnessColocateAsync, AnyHarnessSeparateAsync, AnyHarnessSync

__all__ = [
    "AnyHarnessColocateAsync",
    "AnyHarnessLoop",
    "AnyHarnessManager",
    "AnyHarnessSeparateAsync",
    "AnyHarnessSync",
    "SuiteTasks",
]
