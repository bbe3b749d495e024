"""The Chinese table: for each module of `visual.words.en` one of the same name, with the same keys.

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

from pathlib import Path

from visual.words.zh.lab import LAB
from visual.words.zh.lesson import LESSON
from visual.words.zh.models import MODELS
from visual.words.zh.page import PAGE
from visual.words.zh.player import PLAYER
from visual.words.zh.trees import TREES

METHOD = {"method.page": (Path(__file__).parent.parent / "method.zh.md").read_text(encoding="utf-8")}
CHINESE = {**PLAYER, **PAGE, **LAB, **MODELS, **TREES, **LESSON, **METHOD}
