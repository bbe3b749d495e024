"""The known pairs: the paper's trees in our counting, memory by hand, and their listing."""

import re

import pytest

from eagle2.__main__ import main
from eagle2.loading import known_pairs
from eagle2.loading.known_pairs import KNOWN_PAIRS, fits, heads_for, memory_needed, pair_of, recommended_shape
from eagle2.settings import TreeShape


@pytest.mark.parametrize(
    ("billions", "eagle", "shape"),
    [
        (6.74, 2, TreeShape(10, 6, 59)),  # "60 tokens": 59 nodes and the root
        (8.03, 2, TreeShape(10, 6, 59)),
        (13.0, 2, TreeShape(10, 6, 49)),
        (70.6, 2, TreeShape(10, 6, 47)),
        (8.03, 3, TreeShape(10, 8, 59)),
        (70.6, 3, TreeShape(10, 8, 47)),
    ],
)
def test_trees_are_the_papers_with_the_root_not_counted(billions, eagle, shape):
    assert recommended_shape(billions, eagle) == shape


def test_memory_is_weights_and_a_tenth_more():
    pair = pair_of("lmsys/vicuna-7b-v1.3", "yuhuili/EAGLE-Vicuna-7B-v1.3")
    # 6.74 + 0.24 = 6.98 billion parameters: 13.96 GB in half precision, 15.356 with a tenth more.
    assert memory_needed(pair, "bfloat16") == 15_356_000_000
    assert memory_needed(pair, "float32") == 2 * memory_needed(pair, "float16")
    assert fits(pair, "bfloat16", 15_356_000_000) is True
    assert fits(pair, "bfloat16", 15_355_999_999) is False
    assert fits(pair, "bfloat16", None) is None


def test_pairs_are_found_by_their_target():
    heads = [pair.head for pair in heads_for("Meta-Llama/llama-3.1-8b-instruct")]
    assert heads == ["yuhuili/EAGLE-LLaMA3.1-Instruct-8B", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"]
    assert heads_for("somebody/else") == ()
    assert pair_of("Qwen/Qwen3-8B", "yuhuili/EAGLE-Qwen2-7B-Instruct") is None


def test_entries_are_whole():
    assert len({(pair.target, pair.head) for pair in KNOWN_PAIRS}) == len(KNOWN_PAIRS)
    for pair in KNOWN_PAIRS:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", pair.target)
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", pair.head)
        assert pair.head_b < pair.target_b / 10
        assert ("EAGLE3" in pair.head.upper()) == (pair.eagle == 3)
        assert pair.gated == pair.target.startswith("meta-llama/")


def test_the_listing_names_everything_and_what_fits():
    told = known_pairs.listing("bfloat16", 20 * 2**30)
    blocks = re.split(r"\n(?=--target)", told)
    assert len(blocks) == len(KNOWN_PAIRS)
    assert blocks[0].splitlines() == [
        "--target lmsys/vicuna-7b-v1.3 --head yuhuili/EAGLE-Vicuna-7B-v1.3",
        "    EAGLE-2, 7.0 billion parameters: about 14 GiB in bfloat16, fits here",
        "    --top-k 10 --depth 6 --max-nodes 59",
        "    LLaMA 1, non-commercial; its tokenizer has no chat template: turns are joined as text",
    ]
    assert "too large for here" in blocks[1]
    assert "gated: accept its licence on the hub and log in" in blocks[3]
    assert "here" not in known_pairs.listing("bfloat16", None).split("\n")[1]


def test_the_command_line_lists_them(capsys):
    assert main(["pairs", "--device", "cpu", "--dtype", "bfloat16"]) == 0
    assert capsys.readouterr().out.count("--target ") == len(KNOWN_PAIRS)
