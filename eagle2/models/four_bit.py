"""Matrices that stay in the 4 bits a GGUF file ships them in, multiplied as they are by torch's int4 product on a CPU.

A weight is (code - 8) * scale + zero, with one scale and zero for each 32 inputs of an output. A row's result does not
depend on how many rows are multiplied with it, which is what makes tree decoding equal plain decoding bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

GROUP = 32
"""Inputs that share a scale and a zero, in the files' block formats and in torch's product alike."""

_pack = torch.ops.aten._convert_weight_to_int4pack_for_cpu
_multiply = torch.ops.aten._weight_int4pack_mm_for_cpu


class Blocks(NamedTuple):
    """A matrix as a file's blocks hold it: weight = codes * scale + offset, by groups of 32 inputs.

    codes int32 [out, in]; scale, offset float32 [out, in / 32].
    """

    codes: Tensor
    scale: Tensor
    offset: Tensor

    def dense(self) -> Tensor:
        """The weights, float32 [out, in]."""
        grouped = self.codes.unflatten(1, (-1, GROUP)) * self.scale[..., None] + self.offset[..., None]
        return grouped.flatten(1)


class FourBitLinear(nn.Module):
    """x bfloat16 [..., in] -> bfloat16 [..., out], for codes 0 to 15; several matrices of the same inputs make one.

    Raises ValueError for codes that do not fit into 4 bits.
    """

    def __init__(self, *parts: Blocks) -> None:
        super().__init__()
        codes, scale, offset = (torch.cat(columns) for columns in zip(*parts, strict=True))
        if codes.min() < 0 or codes.max() > 15:
            raise ValueError(f"codes run from {codes.min()} to {codes.max()}; 4 bits hold 0 to 15")
        self.out_features, self.in_features = codes.shape
        zero = offset + 8 * scale
        self.register_buffer("packed", _pack(codes, 1))  # uint8 [out, in / 2], in the kernel's order
        self.register_buffer("scales_and_zeros", torch.stack([scale.T, zero.T], dim=-1).bfloat16().contiguous())

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.in_features)
        return _multiply(rows, self.packed, GROUP, self.scales_and_zeros).view(*x.shape[:-1], self.out_features)


class EightBitLinear(nn.Module):
    """x bfloat16 [..., in] -> float32 [..., out], for codes -128 to 127: the sum of two 4-bit products.

    A code is 16 * high + low, with high from -8 to 7 and low from 0 to 15.
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        codes, scale, offset = blocks
        self.high = FourBitLinear(Blocks((codes >> 4) + 8, 16 * scale, offset - 128 * scale))
        self.low = FourBitLinear(Blocks(codes & 15, scale, torch.zeros_like(scale)))
        self.out_features, self.in_features = codes.shape

    def forward(self, x: Tensor) -> Tensor:
        return self.high(x).float() + self.low(x)


class PartOfLinear(nn.Module):
    """Some of the outputs of a fused matrix, so that the stock module has its q_proj, k_proj, ... without a copy."""

    def __init__(self, whole: nn.Module, start: int, outputs: int) -> None:
        super().__init__()
        self.whole, self.start, self.out_features = whole, start, outputs
        self.in_features = whole.in_features

    def forward(self, x: Tensor) -> Tensor:
        return self.whole(x)[..., self.start : self.start + self.out_features]


def parts_of(whole: nn.Module, outputs: Sequence[int]) -> list[PartOfLinear]:
    """The matrices that were fused into `whole`, in their order, by their numbers of outputs."""
    starts = [sum(outputs[:place]) for place in range(len(outputs))]
    return [PartOfLinear(whole, start, count) for start, count in zip(starts, outputs, strict=True)]
