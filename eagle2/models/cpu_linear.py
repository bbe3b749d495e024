"""Linear layers that multiply in whichever form is faster here for their shape and the number of rows, on a CPU.

`x @ W.T` with few rows, as torch forms it, can take 2.5 times as long as the same product written weights-first,
`(W @ x.T).T`; with a single row a matrix much taller than wide, an LM head, can be nearly twice as fast read from a
transposed copy. Which wins depends on processor, shape and rows, so it is measured when a model is loaded. Weights,
state dicts and modeling code stay as they are: only the `nn.Linear` modules are exchanged for a subclass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from itertools import cycle
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eagle2.models.memory import free_main_memory
from eagle2.progress import Watch, unwatched

ROWS = (*range(2, 21), 24, 28, 32, 33, 40, 48, 60, 64)
"""Row counts that are measured: neighbours differ, 16 rows can cost less than 12. Any other is treated like the next
one below. One row is the same in either order; more than the last are a prompt's, where the common order is good."""

FEWEST_WEIGHTS = 2**16
"""Smaller layers stay as they are: their products are all overhead. Tiny models, recordings of theirs included, keep
their rounding with that."""

TALL = 8
"""A matrix with so many times as many outputs as inputs is an LM head: the only kind that may be copied for one row."""

COPY_SHARE = 0.125
"""Share of the free main memory that one transposed copy may take. The copy stays beside the weights: of the default
pair's 538 MB it is 113 MB more, of a 7B model's some 2 %."""

MEASURED_WEIGHTS, SLICE = 2**23, 2**21
"""Weights that measurements run through, more than caches hold, as a whole model is; and at most so many at a time."""

SAMPLES, BUDGET_S = 8, 0.02
"""Products of each kind that are timed for one row count, and the seconds after which it has to do with fewer."""

FEWEST_SAMPLES, CLEAR = 3, 1.5
"""After so many samples a form that is so many times as fast, or as slow, needs no more of them."""

MARGIN = 0.9
"""Another form must take less than this part of the time, so that a coin's toss does not decide the rounding."""


Product = Callable[[Tensor, Tensor], Tensor]
"""x [rows, in], weight [out, in] -> [rows, out]."""


class Choice(NamedTuple):
    """weights_first: whether to multiply so, by row count; counts past its end: no. one_row_transposed: whether one row
    is faster by a transposed copy."""

    weights_first: tuple[bool, ...] = ()
    one_row_transposed: bool = False


class FewRowsLinear(nn.Linear):
    """`nn.Linear` with a choice of product. Where one row goes by a transposed copy it holds one, [in, out].

    The copy is no parameter, serves passes without gradients, and is left aside once the weights have changed.
    """

    def __init__(self, linear: nn.Linear, choice: Choice) -> None:
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias  # the same parameters: tied ones stay tied
        self.weights_first = choice.weights_first
        self._transposed: Tensor | None = None
        if choice.one_row_transposed:
            self._transposed = self.weight.detach().T.contiguous()
            self._copied = self._state()
        self.train(linear.training)

    def forward(self, x: Tensor) -> Tensor:
        """x: [..., in_features]; returns [..., out_features], contiguous."""
        rows = x.shape[:-1].numel()
        if x.device.type == "cpu":
            if (
                rows == 1
                and self._transposed is not None
                and not torch.is_grad_enabled()
                and self._copied == self._state()
            ):
                product = x.reshape(1, -1) @ self._transposed
                return (product if self.bias is None else product + self.bias).view(*x.shape[:-1], self.out_features)
            if rows < len(self.weights_first) and self.weights_first[rows]:
                product = weights_first(x.reshape(rows, self.in_features), self.weight, self.bias)
                return product.view(*x.shape[:-1], self.out_features)
        return super().forward(x)

    def _state(self) -> tuple[int, int, torch.dtype]:
        """Changes with the weights: they are elsewhere, or have been written to."""
        return self.weight.data_ptr(), self.weight._version, self.weight.dtype


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
    weight = linear.weight
    if type(linear) is not nn.Linear or weight.numel() < FEWEST_WEIGHTS:
        return linear
    choice = fastest(*weight.shape, weight.dtype, torch.get_num_threads())
    free = free_main_memory()
    if free is not None and weight.nbytes > COPY_SHARE * free:
        choice = choice._replace(one_row_transposed=False)
    return FewRowsLinear(linear, choice)


@cache  # one answer per process: a later load must not round differently
def fastest(outputs: int, inputs: int, dtype: torch.dtype, threads: int) -> Choice:
    """Which products are faster here for weights [outputs, inputs] on so many threads.

    Takes a fraction of a second. A taller matrix is measured on slices of its rows, since time grows with their number.
    The quickest sample counts: other programs only ever slow a product down.
    """
    height = min(outputs, max(1, SLICE // inputs))
    weights = torch.ones(max(1, MEASURED_WEIGHTS // (height * inputs)), height, inputs, dtype=dtype)
    one_row = outputs >= TALL * inputs and _wins(transposed, 1, weights)
    first = [False] * ROWS[0]
    for count, following in zip(ROWS, (*ROWS[1:], ROWS[-1] + 1), strict=True):
        first += [_wins(weights_first, count, weights)] * (following - count)
    return Choice(tuple(first), one_row)


def transposed(x: Tensor, weight: Tensor) -> Tensor:
    """A product as by a transposed copy: the same numbers of rows and columns and bytes, whatever they hold."""
    return x @ weight.view(weight.shape[1], weight.shape[0])


@torch.inference_mode()
def _wins(product: Product, rows: int, weights: Tensor) -> bool:
    """Whether `product` is faster than the common one for so many rows; weights: several, [copies, out, in].

    They take turns, each time on the next copy of the weights: the one just used would be in the cache.
    """
    x = weights.new_ones(rows, weights.shape[2])
    copies = cycle(weights)
    common, other = [], []
    started = time.perf_counter()
    for sample in range(1, SAMPLES + 1):
        for form, spent in ((F.linear, common), (product, other)):
            weight = next(copies)
            before = time.perf_counter()
            form(x, weight)
            spent.append(time.perf_counter() - before)
        ratio = min(common) / min(other)
        clear = sample >= FEWEST_SAMPLES and not 1 / CLEAR < ratio < CLEAR
        if clear or time.perf_counter() - started > BUDGET_S:
            break
    return min(other) < MARGIN * min(common)
