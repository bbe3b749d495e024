"""Matrices in 4 and 8 bits: what a weight is, by hand; and that a row's product does not depend on its neighbours."""

import pytest
import torch

from eagle2.models.four_bit import Blocks, EightBitLinear, FourBitLinear, parts_of


def random_blocks(outputs: int, inputs: int, lowest: int = 0, highest: int = 15) -> Blocks:
    codes = torch.randint(lowest, highest + 1, (outputs, inputs), dtype=torch.int32)
    scale = torch.rand(outputs, inputs // 32).bfloat16().float() + 0.5
    return Blocks(codes, scale, torch.zeros_like(scale))


def test_a_weight_is_its_code_times_the_scale_plus_the_offset_of_its_group():
    codes = torch.zeros(16, 64, dtype=torch.int32)
    codes[3, 0], codes[3, 40] = 7, 2
    scale, offset = torch.full((16, 2), 0.5), torch.zeros(16, 2)
    scale[3, 1], offset[3, 1] = 2.0, -1.0
    blocks = Blocks(codes, scale, offset)
    dense = blocks.dense()
    assert (dense[3, 0], dense[3, 40], dense[3, 41]) == (3.5, 3.0, -1.0)
    x = torch.zeros(2, 64, dtype=torch.bfloat16)
    x[0, 0], x[1, 40] = 2.0, 1.0
    product = FourBitLinear(blocks)(x)
    assert (product[0, 3], product[1, 3], product[0, 4]) == (7.0, 3.0, 0.0)


def test_eight_bits_are_two_products_of_four():
    torch.manual_seed(0)
    blocks = random_blocks(32, 64, -128, 127)
    x = torch.randn(5, 64).bfloat16()
    wanted = x.float() @ blocks.dense().T
    assert torch.allclose(EightBitLinear(blocks)(x), wanted, rtol=2e-2, atol=2e-2 * float(wanted.abs().max()))


def test_fused_matrices_and_their_parts():
    torch.manual_seed(0)
    query, key = random_blocks(32, 64), random_blocks(16, 64)
    fused = FourBitLinear(query, key)
    x = torch.randn(3, 64).bfloat16()
    assert fused.out_features == 48
    for part, alone in zip(parts_of(fused, [32, 16]), (query, key), strict=True):
        assert torch.equal(part(x), FourBitLinear(alone)(x))


@pytest.mark.parametrize("linear", [FourBitLinear(random_blocks(48, 64)), EightBitLinear(random_blocks(48, 64, -128))])
def test_a_rows_product_is_the_same_bits_beside_any_other_rows(linear):
    x = torch.randn(70, 64).bfloat16()
    alone = torch.cat([linear(row[None]) for row in x])
    for rows in (2, 3, 4, 5, 16, 33, 60, 70):
        assert torch.equal(linear(x[:rows]), alone[:rows])


def test_codes_beyond_four_bits_are_refused():
    with pytest.raises(ValueError, match="codes run from 0 to 16; 4 bits hold 0 to 15"):
        FourBitLinear(
            Blocks(torch.tensor([[0, 16] * 16] * 16, dtype=torch.int32), torch.ones(16, 1), torch.zeros(16, 1))
        )
