"""The Chinese table: for each English module beside this package one with the same keys, under the same name.

What has no translation yet is shown in English, and named by a test. Sentences that `eagle2` itself raises, and what a
user wrote or a model said, are never translated; names of settings (`top_k`, `depth`, `max_nodes`) and of methods stay.

Words, the same everywhere:

    token           令牌          draft, drafter    草稿、草稿模型     target            目标模型
    draft tree      草稿树        node, root        节点、根节点       level, depth      层、深度
    round           轮            expansion         扩展               reranking         重排序
    keep, prune     保留、剪除    flatten           展平               attention mask    注意力掩码
    forward pass    前向传播      verify            验证               accept            接受
    accepted path   接受路径      bonus token       额外令牌           confidence c      置信度 c
    value V         值 V          candidate pool    候选池             rank, slot        排名、槽位
    prefill         预填充        lossless          无损               plain decoding    自回归解码
    speedup         加速比        calibration       校准               acceptance rate   接受率
    tau             τ，平均接受长度                 speculative decoding                 投机解码
    static tree     静态草稿树    chain             链式草稿           ablation          消融
    temperature     温度          greedy            贪心               seed              随机种子
    prompt          提示词        recorded run      运行记录           EAGLE head        EAGLE 草稿头
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from visual.strings_zh.lab import LAB
from visual.strings_zh.lesson import LESSON
from visual.strings_zh.page import PAGE
from visual.strings_zh.pair import PAIR
from visual.strings_zh.player import PLAYER
from visual.strings_zh.tree import TREE

CHINESE: Mapping[str, str] = MappingProxyType(
    {
        **PLAYER,
        **PAGE,
        **LAB,
        **LESSON,
        **TREE,
        **PAIR,
        "method.page": (Path(__file__).parent.parent / "method.zh.md").read_text(encoding="utf-8"),
    }
)
