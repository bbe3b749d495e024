"""A GGUF file whose matrices stay packed: the stock module's function, exact trees bit for bit, and what is refused."""

import pytest
import torch
from gguf import GGMLQuantizationType
from gguf_files import KV_HEADS, VOCAB, config, write
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

import eagle2
from eagle2.decoding.tree import ancestor_mask
from eagle2.loading.gguf_target import four_bit_target
from eagle2.models.target import Target
from eagle2.settings import Sampling, TreeShape

KINDS = (GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q4_1)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def target(file):
    return Target(*four_bit_target(file, config()))


@pytest.mark.parametrize("kind", KINDS)
def test_it_computes_what_transformers_computes_from_the_same_file(tmp_path, kind):
    path = write(tmp_path / "tiny.gguf", kind)
    stock = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    target = Target(*four_bit_target(path, config()))
    ids = torch.randint(VOCAB, (40,)).tolist()
    features, logits = target.extend(target.begin(), ids)
    with torch.inference_mode():
        wanted = stock(torch.tensor([ids]), output_hidden_states=True)
        around = target.model(torch.tensor([ids])).logits[0]
    slack = 2e-2 * float(wanted.logits.abs().max())
    assert torch.allclose(logits, wanted.logits[0, -1], atol=slack)
    assert torch.allclose(around.float(), wanted.logits[0], atol=slack)  # the stock module around packed matrices
    assert torch.allclose(features.float(), wanted.hidden_states[-1][0], atol=0.1)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_nodes_logits_are_its_paths_bit_for_bit(target, data):
    prefix = data.draw(st.integers(1, 420))
    parents = [0] + [data.draw(st.integers(0, i)) for i in range(data.draw(st.integers(1, 40)))]
    ids = torch.randint(VOCAB, (prefix + len(parents),), generator=torch.Generator().manual_seed(prefix))
    depth = [0]
    for parent in parents[1:]:
        depth.append(depth[parent] + 1)
    cache = target.begin()
    target.extend(cache, ids[:prefix].tolist())
    tree, _ = target.verify(cache, ids[prefix:], torch.tensor(depth) + prefix, ancestor_mask(torch.tensor(parents)))
    node = data.draw(st.integers(0, len(parents) - 1))
    path = [node]
    while path[0]:
        path.insert(0, parents[path[0]])
    plain = target.begin()
    target.extend(plain, ids[:prefix].tolist())
    for row in path:
        _, logits = target.extend(plain, [int(ids[prefix + row])])
    assert torch.equal(tree[node], logits)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_tree_writes_plain_decodings_text(file, temperature):
    engine = eagle2.load(file, dtype="4bit", device="cpu")
    assert engine.pair.dtype == "4bit"
    sampling = Sampling(temperature, seed=3)
    wanted = engine.plain([5, 6, 7], sampling, 24)
    rounds = list(engine.rounds([5, 6, 7], TreeShape(3, 4, 12), sampling, 24, policy="ngram"))
    assert [token for r in rounds for token in r.committed] == wanted


def test_committed_rows_stay_and_the_rest_is_forgotten(target):
    cache = target.begin()
    target.extend(cache, [1, 2, 3])
    tokens, positions = torch.tensor([4, 5, 6, 7]), torch.tensor([3, 4, 4, 5])
    target.verify(cache, tokens, positions, ancestor_mask(torch.tensor([0, 0, 0, 2])))
    target.commit(cache, torch.tensor([0, 2, 3]))  # 4, 6, 7
    fresh = target.begin()
    target.extend(fresh, [1, 2, 3])
    for token in (4, 6, 7):
        target.extend(fresh, [token])
    assert cache.length == fresh.length == cache.layers.length == 6
    assert torch.equal(cache.layers.keys[:, :, :6], fresh.layers.keys[:, :, :6])
    assert not cache.layers.values[:, :, 6:].any()
    assert cache.layers.keys.shape[1] == KV_HEADS


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"device": "cpu", "target": "no/such/model"}, "no/such/model is none that is here"),
        ({"device": "meta"}, "device 'meta' is not usable here"),
    ],
)
def test_what_cannot_stay_packed_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        eagle2.load(dtype="4bit", **options)


def test_other_families_and_formats_are_refused(file, tmp_path):
    with pytest.raises(ValueError, match="the activation here is 'gelu'; load it with --weights float32"):
        four_bit_target(file, config(hidden_act="gelu"))
    other = write(tmp_path / "other.gguf", GGMLQuantizationType.Q5_1)
    with pytest.raises(ValueError, match=r"blk\.0\.attn_q\.weight is stored as Q5_1"):
        four_bit_target(other, config())
