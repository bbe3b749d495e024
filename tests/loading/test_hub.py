"""What the hub's answers mean, in plain words; the hub's download call is a local fake."""

import httpx2
import pytest
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from eagle2.loading import hub
from eagle2.loading.hub import explained, fetch_head, unreachable

NAME = "somebody/head"


def answer(kind, code):
    url = f"https://huggingface.co/{NAME}"
    response = httpx2.Response(code, request=httpx2.Request("GET", url))
    return kind(f"{code} Client Error.\n\nCannot access {url}.", response=response)


ANSWERS = [
    (
        answer(GatedRepoError, 401),
        "401: it is gated, and you are not logged in",
        f"huggingface.co/{NAME}, then 'hf auth",
    ),
    (
        answer(GatedRepoError, 403),
        "403: it is gated, and your account has no access",
        f"at https://huggingface.co/{NAME}",
    ),
    (
        answer(RepositoryNotFoundError, 401),
        "401: there is none of that name, or it is private",
        "check the name, or log in",
    ),
    (
        answer(RepositoryNotFoundError, 404),
        "404: there is none of that name, or it is private",
        "check the name, or log in",
    ),
    (answer(RevisionNotFoundError, 404), "404: it lacks a file or revision", "check the name"),
    (answer(DisabledRepoError, 403), "403: the hub has disabled it", "choose another"),
    (answer(HfHubHTTPError, 401), "401: the hub does not accept your login", "log in again"),
    (answer(HfHubHTTPError, 403), "403: your login may not read it", "with a token that may"),
    (answer(HfHubHTTPError, 429), "429: the hub asks to wait", "try again in a few minutes"),
    (answer(HfHubHTTPError, 503), "503: the hub has trouble", "try again later"),
    (LocalEntryNotFoundError("no"), "the hub cannot be reached, and no copy is in the local cache", "or give a folder"),
    (OfflineModeIsEnabled("no"), "the hub cannot be reached, and no copy is in the local cache", "or give a folder"),
    (ConnectionResetError(104, "reset"), "the hub cannot be reached", "or give a folder"),
    (HFValidationError("bad"), "that is no name the hub could have", "a repository as owner/name"),
]


@pytest.mark.parametrize(
    ("error", "why", "advice"), ANSWERS, ids=[f"{type(e).__name__} {w[:4]}" for e, w, _ in ANSWERS]
)
def test_every_answer_has_its_sentence(monkeypatch, error, why, advice):
    def download(name: str, **_: object) -> str:
        raise error

    monkeypatch.setattr(hub, "snapshot_download", download)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the sentence is compared)
        fetch_head(NAME)
    told = str(caught.value)
    assert told.startswith(f"'{NAME}' is no folder here and could not be fetched from the hub ({why}")
    assert advice in told
    assert "\n" not in told


def test_what_transformers_wraps_is_found():
    wrapped = OSError("You are trying to access a gated repo.\nMake sure to have access to it.")
    wrapped.__cause__ = answer(GatedRepoError, 403)
    assert "(403: it is gated" in unreachable(NAME, wrapped)


def test_what_the_hub_said_counts_also_where_its_client_wraps_it():
    for code in (403, 429):
        wrapped = LocalEntryNotFoundError("nothing in the cache")
        wrapped.__cause__ = answer(HfHubHTTPError, code)
        assert explained(NAME, wrapped)[0].startswith(f"{code}: ")


def test_a_cache_that_cannot_be_used_is_told_with_the_way_out():
    why, advice = explained("a/b", PermissionError(13, "Permission denied", "/proc/nope"))
    assert "/proc/nope" in why
    assert "HF_HOME" in advice
