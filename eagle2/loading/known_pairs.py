"""Known public pairs of targets and heads: names, sizes, the paper's trees, licences. Pure data and sums; no torch.

Sizes are in billions of parameters: targets' as their cards give them, EAGLE-1/2 heads' as their authors do, EAGLE-3
heads' added up from their targets' sizes and a draft vocabulary of 32,000. This project has run none of these pairs but
its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from eagle2.settings import TreeShape

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
OVERHEAD = 1.1
"""Memory over weights: a tenth more for caches and activations."""

LLAMA = "Llama community licence"
GATED = "gated: accept its licence on the hub and log in"


@dataclass(frozen=True)
class KnownPair:
    """A target and a head made for it. target_b, head_b: billions of parameters. eagle: 2 or 3.

    licence: the target's; heads have their own cards. gated: whether the hub asks for more than a name. note: what a
    user should know beforehand.
    """

    target: str
    head: str
    target_b: float
    head_b: float
    licence: str
    eagle: int = 2
    gated: bool = False
    note: str = ""

    @property
    def shape(self) -> TreeShape:
        return recommended_shape(self.target_b, self.eagle)


def recommended_shape(target_b: float, eagle: int = 2) -> TreeShape:
    """The paper's trees (appendix A): 60, 50 and 48 tokens, the root among them, for 7/8B, 13B and 70B; depth 6, and 8
    for EAGLE-3; top-k 10. Sizes between theirs take the next larger one's.
    """
    tokens = 60 if target_b < 9 else 50 if target_b < 15 else 48
    return TreeShape(top_k=10, depth=8 if eagle == 3 else 6, max_nodes=tokens - 1)


def memory_needed(pair: KnownPair, dtype: str) -> int:
    """Bytes for both, weights and a tenth more."""
    return round((pair.target_b + pair.head_b) * 1e9 * BYTES[dtype] * OVERHEAD)


def fits(pair: KnownPair, dtype: str, free: int | None) -> bool | None:
    """Whether it fits into `free` bytes; None where that is not known."""
    return None if free is None else memory_needed(pair, dtype) <= free


def heads_for(target: str) -> tuple[KnownPair, ...]:
    """The pairs whose target has this name on the hub."""
    return tuple(pair for pair in KNOWN_PAIRS if pair.target.lower() == target.lower())


def pair_of(target: str, head: str) -> KnownPair | None:
    return next((pair for pair in heads_for(target) if pair.head.lower() == head.lower()), None)


_VICUNA = "its tokenizer has no chat template: turns are joined as text"

KNOWN_PAIRS = (
    KnownPair(
        "lmsys/vicuna-7b-v1.3", "yuhuili/EAGLE-Vicuna-7B-v1.3", 6.74, 0.24, "LLaMA 1, non-commercial", note=_VICUNA
    ),
    KnownPair(
        "lmsys/vicuna-13b-v1.3", "yuhuili/EAGLE-Vicuna-13B-v1.3", 13.0, 0.37, "LLaMA 1, non-commercial", note=_VICUNA
    ),
    KnownPair(
        "lmsys/vicuna-33b-v1.3", "yuhuili/EAGLE-Vicuna-33B-v1.3", 32.5, 0.56, "LLaMA 1, non-commercial", note=_VICUNA
    ),
    KnownPair("meta-llama/Llama-2-7b-chat-hf", "yuhuili/EAGLE-llama2-chat-7B", 6.74, 0.24, LLAMA, gated=True),
    KnownPair("meta-llama/Llama-2-13b-chat-hf", "yuhuili/EAGLE-llama2-chat-13B", 13.0, 0.37, LLAMA, gated=True),
    KnownPair("meta-llama/Llama-2-70b-chat-hf", "yuhuili/EAGLE-llama2-chat-70B", 69.0, 0.99, LLAMA, gated=True),
    KnownPair("meta-llama/Meta-Llama-3-8B-Instruct", "yuhuili/EAGLE-LLaMA3-Instruct-8B", 8.03, 0.25, LLAMA, gated=True),
    KnownPair(
        "meta-llama/Meta-Llama-3-70B-Instruct", "yuhuili/EAGLE-LLaMA3-Instruct-70B", 70.6, 0.99, LLAMA, gated=True
    ),
    KnownPair("meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE-LLaMA3.1-Instruct-8B", 8.03, 0.25, LLAMA, gated=True),
    KnownPair("Qwen/Qwen2-7B-Instruct", "yuhuili/EAGLE-Qwen2-7B-Instruct", 7.62, 0.26, "Apache-2.0"),
    KnownPair("Qwen/Qwen2-72B-Instruct", "yuhuili/EAGLE-Qwen2-72B-Instruct", 72.7, 1.05, "Tongyi Qianwen licence"),
    KnownPair(
        "mistralai/Mixtral-8x7B-Instruct-v0.1",
        "yuhuili/EAGLE-mixtral-instruct-8x7B",
        46.7,
        0.28,
        "Apache-2.0",
        note="the hub may ask for your contact details; its template refuses a system turn",
    ),
    KnownPair("lmsys/vicuna-13b-v1.3", "yuhuili/EAGLE3-Vicuna1.3-13B", 13.0, 0.64, "LLaMA 1, non-commercial", 3),
    KnownPair("meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", 8.03, 0.42, LLAMA, 3, True),
    KnownPair("meta-llama/Llama-3.3-70B-Instruct", "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B", 70.6, 1.58, LLAMA, 3, True),
    KnownPair(
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
        "yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B",
        8.03,
        0.42,
        "MIT, after Llama 3.1",
        3,
    ),
    KnownPair("Qwen/Qwen3-1.7B", "AngelSlim/Qwen3-1.7B_eagle3", 1.72, 0.14, "Apache-2.0", 3),
    KnownPair("Qwen/Qwen3-4B", "AngelSlim/Qwen3-4B_eagle3", 4.02, 0.22, "Apache-2.0", 3),
    KnownPair("Qwen/Qwen3-8B", "AngelSlim/Qwen3-8B_eagle3", 8.19, 0.4, "Apache-2.0", 3),
    KnownPair("Qwen/Qwen3-14B", "AngelSlim/Qwen3-14B_eagle3", 14.8, 0.61, "Apache-2.0", 3),
    KnownPair("Qwen/Qwen3-32B", "AngelSlim/Qwen3-32B_eagle3", 32.8, 0.78, "Apache-2.0", 3),
)

BUNDLED = KnownPair("SmolLM2-135M-Instruct", "smollm2-135m-eagle", 0.1345, 0.0042, "Apache-2.0")
"""The default pair, which needs no hub; its tree is `TreeShape()`."""


def listing(dtype: str, free: int | None) -> str:
    """One block for each pair, and whether it fits into `free` bytes."""
    return "\n".join(_block(pair, dtype, free) for pair in KNOWN_PAIRS)


def _block(pair: KnownPair, dtype: str, free: int | None) -> str:
    shape, needed = pair.shape, memory_needed(pair, dtype)
    told = {None: "", True: ", fits here", False: ", too large for here"}[fits(pair, dtype, free)]
    notes = [pair.licence, *([GATED] if pair.gated else []), *([pair.note] if pair.note else [])]
    size = f"{pair.target_b + pair.head_b:.1f} billion parameters"
    return (
        f"--target {pair.target} --head {pair.head}\n"
        f"    EAGLE-{pair.eagle}, {size}: about {needed / 2**30:.0f} GiB in {dtype}{told}\n"
        f"    --top-k {shape.top_k} --depth {shape.depth} --max-nodes {shape.max_nodes}\n"
        f"    {'; '.join(notes)}"
    )
