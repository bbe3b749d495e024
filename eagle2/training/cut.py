"""`python -m eagle2 cut`: a head with another draft vocabulary, without training: no weight depends on it."""

import argparse

import numpy as np
import torch

from eagle2.loading import load as loading
from eagle2.training.corpus import answers
from eagle2.training.data import chat_files, load_chats
from eagle2.training.export import save_head
from eagle2.training.start import begin_from, over_vocabulary
from eagle2.training.train import most_frequent


def run(options: argparse.Namespace) -> None:
    """Write the head that the options name, cut to the most frequent tokens of the chats' answers.

    Raises ValueError if there is no such head, or if the output folder already holds one.
    """
    if (options.out / "config.json").exists():
        raise ValueError(f"{options.out} holds a head already; give another --out")
    model = loading.load_model(options.target or loading.default_target()[1], "cpu", torch.float32)
    size = model.config.vocab_size
    said = answers(load_chats((path for given in options.data for path in chat_files(given)), size))
    ids = most_frequent(said, size, options.vocabulary)
    save_head(over_vocabulary(begin_from(options.head, model), ids), options.out)
    print(
        f"{options.out}: {len(ids):,} of {size:,} tokens, {np.isin(said, ids.numpy()).mean():.2%} of the answers' text"
    )
