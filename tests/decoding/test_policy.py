"""Which nodes each policy expands and keeps, with values worked out by hand; what is clamped and what is refused."""

import pytest
import torch

from eagle2.decoding.policy import make_policy
from eagle2.drafters.base import grow_tree
from eagle2.methods import EAGLE_PATHS, METHODS
from eagle2.settings import TreeShape, pool_size

# Log-probabilities after each path of tokens: a drafter over tokens 0..3 written down as a table.
# Values: 0 .5, 1 .3, 2 .15; under 0: .2 (token 3), .15 (0), ...; under 1: .27 (0), ...
TABLE = {
    (): [0.5, 0.3, 0.15, 0.05],
    (0,): [0.3, 0.2, 0.1, 0.4],
    (1,): [0.9, 0.05, 0.03, 0.02],
    (2,): [0.02, 0.03, 0.05, 0.9],
}


def table_pool(name, shape):
    policy = make_policy(name, shape, 4)
    paths = {}

    def path(pool, node):
        return () if node < 0 else (*path(pool, int(pool.parent[node])), int(pool.token[node]))

    def expand(pool, nodes, rows):
        paths[int(pool.depth[nodes[0]])] = [path(pool, node) for node in nodes.tolist()]
        return torch.tensor([TABLE.get(p, [0.4, 0.3, 0.2, 0.1]) for p in paths[int(pool.depth[nodes[0]])]]).log()

    pool = grow_tree(policy, policy.shape.depth, torch.tensor([TABLE[()]]).log(), expand)
    kept = [path(pool, node) for node in policy.keep(pool).tolist()]
    return paths, kept


def test_eagle2_expands_by_value_and_keeps_the_best_of_the_whole_pool():
    expanded, kept = table_pool("eagle2", TreeShape(2, 3, 5))
    assert expanded == {1: [(0,), (1,)], 2: [(1, 0), (0, 3)]}  # values .27 and .2
    # .5 .3 | .2 (0,3) .15 (0,0) .27 (1,0) .015 | under (1,0): .108 .081, under (0,3): .08 .06
    assert kept == [(0,), (1,), (0, 3), (0, 0), (1, 0)]


def test_without_value_the_most_confident_nodes_are_expanded_and_reranking_still_goes_by_value():
    expanded, kept = table_pool("eagle2-no-value", TreeShape(3, 2, 4))
    assert expanded == {1: [(0,), (1,), (2,)]}
    assert kept == [(0,), (1,), (0, 3), (1, 0)]
    expanded, _ = table_pool("eagle2-no-value", TreeShape(2, 3, 4))
    assert expanded[2] == [(1, 0), (0, 3)]  # confidence .9 before .4
    expanded, _ = table_pool("eagle2-no-value", TreeShape(3, 3, 4))
    assert expanded[2] == [(1, 0), (2, 3), (0, 3)]  # .9, .9 (equal: pool order), .4; by value (2, 3) has only .135
    expanded, _ = table_pool("eagle2", TreeShape(3, 3, 4))
    assert expanded[2] == [(1, 0), (0, 3), (0, 0)]


def test_without_reranking_the_best_of_every_level_are_kept_the_last_included():
    _, kept = table_pool("eagle2-no-rerank", TreeShape(2, 2, 1))
    assert kept == [(0,), (1,), (0, 3), (1, 0)]
    assert make_policy("eagle2-no-rerank", TreeShape(2, 2, 1), 4).shape == TreeShape(2, 2, 4)


def test_without_both_levels_are_expanded_and_kept_by_confidence():
    expanded, kept = table_pool("eagle2-no-both", TreeShape(2, 2, 99))
    assert expanded == {1: [(0,), (1,)]}
    assert kept == [(0,), (1,), (0, 3), (1, 0)]
    _, kept = table_pool("eagle2-no-both", TreeShape(3, 2, 99))
    assert kept == [(0,), (1,), (2,), (0, 3), (1, 0), (2, 3)]  # .4, .9, .9; by value (0, 0) would stand for (2, 3)
    _, kept = table_pool("eagle2-no-rerank", TreeShape(3, 2, 99))
    assert kept == [(0,), (1,), (2,), (0, 3), (0, 0), (1, 0)]


def test_a_chain_follows_the_likeliest_token():
    expanded, kept = table_pool("chain", TreeShape(5, 3, 99))
    assert expanded == {1: [(0,)], 2: [(0, 3)]}
    assert kept == [(0,), (0, 3), (0, 3, 0)]
    assert make_policy("chain", TreeShape(5, 3, 99), 4).shape == TreeShape(1, 3, 3)
    assert make_policy("chain", TreeShape(5, 3, 2), 4).shape == TreeShape(1, 3, 2)


def test_top_k_1_is_a_chain():
    assert table_pool("eagle2", TreeShape(1, 3, 3)) == table_pool("chain", TreeShape(1, 3, 3))


def test_eagle_s_static_tree_has_25_nodes_in_five_levels():
    policy = make_policy("eagle", TreeShape(), 100)
    assert policy.shape == TreeShape.around(EAGLE_PATHS) == TreeShape(4, 5, 25)
    assert [sum(len(path) == depth for path in EAGLE_PATHS) for depth in range(1, 6)] == [4, 8, 8, 3, 2]


def test_a_static_tree_takes_children_by_rank_and_drafts_nothing_else():
    expanded, kept = table_pool([(0,), (2,), (0, 1), (2, 0), (2, 2)], TreeShape())
    assert expanded == {1: [(0,), (2,)]}
    # ranks after (): 0 1 2 3 -> rank 2 is token 2; after (0,): 3 0 1 2 -> rank 1 is 0; after (2,): 3 2 1 0
    assert kept == [(0,), (2,), (0, 0), (2, 3), (2, 1)]


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        ([], "at least one path"),
        ([()], "an empty path is the root"),
        ([(0,), (1, 0)], r"path \[1, 0\] has no parent: add \[1\]"),
        ([(0,), (0,)], r"path \[0\] is given more than once"),
        ([(0,), (-1,)], "must be at least 0"),
        ([(7,)], "asks for 8 children, the drafter knows 4 tokens"),
    ],
)
def test_impossible_static_trees_are_refused(paths, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_policy(paths, TreeShape(), 4)


def test_an_unknown_policy_is_refused_with_the_list_of_known_ones():
    with pytest.raises(ValueError, match="'eagle3' is unknown; choose one of plain, chain, eagle, eagle2"):
        make_policy("eagle3", TreeShape(), 4)


def test_plain_has_no_policy():
    assert "plain" in METHODS
    assert make_policy("plain", TreeShape(), 4) is None


def test_shapes_are_clamped_to_the_vocabulary_and_to_the_pool():
    assert make_policy("eagle2", TreeShape(10, 2, 1000), 4).shape == TreeShape(4, 2, 20)
    assert make_policy("eagle2", TreeShape(2, 3, 10), 4).shape == TreeShape(2, 3, 10)


def test_the_paper_s_pool_holds_510_nodes():
    assert pool_size(10, 6) == 510


def test_a_clipped_pool_keeps_what_there_is():
    policy = make_policy("eagle", TreeShape(), 30)
    pool = grow_tree(
        policy, 2, torch.arange(30.0).flip(0).log_softmax(-1)[None], lambda p, n, r: torch.zeros(len(n), 30)
    )
    assert policy.keep(pool).tolist() == list(range(12))
