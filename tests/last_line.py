"""The line that `python -m eagle2 generate` ends with."""

import re

LAST_LINE = re.compile(
    r"(\d+) tokens, (\d+) rounds, tau (none|\d+\.\d\d) \(bonus included\), "
    r"(none decoded|\d+\.\d tokens/s), prefill \d+ ms"
)
"""Groups: tokens, rounds, tau or none, tokens per second."""
