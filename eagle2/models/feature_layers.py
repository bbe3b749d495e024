"""Which of the target's hidden states a head sees. State i enters the layer after i others; -1 is the feature.

EAGLE-1/2 take the feature: what the final norm gives the LM head. EAGLE-3 fuses three states, low, middle and high
(its paper, section 3.1). Public configs name them in two ways; how they were understood is announced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FEATURE = (-1,)
GUESSED = "guessed, since the config names none"
STATES, OUTPUTS = "states", "outputs"
NAMES = {
    "eagle_aux_hidden_state_layer_ids": None,
    "target_layer_ids": OUTPUTS,
    "aux_hidden_state_layer_ids": None,
}
"""What configs call them, and how each is read; None: by their lowest."""


def usual_states(layers: int) -> tuple[int, int, int]:
    """The three that EAGLE-3's authors take of a model with so many layers."""
    return 2, layers // 2, layers - 3


def feature_states(
    path: Path, raw: dict, layers: int | None, count: int = 3, reading: str | None = None
) -> tuple[tuple[int, ...], str]:
    """The states an EAGLE-3 head takes, ascending, and where that is known from.

    path, raw: its config. count: how many its fc takes. reading: "states" or "outputs", where the caller knows better
    how ids are meant. Raises ValueError where they are neither named nor can be guessed, or cannot be.
    """
    if layers is None:
        raise ValueError("an EAGLE-3 head needs to know how many layers its target has")
    if reading not in (None, STATES, OUTPUTS):
        raise ValueError(f"ids of hidden states cannot be read as {reading!r}; choose {STATES} or {OUTPUTS}")
    nested = raw.get("eagle_config")
    for place in (raw, nested if isinstance(nested, dict) else {}):
        for name, meaning in NAMES.items():
            if place.get(name) is not None:
                return named_states(path, name, place[name], layers, reading or meaning)
    states = usual_states(layers)
    if count != len(states) or not _ascend(states, layers):
        raise ValueError(
            f"{path} does not name the {count} hidden states its EAGLE-3 head takes, and none can be guessed for a "
            f'target of {layers} layers; add "{next(iter(NAMES))}"'
        )
    return states, GUESSED


def named_states(
    path: Path, name: str, ids: object, layers: int, reading: str | None = None
) -> tuple[tuple[int, ...], str]:
    """States from a config's ids. Some projects name the layers whose *output* is meant, counted from 0.

    The authors' lowest state is 2, the output of layer 1, so ids that begin with 1 are of that kind.
    """
    sound = isinstance(ids, Sequence) and ids and all(type(i) is int for i in ids)
    outputs = reading == OUTPUTS or (reading is None and sound and ids[0] == 1)
    states = tuple(i + 1 for i in ids) if sound and outputs else tuple(ids) if sound else ()
    if not sound or not _ascend(states, layers):
        raise ValueError(
            f"{path} has {name} = {ids!r}; it must name hidden states of the target, ascending, each at most {layers}"
        )
    return states, f"named by the config{' as the outputs of layers ' + ', '.join(map(str, ids)) if outputs else ''}"


def _ascend(states: Sequence[int], layers: int) -> bool:
    """Whether they are states of the target; the last, `layers`, is the last layer's output before the final norm."""
    return all(a < b for a, b in zip((-1, *states), (*states, layers + 1), strict=True))
