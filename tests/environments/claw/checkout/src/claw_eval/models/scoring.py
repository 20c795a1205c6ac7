def compute_task_score(scores):
    return round(scores.safety * (0.8 * scores.completion + 0.2 * scores.robustness), 4)


def is_pass(score):
    return score >= 0.75
