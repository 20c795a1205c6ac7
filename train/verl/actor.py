"""The class of the rollout workers' Ray actors, in a module that a fresh process can begin with.

Importing verl imports our plug-in (`VERL_USE_EXTERNAL_MODULES`), which needs the modules below whole. So
verl comes first here, and nothing that the plug-in imports may import this module at its top.
"""

from __future__ import annotations

import verl  # noqa: F401  (first: see above)

from train.verl.rollouts import Rollouts

__all__ = ["RolloutActor"]


class RolloutActor(Rollouts):
    """`Rollouts` by a name that workers can import."""
