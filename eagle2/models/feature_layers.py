"""Which of the target's hidden states a head sees. State i enters the layer after i others; -1 is the feature.

EAGLE-1/2 take the feature: what the final norm gives the LM head. EAGLE-3 fuses three states, low, middle and high
(its paper, section 3.1). Public configs name them in two ways; how they were understood is announced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FEATURE = (-1,)
GUESSED = "guessed, since the config names none"
NAMES = ("eagle_aux_hidden_state_layer_ids", "eagle_config.eagle_aux_hidden_state_layer_ids")


def usual_states(layers: int) -> tuple[int, int, int]:
    """The three that EAGLE-3's authors take of a model with so many layers."""
    return 2, layers // 2, layers - 3


def feature_states(path: Path, raw: dict, layers: int | None) -> tuple[tuple[int, ...], str]:
    """The states an EAGLE-3 head takes, ascending, and where that is known from.

    path, raw: its config. Raises ValueError where they are neither named nor can be guessed, or cannot be.
    """
    if layers is None:
        raise ValueError("an EAGLE-3 head needs to know how many layers its target has")
    nested = raw.get("eagle_config")
    for name, named in zip(NAMES, (raw, nested if isinstance(nested, dict) else {}), strict=True):
        ids = named.get(NAMES[0])
        if ids is not None:
            return named_states(path, name, ids, layers)
    states = usual_states(layers)
    if not _ascend(states, layers):
        raise ValueError(
            f"{path} does not name the hidden states its EAGLE-3 head takes, and none can be guessed for a target of "
            f'{layers} layers; add "{NAMES[0]}"'
        )
    return states, GUESSED


def named_states(path: Path, name: str, ids: object, layers: int) -> tuple[tuple[int, ...], str]:
    """States from a config's ids. Some projects name the layers whose *output* is meant, counted from 0.

    The authors' lowest state is 2, the output of layer 1, so ids that begin with 1 are of that kind.
    """
    sound = isinstance(ids, Sequence) and ids and all(type(i) is int for i in ids)
    outputs = sound and ids[0] == 1
    states = tuple(i + 1 for i in ids) if outputs else tuple(ids) if sound else ()
    if not sound or not _ascend(states, layers):
        raise ValueError(
            f"{path} has {name} = {ids!r}; it must name hidden states of the target, ascending, each under {layers}"
        )
    return states, f"named by the config{' as the outputs of layers ' + ', '.join(map(str, ids)) if outputs else ''}"


def _ascend(states: Sequence[int], layers: int) -> bool:
    """Whether they are states before the last layer's output, which is only had after the final norm."""
    return all(a < b for a, b in zip((-1, *states), (*states, layers), strict=True))
