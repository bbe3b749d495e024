"""Linear layers that multiply in whichever order is faster here for their shape and the number of rows, on a CPU.

`x @ W.T` with few rows, as torch forms it, can take 2.5 times as long as the same product written weights-first,
`(W @ x.T).T`; which wins depends on processor, shape and rows, so it is measured when a model is loaded. Weights,
state dicts and modeling code stay as they are: only the `nn.Linear` modules are exchanged for a subclass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from itertools import cycle

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eagle2.progress import Watch, unwatched

ROWS = (*range(2, 21), 24, 28, 32, 33, 40, 48, 60, 64)
"""Row counts that are measured: neighbours differ, 16 rows can cost less than 12. Any other is treated like the next
one below; one row is the same either way, and more than the last are a prompt's, where the common order is good."""

FEWEST_WEIGHTS = 2**16
"""Smaller layers stay as they are: their products are all overhead. Tiny models, recordings of theirs included, keep
their rounding with that."""

MEASURED_WEIGHTS = 2**23
"""Weights that one measurement runs through: more than caches hold, as a whole model is, and few enough to be quick."""

SAMPLES, BUDGET_S = 12, 0.04
"""Products of each kind that are timed for one row count, and the seconds after which it has to do with fewer."""

MARGIN = 0.9
"""Weights-first must take less than this part of the time, so that a coin's toss does not decide the rounding."""


Product = Callable[[Tensor, Tensor], Tensor]
"""x [rows, in], weight [out, in] -> [rows, out]."""


class FewRowsLinear(nn.Linear):
    """`nn.Linear` with a choice of product. weights_first: whether to, by row count; counts past its end: no."""

    def __init__(self, linear: nn.Linear, weights_first: tuple[bool, ...]) -> None:
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias  # the same parameters: tied ones stay tied
        self.weights_first = weights_first
        self.train(linear.training)

    def forward(self, x: Tensor) -> Tensor:
        """x: [..., in_features]; returns [..., out_features], contiguous."""
        rows = x.shape[:-1].numel()
        if rows < len(self.weights_first) and self.weights_first[rows] and x.device.type == "cpu":
            product = weights_first(x.reshape(rows, self.in_features), self.weight, self.bias)
            return product.view(*x.shape[:-1], self.out_features)
        return super().forward(x)


def weights_first(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear(x, weight, bias)` for x [rows, in], formed as (W @ x.T).T; contiguous [rows, out]."""
    product = weight @ x.T if bias is None else torch.addmm(bias[:, None], weight, x.T)
    return product.T.contiguous()


def choose_products(model: nn.Module, watch: Watch = unwatched) -> None:
    """Exchange every `nn.Linear` of `model` that is large enough for one with measured products."""
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear)
    ]
    for done, (parent, name, child) in enumerate(found, 1):
        setattr(parent, name, faster(child))
        watch("products", done, len(found))


def faster(linear: nn.Linear) -> nn.Linear:
    """`linear` with measured products, or itself where it is small or a subclass, which has its reasons."""
    if type(linear) is not nn.Linear or linear.weight.numel() < FEWEST_WEIGHTS:
        return linear
    choice = faster_weights_first(*linear.weight.shape, linear.weight.dtype, torch.get_num_threads())
    return FewRowsLinear(linear, choice)


@cache  # one answer per process: a later load must not round differently
def faster_weights_first(outputs: int, inputs: int, dtype: torch.dtype, threads: int) -> tuple[bool, ...]:
    """Whether weights-first is faster here, by row count from 0 on, for weights [outputs, inputs] on so many threads.

    Takes about a second at most. A taller matrix is measured on its first rows, since time grows with their
    number. The quickest sample counts: other programs only ever slow a product down.
    """
    height = min(outputs, max(1, MEASURED_WEIGHTS // inputs))
    copies = max(1, MEASURED_WEIGHTS // (height * inputs))
    weights = torch.ones(copies, height, inputs, dtype=dtype)
    choice = [False] * ROWS[0]
    for count, following in zip(ROWS, (*ROWS[1:], ROWS[-1] + 1), strict=True):
        common, swapped = _quickest((F.linear, weights_first), torch.ones(count, inputs, dtype=dtype), weights)
        choice += [swapped < MARGIN * common] * (following - count)
    return tuple(choice)


@torch.inference_mode()
def _quickest(products: tuple[Product, ...], x: Tensor, weights: Tensor) -> list[float]:
    """The quickest sample of each product, in seconds.

    They take turns, each time on the next copy of the weights: the one just used would be in the cache.
    """
    seconds: list[list[float]] = [[] for _ in products]
    copies = cycle(weights)
    started = time.perf_counter()
    for _ in range(SAMPLES):
        for product, spent in zip(products, seconds, strict=True):
            weight = next(copies)
            before = time.perf_counter()
            product(x, weight)
            spent.append(time.perf_counter() - before)
        if before - started > BUDGET_S:
            break
    return [min(spent) for spent in seconds]
