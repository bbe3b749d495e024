"""Whether two contents are the same, without keeping either."""

import hashlib
from collections.abc import Iterable


def fingerprint(parts: Iterable[bytes]) -> str:
    """The SHA-256 of the parts' own, in hex: other parts, another order or another division give another one."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()
