"""The guided tour."""

LESSON = {
    "lesson.open": "课程",
    "lesson.open_title": "就在这个页面上，用十步和一道练习讲清 EAGLE-2",
    "lesson.place": "第 {step} 步，共 {steps} 步",
    "lesson.back": "上一步（←）",
    "lesson.next": "下一步（→）",
    "lesson.done": "完成",
    "lesson.end": "离开（Esc）",
    "lesson.plain": "自回归解码",
    "lesson.plain_text": "语言模型一次写出一个令牌，每个令牌都要让整个模型前向传播一次。"
    "而在这个回答里，每一段绿色连同它后面的橙色令牌，都出自同一次前向传播。",
    "lesson.draft": "先起草，再验证",
    "lesson.draft_text": "小的草稿模型猜测接下来可能出现什么；大的目标模型再用一次前向传播检验所有猜测。"
    "这样一个循环就是一轮。标题写着这一轮猜对了几个。",
    "lesson.tree": "由猜测组成的树",
    "lesson.tree_text": "单独一条链遇到第一个错误就结束了。树在每个位置有若干候选，也许其中就有一个是对的。"
    "它挂在根节点之下，根节点是最后一个已经确定的令牌。",
    "lesson.value": "置信度与值",
    "lesson.value_text": "草稿模型给每个猜测一个概率，即置信度。从根节点到某个节点的置信度之积就是它的值："
    "大致是目标模型一路接受到该节点的机会。",
    "lesson.expansion": "扩展",
    "lesson.expansion_text": "逐层进行：把值最高的 top_k 个节点送入草稿模型，每个得到 top_k 个子节点。"
    "于是树总是朝可能正确的方向生长：这正是 EAGLE-2 在 EAGLE 之上所增加的。",
    "lesson.reranking": "重排序",
    "lesson.reranking_text": "在全部起草的节点中保留值最高的 max_nodes 个。深处的节点可能输给从未扩展过的浅层节点。"
    "保留节点的父节点必定也被保留，因为它的值至少一样高。",
    "lesson.mask": "一个序列，一个掩码",
    "lesson.mask_text": "保留的节点排成一行。每个节点只能看到已有的文本、自己的祖先和它自己，别的都看不到："
    "掩码让每个分支都像是一段独立的文本。",
    "lesson.verification": "精确验证",
    "lesson.verification_text": "在根节点和每个节点之后，目标模型都说出它自己会写什么。从根节点往下走："
    "哪个子节点正是目标模型要写的令牌，就走向它；一个都没有，就停下。",
    "lesson.bonus": "额外令牌",
    "lesson.bonus_text": "在停下的地方，再加上目标模型自己的令牌：反正已经算出来了。"
    "所以即使猜测全错，一轮也能得到一个令牌，与自回归解码一样多。",
    "lesson.lossless": "为什么无损，好处何在",
    "lesson.lossless_text": "写出的每个令牌都是目标模型自己的选择；树只决定一次前向传播能给出多少个。"
    "这些个数的平均值（含额外令牌）叫作 τ：前向传播的次数大约只有自回归解码的 τ 分之一。",
    "lesson.exercise": "练习",
    "lesson.exercise_text": "让树变宽：把 top_k 提高到 {top_k}，再运行一次。每一步都由页面核对。",
    "lesson.before": "显示一轮 top_k 小于 {top_k} 的，例如运行记录“Python 代码”中的一轮。",
    "lesson.before_done": "之前：起草 {drafted} 个节点，保留 {kept} 个。",
    "lesson.raise": "在设置中把 top_k 提高到 {top_k}。",
    "lesson.raise_go": "打开设置",
    "lesson.after": "提一个问题，等一轮完成。",
    "lesson.after_go": "去提示词框",
    "lesson.after_done": "之后：起草 {drafted} 个节点，保留 {kept} 个。",
    "lesson.question": "哪个阶段变大了？",
    "lesson.phase_expansion": "扩展",
    "lesson.phase_reranking": "重排序",
    "lesson.phase_verification": "验证",
    "lesson.verdict_yes": "对。",
    "lesson.verdict_no": "不对，再看一看。",
    "lesson.count_expansion": "扩展阶段之前起草 {before} 个节点，之后 {after} 个。",
    "lesson.count_reranking": "重排序之前保留 {before} 个节点，之后 {after} 个。",
    "lesson.count_verification": "验证的行数（含根节点）之前是 {before}，之后是 {after}。",
    "lesson.exercise_answer": "候选池有 top_k + (depth − 1) · top_k² 个节点。重排序仍然至多保留其中 max_nodes 个，"
    "因此验证的代价不必增加。",
}
