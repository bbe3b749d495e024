"""What tests of turns and visits share: settings of a short run, and running it to its end."""

from eagle2.settings import Sampling, Settings, TreeShape
from visual.server.conversation import Turn, advance

SETTINGS = Settings("eagle2", TreeShape(3, 3, 8), Sampling(), 20)


def finish(turn: Turn, engine: object) -> Turn:
    while turn.open:
        advance(turn, engine)
    return turn
