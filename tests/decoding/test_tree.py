"""Trees as tensors: ties, order, masks and positions, on trees small enough to write down."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle2.decoding.policy import Dynamic
from eagle2.decoding.tree import ROOT, Pool, ancestor_mask, best, flatten, top_children
from eagle2.settings import TreeShape, pool_size


def tensor(values):
    return torch.tensor(values, dtype=torch.float32)


def paper_pool():
    """Figure 7: It -> is .6, has .2; is -> a .8, the .1; has -> to .7, a .1; a -> good, nice; to -> be, do.

    Tokens: is 1, has 2, a 3, the 4, to 5, good 6, nice 7, be 8, do 9.
    """
    pool = Pool.empty()
    pool = pool.grow(torch.tensor([ROOT, ROOT]), torch.tensor([1, 2]), tensor([0.6, 0.2]).log())
    pool = pool.grow(torch.tensor([0, 0, 1, 1]), torch.tensor([3, 4, 5, 3]), tensor([0.8, 0.1, 0.7, 0.1]).log())
    return pool.grow(torch.tensor([2, 2, 4, 4]), torch.tensor([6, 7, 8, 9]), tensor([0.7, 0.1, 0.7, 0.2]).log())


def test_values_are_products_of_confidences_from_the_root():
    values = paper_pool().log_value.exp()
    torch.testing.assert_close(values, tensor([0.6, 0.2, 0.48, 0.06, 0.14, 0.02, 0.336, 0.048, 0.098, 0.028]))


def test_the_paper_s_figure_7_is_flattened_as_drawn():
    pool = paper_pool()
    kept = best(pool.log_value, 7).sort().values
    flat = flatten(pool, kept)
    assert flat.token.tolist() == [1, 2, 3, 4, 5, 6, 8]  # is has a the to good be
    assert flat.parent.tolist() == [0, 0, 0, 1, 1, 2, 3, 5]
    assert flat.lists() == ([1, 2, 3, 4, 5, 6, 8], [0, 0, 0, 1, 1, 2, 3, 5], [0, 1, 1, 2, 2, 2, 3, 3], kept.tolist())
    assert flat.positions(40).tolist() == [40, 41, 41, 42, 42, 42, 43, 43]
    assert ["".join(map(str, row)) for row in flat.visible.int().tolist()] == [
        "10000000",  # It
        "11000000",  # is
        "10100000",  # has
        "11010000",  # is a
        "11001000",  # is the
        "10100100",  # has to
        "11010010",  # is a good
        "10100101",  # has to be
    ]


def test_expanded_nodes_are_those_that_got_children():
    assert paper_pool().expanded.tolist() == [True, True, True, False, True, False, False, False, False, False]


def test_equal_values_go_to_the_shallower_node_then_to_the_earlier_one():
    """A sure child (confidence 1) ties with its parent; torch.topk may put either first."""
    pool = Pool.empty()
    pool = pool.grow(torch.tensor([ROOT, ROOT]), torch.tensor([1, 2]), tensor([0.5, 0.5]).log())
    pool = pool.grow(torch.tensor([0, 0]), torch.tensor([3, 4]), tensor([1.0, 0.0001]).log())
    assert best(pool.log_value, 3).tolist() == [0, 1, 2]
    assert best(pool.log_value, 1).tolist() == [0]


def test_among_equally_likely_children_the_lower_id_comes_first():
    log_probs = tensor([[0.1, 0.3, 0.3, 0.1, 0.2], [0.2, 0.2, 0.2, 0.2, 0.2]]).log()
    tokens, log_confidence = top_children(log_probs, 3)
    assert tokens.tolist() == [[1, 2, 4], [0, 1, 2]]
    torch.testing.assert_close(log_confidence.exp(), tensor([[0.3, 0.3, 0.2], [0.2, 0.2, 0.2]]))


def test_top_children_orders_zero_and_minus_zero_and_minus_infinity():
    tokens, _ = top_children(tensor([[float("-inf"), -0.0, 0.0, -1.0]]), 4)
    assert tokens.tolist() == [[1, 2, 3, 0]]


@given(st.lists(st.lists(st.integers(-40, 0), min_size=6, max_size=6), min_size=1, max_size=4), st.integers(1, 6))
def test_top_children_is_a_stable_sort(rows, k):
    log_probs = torch.tensor(rows, dtype=torch.float32) / 8
    tokens, values = top_children(log_probs, k)
    for row, got, value in zip(log_probs.tolist(), tokens.tolist(), values.tolist(), strict=True):
        wanted = sorted(range(6), key=lambda token: (-row[token], token))[:k]
        assert got == wanted
        assert value == [row[token] for token in wanted]


def test_no_rounding_makes_a_child_worth_more_than_its_parent():
    pool = Pool.empty().grow(torch.tensor([ROOT]), torch.tensor([1]), tensor([-0.25]))
    pool = pool.grow(torch.tensor([0]), torch.tensor([2]), tensor([1e-7]))  # a logarithm that rounding put above zero
    assert pool.log_value.tolist() == [-0.25, -0.25]


@given(st.lists(st.integers(0, 10**6), max_size=40))
def test_the_ancestor_mask_is_the_path_to_the_root(seeds):
    parent = [0] + [seed % (row + 1) for row, seed in enumerate(seeds)]
    mask = ancestor_mask(torch.tensor(parent))
    for row in range(len(parent)):
        path, node = {row}, row
        while node:
            node = parent[node]
            path.add(node)
        assert set(mask[row].nonzero().flatten().tolist()) == path


@st.composite
def grown(draw):
    """A pool grown as a policy would grow it, from confidences with many exact ties and ones."""
    shape = TreeShape(draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 40)))
    policy = Dynamic("eagle2", shape)
    pool = Pool.empty()
    nodes = torch.tensor([ROOT])
    for _ in range(shape.depth):
        children = []
        for _ in range(len(nodes)):
            row = draw(
                st.lists(st.sampled_from([0.0, 0.0, -0.125, -0.5, -2.0]), min_size=shape.top_k, max_size=shape.top_k)
            )
            children += sorted(row, reverse=True)
        parents = nodes.repeat_interleave(shape.top_k)
        pool = pool.grow(parents, torch.arange(len(parents)), tensor(children))
        nodes = policy.expand(pool)
    return pool, policy


@settings(max_examples=200, deadline=None)
@given(grown())
def test_kept_nodes_are_the_best_by_value_depth_and_order_and_form_a_tree(case):
    pool, policy = case
    kept = policy.keep(pool).tolist()
    order = sorted(range(len(pool)), key=lambda i: (-float(pool.log_value[i]), int(pool.depth[i]), i))
    assert kept == sorted(order[: policy.shape.max_nodes])
    assert all(parent == ROOT or parent in kept for parent in pool.parent[kept].tolist())
    flat = flatten(pool, policy.keep(pool))
    assert flat.parent[1:].tolist() == [0 if p == ROOT else kept.index(p) + 1 for p in pool.parent[kept].tolist()]


@settings(max_examples=100, deadline=None)
@given(grown(), st.sampled_from([(False, True), (True, False), (False, False)]))
def test_the_ablations_keep_trees_too(case, kind):
    pool, policy = case
    by_value, rerank = kind
    width = policy.shape.top_k
    ablation = Dynamic("ablation", policy.shape, by_value, rerank)
    if ablation.by_value or rerank:  # by confidence alone other nodes would have been expanded than in this pool
        kept = ablation.keep(pool).tolist()
        assert all(parent == ROOT or parent in kept for parent in pool.parent[kept].tolist())
        if not rerank:
            assert len(kept) == sum(min(width, int((pool.depth == d).sum())) for d in range(1, policy.shape.depth + 1))


@settings(max_examples=100, deadline=None)
@given(grown())
def test_a_grown_pool_has_the_documented_size_and_order(case):
    pool, policy = case
    assert len(pool) == pool_size(policy.shape.top_k, policy.shape.depth)
    assert pool.depth.tolist() == sorted(pool.depth.tolist())
    for depth in range(2, policy.shape.depth + 1):
        parents = pool.parent[pool.depth == depth].tolist()
        in_order = sorted(set(parents), key=lambda i: (-float(pool.log_value[i]), i))
        assert parents == [p for p in in_order for _ in range(policy.shape.top_k)]
