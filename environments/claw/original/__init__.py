"""claw-eval's own graders, run as they are: what they need of a checkout, and what they are given.

Their contract is `AbstractGrader.grade` in src/claw_eval/graders/base.py of claw-eval's repository.
"""
