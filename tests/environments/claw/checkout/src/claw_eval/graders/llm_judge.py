import json
import re
import time
from types import SimpleNamespace

from openai import OpenAI


class LLMJudge:
    def __init__(self, model_id, api_key):
        self.model_id, self.client, self._log = model_id, OpenAI(api_key=api_key), []

    def evaluate(self, prompt, conversation, actions, rubric):
        messages = [{"role": "user", "content": f"{prompt}\n{conversation}\n{actions}\n{rubric}"}]
        while True:
            reply = self.client.chat.completions.create(
                model=self.model_id, messages=messages, temperature=0.0, max_tokens=8192
            )
            try:
                # The first innermost braces: what the original trips over.
                found = json.loads(re.search(r"\{[^{}]*\}", reply.choices[0].message.content)[0])
                score = float(found["score"])
            except (TypeError, ValueError, KeyError):
                time.sleep(9)
                continue
            self._log.append({"method": "evaluate", "score": score, "timestamp": time.time()})
            return SimpleNamespace(score=score, reasoning=found["reasoning"])

    def get_call_log(self):
        return self._log
