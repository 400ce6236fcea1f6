"""Samples between the contract and the domain."""

from proctor.v1 import sample_pb2
from services.results.samples.sample_set import ChatMessage, Prompt, Sample
from services.results.scoring import Target


def sample_from_proto(message: sample_pb2.Sample) -> Sample:
    prompt, target = message.prompt, message.target
    return Sample(
        position=message.position,
        doc_id=message.doc_id,
        digest=message.digest,
        prompt=Prompt(
            prompt.text if prompt.HasField("text") else None,
            tuple(ChatMessage(turn.role, turn.content) for turn in prompt.messages),
        ),
        target=Target(
            tuple(message.choices),
            target.choice if target.HasField("choice") else None,
            tuple(target.texts),
        ),
        cluster=message.cluster,
    )


def asked_to_proto(sample: Sample) -> sample_pb2.Sample:
    """A sample as a worker may see it: without target and digest."""
    return sample_pb2.Sample(
        position=sample.position,
        doc_id=sample.doc_id,
        prompt=sample_pb2.Prompt(
            text=sample.prompt.text,
            messages=[
                sample_pb2.ChatMessage(role=turn.role, content=turn.content)
                for turn in sample.prompt.messages
            ],
        ),
        choices=sample.target.choices,
        cluster=sample.cluster,
    )


def prompt_as_text(prompt: Prompt) -> str:
    """What was asked, for reading."""
    if prompt.text is not None:
        return prompt.text
    return "\n\n".join(f"{turn.role}: {turn.content}" for turn in prompt.messages)


def target_as_text(target: Target, target_delimiter: str) -> str:
    """What was expected, for reading."""
    if target.choice is not None and 0 <= target.choice < len(target.choices):
        return target.choices[target.choice].removeprefix(target_delimiter)
    return " | ".join(target.texts)
