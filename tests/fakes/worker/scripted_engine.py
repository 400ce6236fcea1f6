"""An engine in memory that answers by a function: for tests of the worker around it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.providers.models import ModelInfo
from proctor.values.providers.worker import EngineLoad
from proctor.values.sample import Prompt
from proctor.values.usage import Timing, TokenUsage
from services.worker.engines.engine import EngineResponse, Sampling
from services.worker.engines.errors import ModelCannotLoad


async def echo(text: str) -> str:
    return f"answer to {text}"


class ScriptedEngine:
    """Counts how often each prompt was asked and how many were in flight at a time."""

    def __init__(self, answer: Callable[[str], Awaitable[str]] = echo, loadable: Sequence[str] = ()) -> None:
        self.answer = answer
        self.loadable = list(loadable)
        self.loaded_model: str | None = None
        self.gpus = 0
        self.asked: Counter[str] = Counter()
        self.aborted = 0
        self.in_flight = 0
        self.largest_in_flight = 0
        self.last_sampling: Sampling | None = None

    async def load(self, model: str) -> None:
        if model not in self.loadable:
            self.loaded_model = None
            raise ModelCannotLoad(f"There is no model {model}.")
        self.loaded_model = model

    async def generate(self, model: str, prompt: Prompt, sampling: Sampling) -> EngineResponse:  # noqa: ARG002  # the port of engines
        self.last_sampling = sampling
        text = prompt.text or prompt.messages[-1].content
        self.asked[text] += 1
        self.in_flight += 1
        self.largest_in_flight = max(self.largest_in_flight, self.in_flight)
        is_over = False
        try:
            answer = await self.answer(text)
            is_over = True
        except Exception:
            is_over = True
            raise
        finally:
            self.in_flight -= 1
            self.aborted += not is_over
        usage = TokenUsage(prompt_tokens=3, completion_tokens=2)
        return EngineResponse(Answer(answer, "stop"), usage, Timing(total_seconds=0.1))

    async def score_choices(
        self,
        model: str,  # noqa: ARG002  # the port of engines
        prompt: Prompt,
        choices: Sequence[str],
        *,
        ending: str = "",  # noqa: ARG002  # the port of engines
        truncate_left: bool,  # noqa: ARG002  # the port of engines
    ) -> EngineResponse:
        self.asked[prompt.as_text] += 1
        scores = tuple(ChoiceScore(-float(len(choice)), is_greedy=False, token_count=1) for choice in choices)
        return EngineResponse(Answer(choices=scores), TokenUsage(prompt_tokens=3), Timing(total_seconds=0.1))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return ()

    def current_load(self) -> EngineLoad | None:
        return EngineLoad(running_requests=self.in_flight)

    async def describe(self) -> Mapping[str, str]:
        return {"engine": "scripted", "engine_version": "1"}

    async def close(self) -> None:
        """Holds nothing."""
