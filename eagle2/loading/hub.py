"""Names -> folders: a folder as it is, or a snapshot of the hub's; and what can go wrong there, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from eagle2.loading.weights import reason
from eagle2.progress import Watch, bar_telling, unwatched

HEAD_FILES = ("config.json", "*.safetensors", "*.bin", "*.index.json")


def fetch_head(name: str, watch: Watch = unwatched) -> tuple[Path, str | None]:
    """The folder of a head and its revision: `name` itself if it is a folder, else fetched from the hub.

    Raises ValueError in one sentence where neither works.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder, None
    if folder.exists():
        raise ValueError(f"{name} is a file; give the folder that holds config.json and the head's weights")
    try:
        bar = bar_telling(watch, "download")
        snapshot = Path(snapshot_download(name, allow_patterns=list(HEAD_FILES), tqdm_class=bar))
    except Exception as error:  # the errors of the hub's client, and those of whatever it fetches with
        raise ValueError(unreachable(name, error)) from error
    return snapshot, snapshot.name


def fetched_revision(name: str) -> str | None:
    """The commit that a repository's files were fetched at; None for a folder."""
    if Path(name).expanduser().is_dir():
        return None
    config = try_to_load_from_cache(name, "config.json")
    return Path(config).parent.name if isinstance(config, str) else None


def unreachable(name: str, error: Exception) -> str:
    """The sentence for a name that is no folder and could not be had from the hub."""
    why, advice = explained(name, error)
    return f"{name!r} is no folder here and could not be fetched from the hub ({why}); {advice}"


def explained(name: str, error: Exception) -> tuple[str, str]:
    """What a failed download means, and what to do. transformers wraps the hub's errors: causes are looked at too."""
    causes = list(_causes(error))
    for cause in causes:  # first of all what the hub said: its client wraps that in "nothing in the cache"
        if isinstance(cause, HfHubHTTPError) and getattr(cause, "response", None) is not None:
            return _refused(name, cause)
    for cause in causes:
        if isinstance(cause, OSError) and cause.filename is not None:
            return f"the local cache cannot be used: {reason(cause)}", "set HF_HOME to a folder that can be written"
        if isinstance(cause, HFValidationError):
            return "that is no name the hub could have", "give a folder, or a repository as owner/name"
        if isinstance(cause, LocalEntryNotFoundError | OfflineModeIsEnabled | ConnectionError):
            return (
                "the hub cannot be reached, and no copy is in the local cache",
                "check the name or the connection, or give a folder",
            )
    return reason(error), "check the name or the connection"


def _refused(name: str, error: HfHubHTTPError) -> tuple[str, str]:
    """What the hub's answer means. It says 401 for what is not there as well, to those who are not logged in."""
    code = error.response.status_code
    if isinstance(error, GatedRepoError) and code == 401:
        return f"{code}: it is gated, and you are not logged in", f"ask for it at {_page(name)}, then 'hf auth login'"
    if isinstance(error, GatedRepoError):
        return f"{code}: it is gated, and your account has no access yet", f"ask for it at {_page(name)}"
    if isinstance(error, DisabledRepoError):
        return f"{code}: the hub has disabled it", "choose another"
    if isinstance(error, RepositoryNotFoundError):
        return f"{code}: there is none of that name, or it is private", "check the name, or log in with 'hf auth login'"
    if code == 401:
        return f"{code}: the hub does not accept your login", "log in again with 'hf auth login'"
    if code == 403:
        return f"{code}: your login may not read it", "log in with a token that may, with 'hf auth login'"
    if code == 404:
        return f"{code}: it lacks a file or revision that is needed", "check the name"
    if code == 429:
        return f"{code}: the hub asks to wait", "try again in a few minutes"
    return f"{code}: the hub has trouble", "try again later"


def _page(name: str) -> str:
    return f"https://huggingface.co/{name}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
