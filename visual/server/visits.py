"""The visitors of one app: whose visit is whose, and how one passes from a page to the next."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict

from visual.server.conversation import Visit


class Visits:
    """Visitors by session, at most `limit`; the one seen longest ago is forgotten first. Safe across threads."""

    def __init__(self, limit: int = 100) -> None:
        self._limit = limit
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._parked: OrderedDict[str, tuple[str, Visit, object]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session: str | None) -> Visit:
        """A session's visit. What comes without a session shares nothing with anybody."""
        if session is None:
            return Visit()
        with self._lock:
            visit = self._visits.setdefault(session, Visit())
            self._visits.move_to_end(session)
            idle = [key for key, other in self._visits.items() if not other.busy and key != session]
            for key in idle[: max(0, len(self._visits) - self._limit)]:
                self._visits.pop(key).close()
            return visit

    def forget(self, session: str) -> None:
        with self._lock:
            visit = self._visits.pop(session, None)
        if visit is not None:
            visit.halt = True
            if not visit.busy:
                visit.close()

    def let_go(self) -> None:
        """Close what runs have going on in their engine, but for those that a round is being made of just now."""
        with self._lock:
            idle = [visit for visit in self._visits.values() if not visit.busy]
        for visit in idle:
            visit.close()

    def park(self, session: str, carried: object = None) -> str:
        """A key with which another session, that of the same tab's next page, takes this visit over, once."""
        key = secrets.token_urlsafe(16)
        visit = self.of(session)
        with self._lock:
            self._parked[key] = (session, visit, carried)
            while len(self._parked) > self._limit:
                self._parked.popitem(last=False)
        return key

    def resume(self, key: str, session: str) -> tuple[Visit, object] | None:
        """The visit parked under a key, now this session's, and what was carried; None for a key that is not known."""
        with self._lock:
            if key not in self._parked:
                return None
            before, visit, carried = self._parked.pop(key)
            if self._visits.get(before) is visit:
                del self._visits[before]  # so that the page left behind, when it is closed, halts nothing
            self._visits[session] = visit
            visit.halt = False
            return visit, carried

    def __len__(self) -> int:
        return len(self._visits)
