"""The EAGLE drafter: what it sees of the tree, and that nothing guessed survives a round."""

import pytest
import torch
from tiny import COMMON, FAMILIES, HIDDEN, VOCAB, random_engine, random_head, random_model
from transformers import LlamaConfig

from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import make_policy
from eagle2.drafters.eagle import EagleDrafter
from eagle2.models.kv_cache import KeyValueRows
from eagle2.models.target import Target
from eagle2.settings import Sampling, TreeShape

PROMPT = [(11 * i + 2) % VOCAB for i in range(12)]


@pytest.fixture
def pair():
    target = Target(random_model(FAMILIES["llama"]))
    return target, EagleDrafter(target, random_head())


def begun(target, drafter, ids):
    """A draft that has followed all of `ids`, the last of them the root."""
    features, _ = target.extend(target.begin(), ids[:-1])
    draft = drafter.begin(ids[0])
    draft.extend(torch.tensor(ids[1:]), features)
    return draft, features


def test_each_node_is_drafted_as_if_its_path_were_alone(pair):
    """Independent computation: the head over the whole chain of pairs of one path, with a causal mask."""
    target, drafter = pair
    draft, features = begun(target, drafter, PROMPT)
    pool = draft.grow(make_policy("eagle2", TreeShape(3, 4, 99), VOCAB), 4)
    for node in range(0, len(pool), 5):
        path, parent = [], int(pool.parent[node])
        while parent >= 0:
            path.insert(0, int(pool.token[parent]))
            parent = int(pool.parent[parent])
        tokens, chain, guess = PROMPT[1:], features, features[:0]
        for extra in [[], *([token] for token in path)]:
            tokens, chain = tokens + extra, torch.cat([chain, guess])
            n = len(tokens)
            with torch.no_grad():
                causal = torch.ones(n, n, dtype=torch.bool).tril()
                out = drafter.head(target.embed(torch.tensor(tokens)), chain, torch.arange(n), KeyValueRows(), causal)
            guess = out[-1:]
        log_probs = target.lm_head(guess)[0].log_softmax(-1)
        torch.testing.assert_close(log_probs[pool.token[node]], pool.log_confidence[node], atol=2e-5, rtol=1e-4)


def test_a_drafted_tree_leaves_the_draft_cache_as_it_was(pair):
    target, drafter = pair
    draft, _ = begun(target, drafter, PROMPT)
    keys = draft.cache.keys.clone()
    policy = make_policy("eagle2", TreeShape(4, 5, 20), VOCAB)
    first = draft.grow(policy, 5)
    assert draft.cache.length == len(PROMPT) - 1
    torch.testing.assert_close(draft.cache.keys, keys)
    again = draft.grow(policy, 5)
    assert again.token.tolist() == first.token.tolist()


def test_after_every_round_the_draft_cache_is_a_fresh_pass_over_true_features():
    """After N committed tokens it holds N - 1 rows, all from the target's features."""
    engine = random_engine(FAMILIES["llama"])
    ids = list(PROMPT)
    run = engine.rounds(PROMPT, TreeShape(3, 3, 9), max_new_tokens=30)
    next(run)
    for r in run:
        if r.finish:
            break
        ids = PROMPT + engine.plain(PROMPT, max_new_tokens=r.prefix_length + 1 - len(PROMPT))
        (caches,) = engine._live._caches.values()
        fresh, _ = begun(engine.target, engine.drafter, ids)
        assert caches.draft.cache.length == len(ids) - 1
        torch.testing.assert_close(caches.draft.cache.keys, fresh.cache.keys, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(caches.draft.cache.values, fresh.cache.values, atol=1e-5, rtol=1e-4)


def test_a_head_made_for_a_shorter_context_goes_on_past_it():
    target = Target(random_model(LlamaConfig(**{**COMMON, "max_position_embeddings": 80})))
    engine = Engine(target, EagleDrafter(target, random_head(max_positions=8)))
    rounds = engine.rounds(PROMPT, TreeShape(2, 3, 6), Sampling(1.0), max_new_tokens=60)
    assert [t for r in rounds for t in r.committed] == engine.plain(PROMPT, Sampling(1.0), max_new_tokens=60)


def test_a_head_may_bring_its_own_embeddings(pair):
    target, _ = pair
    drafter = EagleDrafter(target, random_head(own_embeddings=True))
    assert not torch.equal(drafter.embed(torch.tensor([3])), target.embed(torch.tensor([3])))
    assert drafter.embed(torch.tensor([3, 4])).shape == (2, HIDDEN)


def test_top_k_over_the_vocabulary_is_clamped(pair):
    engine = Engine(*pair)
    first = next(engine.rounds(PROMPT, TreeShape(1000, 1, 2000), max_new_tokens=5))
    assert first.drafted == first.kept == VOCAB
    assert engine.policy("eagle2", TreeShape(1000, 1, 2000)).shape == TreeShape(VOCAB, 1, VOCAB)


class TestKeyValueRows:
    def rows(self, count):
        keys = torch.arange(count, dtype=torch.float32).view(1, 1, count, 1)
        cache = KeyValueRows()
        cache.append(keys, -keys)
        return cache

    def test_rows_grow_past_their_first_room(self):
        cache = self.rows(5)
        for start in range(5, 2000, 5):
            more = torch.arange(start, start + 5, dtype=torch.float32).view(1, 1, 5, 1)
            keys, values = cache.append(more, -more)
        assert keys.flatten().tolist() == list(range(2000))
        assert values.flatten().tolist() == [-i for i in range(2000)]

    def test_scattered_rows_move_up(self):
        cache = self.rows(10)
        cache.keep(4, torch.tensor([0, 2, 5]))
        assert cache.keys.flatten().tolist() == [0, 1, 2, 3, 4, 6, 9]

    def test_truncating_to_more_than_there_is_drops_nothing(self):
        for length, left in ((0, 0), (1, 1), (10, 10), (99, 10), (-3, 0)):
            cache = self.rows(10)
            cache.truncate(length)
            assert cache.length == left
            assert cache.keys.flatten().tolist() == list(range(left))


def test_a_long_prompt_is_read_in_pieces(pair, monkeypatch):
    """No mask grows with the square of the prompt, and the draft after it is the same."""
    target, drafter = pair
    ids = [1 + i % 50 for i in range(40)]
    features, _ = target.extend(target.begin(), ids)
    whole, pieces = drafter.begin(ids[0]), drafter.begin(ids[0])
    whole.extend(torch.tensor(ids[1:]), features[:-1])
    seen, forward = [], drafter.head.forward

    def spied(embeddings, features, positions, cache, visible):
        seen.append(tuple(visible.shape))
        return forward(embeddings, features, positions, cache, visible)

    monkeypatch.setattr("eagle2.drafters.eagle.CHUNK", 16)
    monkeypatch.setattr(
        drafter.head, "forward", lambda *given: (seen.append(tuple(given[-1].shape)), forward(*given))[1]
    )
    pieces.extend(torch.tensor(ids[1:]), features[:-1])
    assert seen == [(16, 16), (16, 32), (7, 39)]
    torch.testing.assert_close(pieces.cache.keys, whole.cache.keys)
    policy = make_policy("eagle2", TreeShape(3, 2, 6), drafter.vocabulary)
    assert pieces.grow(policy, 2).token.tolist() == whole.grow(policy, 2).token.tolist()
