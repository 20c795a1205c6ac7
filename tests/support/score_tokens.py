"""Log-probabilities of tokens under a checkpoint: one JSON line [prompt, response] in, one line out.

Run by the engine's interpreter, as `tiny_model.py` is: `python score_tokens.py FOLDER`.
"""

from __future__ import annotations

import json
import sys

import torch
from transformers import AutoModelForCausalLM


def main(folder: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for line in sys.stdin:
        prompt, response = json.loads(line)
        with torch.inference_mode():
            kept = len(response) + 1
            logits = model(torch.tensor([prompt + response]), logits_to_keep=kept).logits[0, :-1]
            logprobs = torch.log_softmax(logits, -1)
        chosen = logprobs.gather(1, torch.tensor(response)[:, None])[:, 0]
        print(json.dumps(chosen.tolist()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
