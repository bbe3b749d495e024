"""What a folder given as a head is: an EAGLE head by its tensors' names, or something else, named as what it is."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

WHOLE = re.compile(r"(model\.|transformer\.|gpt_neox\.)?(layers|h)\.\d+\.")


def other_kind(names: Collection[str], flat: dict) -> str | None:
    """What these tensors and settings are, if that is no head we draft with; None: an EAGLE head."""
    head = any(name.endswith(("fc.weight", "hidden_norm.weight")) for name in names)
    latent = "kv_lora_rank" in flat or any("kv_a_proj_with_mqa" in name for name in names)
    if head and latent:
        return "an EAGLE-3 head with multi-head latent attention"
    model = f"{flat.get('speculators_model_type', '')} {flat.get('architectures', '')}".lower()
    if flat.get("parallel_drafting") or "peagle" in model or any(n.split(".")[-1] == "mask_hidden" for n in names):
        return "a P-EAGLE head, which drafts all its tokens at once"
    for word, what in (("dflash", "a DFlash head"), ("dspark", "a DSpark head"), ("medusa", "a Medusa head")):
        if word in model or any(word in name.lower() for name in names):
            return what
    if any("hydra" in name for name in names):
        return "a Hydra head"
    if head and any(".experts." in name for name in names):
        return "a head with a mixture of experts"
    deeper = {int(found[2]) for name in names if (found := re.match(r"(model\.)?layers\.(\d+)\.", name))}
    if head and len(deeper) > 1:
        return f"a head of {'two' if len(deeper) == 2 else len(deeper)} draft layers"
    if flat.get("use_mtp_layernorm") is True:
        return "a multi-token prediction (MTP) head"
    if not head:
        return "a whole language model" if any(map(WHOLE.match, names)) else "no head that is known"
    return None


def refuse_other_kinds(folder: Path, names: Collection[str], flat: dict | None = None) -> None:
    """Raise ValueError where a folder holds something else than a head we draft with."""
    if what := other_kind(names, flat or {}):
        some = f" (its tensors: {', '.join(sorted(names)[:3])}, ...)" if what.startswith("no head") else ""
        raise ValueError(
            f"{folder} was given as a head but holds {what}{some}; what drafts here are EAGLE-1/2 and EAGLE-3 heads of "
            "one layer, whose tensors are an fc.weight or a hidden_norm.weight beside that layer's"
        )
