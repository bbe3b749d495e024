"""The tiny pair of the golden recordings with a tokenizer of 256 bytes beside its target, as options of a command."""

import shutil
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAIR = Path(__file__).resolve().parent / "fixtures" / "tiny-pair"


def options(folder: Path) -> list[str]:
    """The pair's options; its target is copied to `folder`."""
    shutil.copytree(PAIR / "target", folder)
    vocabulary = {char: i for i, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    template = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}"
    PreTrainedTokenizerFast(tokenizer_object=backend, chat_template=template).save_pretrained(folder)
    return ["--target", str(folder), "--head", str(PAIR / "head"), "--device", "cpu"]
