"""Runs beside one another, paused, dropped and gone on with: each as if it were alone."""

import threading

import pytest
import torch
from fakes import backwards, committed, hashed, scripted_engine

from eagle2.settings import Sampling, TreeShape

PROMPT = [5, 0]


class TestSessions:
    def test_a_run_goes_only_as_far_as_it_is_asked(self):
        one = scripted_engine()
        run = one.rounds(PROMPT, TreeShape(1, 2, 2), max_new_tokens=90)
        assert one.target.passes == 0
        next(run)
        next(run)
        assert one.target.passes == 2

    def test_paused_runs_hold_no_lock_and_do_not_mix(self):
        one = scripted_engine(hashed(10, 4), hashed(10, 3))
        prompts = [[1, 2], [3, 4], [5]]
        runs = [one.rounds(p, TreeShape(2, 2, 4), Sampling(1.0, seed=i), 40) for i, p in enumerate(prompts)]
        texts = [[], [], []]
        for _ in range(40):
            for run, text in zip(runs, texts, strict=True):
                text += next(run).committed if len(text) < 40 else ()
        for i, prompt in enumerate(prompts):
            assert texts[i] == one.plain(prompt, Sampling(1.0, seed=i), 40)

    def test_a_run_whose_caches_were_dropped_resumes_with_the_same_tokens(self):
        one = scripted_engine(hashed(10, 4), hashed(10, 3), live_runs=1)
        sampling = Sampling(1.0, seed=5)
        first, second = (one.rounds(PROMPT, TreeShape(2, 2, 4), sampling, 30) for _ in range(2))
        texts = [[], []]
        for _ in range(30):
            for run, text in ((first, texts[0]), (second, texts[1])):
                text += next(run).committed if len(text) < 30 else ()
            assert len(one._live) <= 1
        assert texts[0] == texts[1] == one.plain(PROMPT, sampling, 30)
        assert sum(fed == PROMPT for fed in one.target.fed) > 3  # it did prefill again

    def test_an_abandoned_run_leaves_nothing_behind(self):
        one = scripted_engine()
        for _ in range(30):
            run = one.rounds(PROMPT, max_new_tokens=90)
            next(run)
            run.close()
        assert len(one._live) == 0
        assert committed(one.rounds(PROMPT, max_new_tokens=3)) == [1, 2, 3]

    def test_finished_runs_free_their_caches_even_if_never_asked_again(self):
        one = scripted_engine()
        runs = [one.rounds(PROMPT, max_new_tokens=2) for _ in range(3)]
        assert [next(run).finish for run in runs] == ["length"] * 3
        assert len(one._live) == 0

    def test_threads_share_one_engine(self):
        one = scripted_engine(hashed(10, 4), hashed(10, 3))
        texts = {}

        def work(seed):
            texts[seed] = committed(one.rounds(PROMPT, TreeShape(2, 2, 4), Sampling(1.0, seed=seed), 30))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == {seed: one.plain(PROMPT, Sampling(1.0, seed=seed), 30) for seed in range(6)}

    def test_a_stop_rule_may_use_the_engine(self):
        one = scripted_engine()
        rounds = one.rounds(PROMPT, stop=lambda ids: 2 if one.plain(PROMPT, max_new_tokens=3) == ids else None)
        assert committed(rounds) == [1, 2]

    @pytest.mark.parametrize(
        "error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory")]
    )
    def test_running_out_of_memory_is_told_with_sizes_and_survived(self, error):
        one = scripted_engine()
        run = one.rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=90)
        next(run)
        real, one.target.verify = one.target.verify, lambda *args: (_ for _ in ()).throw(error)
        with pytest.raises(
            MemoryError, match="a round of 4 nodes after 8 tokens ran out of memory on cpu; lower max_nodes"
        ):
            next(run)
        one.target.verify = real
        assert len(one._live) == 0
        assert committed(one.rounds(PROMPT, max_new_tokens=3)) == [1, 2, 3]

    def test_a_failing_stop_rule_leaves_the_engine_usable(self):
        one = scripted_engine()
        with pytest.raises(ZeroDivisionError):
            list(one.rounds(PROMPT, stop=lambda ids: 1 // 0))
        assert len(one._live) == 0
        assert one.plain(PROMPT, max_new_tokens=2) == [1, 2]


class TestResuming:
    """`after`: rounds of an earlier call; the run goes on behind them without the caches they were made with."""

    def test_a_run_goes_on_behind_its_rounds_with_the_same_tokens(self):
        one = scripted_engine(hashed(10, 4), hashed(10, 3))
        settings = (TreeShape(2, 2, 4), Sampling(1.0, seed=5), 30)
        whole = list(one.rounds(PROMPT, *settings))
        for done in range(1, len(whole)):
            rest = list(one.rounds(PROMPT, *settings, after=whole[:done]))
            assert [(r.index, r.prefix_length, r.committed) for r in rest] == [
                (r.index, r.prefix_length, r.committed) for r in whole[done:]
            ]
            assert rest[-1].finish == "length"

    def test_a_run_that_has_ended_does_not_go_on(self):
        one = scripted_engine()
        done = list(one.rounds(PROMPT, max_new_tokens=4))
        with pytest.raises(ValueError, match=r"the run ended with round 0 \(length\)"):
            one.rounds(PROMPT, max_new_tokens=9, after=done)

    def test_rounds_of_another_prompt_are_refused(self):
        one = scripted_engine()
        first = next(one.rounds(PROMPT, max_new_tokens=40))
        for prompt in ([*PROMPT, 3], PROMPT[:1]):
            with pytest.raises(ValueError, match="round 0 of after does not follow from this prompt"):
                one.rounds(prompt, max_new_tokens=40, after=[first])

    def test_rounds_out_of_order_are_refused(self):
        one = scripted_engine(backwards(10))
        rounds = list(one.rounds(PROMPT, TreeShape(1, 1, 1), max_new_tokens=5))
        with pytest.raises(ValueError, match="round 1 of after does not follow"):
            one.rounds(PROMPT, max_new_tokens=9, after=[rounds[0], rounds[2]])
        with pytest.raises(TypeError, match="round 0 of after must be a Round"):
            one.rounds(PROMPT, max_new_tokens=9, after=[3])

    def test_the_cap_must_leave_room(self):
        one = scripted_engine()
        first = next(one.rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=40))
        with pytest.raises(ValueError, match="has 6 new ids already; max_new_tokens, or the context, must leave room"):
            one.rounds(PROMPT, max_new_tokens=6, after=[first])
