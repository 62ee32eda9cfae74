# SPDX-License-Identifier: Apache-2.0
"""Language models token by token."""

from __future__ import annotations

import operator
import os
import threading

from . import _pestle as c


def _ids_of(ids):
    """Ids as a list: integers, an array or another sequence of them."""
    if hasattr(ids, "tolist"):
        ids = ids.tolist()
    try:
        return [operator.index(i) for i in ids]
    except TypeError:
        raise TypeError(f"ids is {ids!r}, not a sequence of integers") from None


class Decoder:
    """A language model: ids in, ids out.

    path: a model, or a folder of onnxruntime-genai, whose genai_config.json says which ids
    end a text and how tokens are chosen.
    most: positions that a sequence may have; 0: 2048, or the model's context_length or the
    rows of its tables if these are less. room: positions that the caches have at first, which are doubled when a sequence
    passes them; 0: 256, or most where a token's cost does not follow it. slots: sequences
    that know nothing of each other. encoder: the file of a speech model's encoder, where no
    folder names it. device: where it runs.
    threads: of a run at most; 0: all. numerics: "default", "strict" or "fast".
    Threads take turns. Raises OSError for a path that is not there, NotImplementedError
    for a model that a decoder does not take, ValueError for numbers out of range, Error for bytes
    that are no model, and where a file that the path's own names is not there.

    Ten lines run one, the last of which shows tokens as they come:

        decoder = pt.Decoder("folder")
        for id in decoder.generate([1, 2, 3], 64, temperature=0.8, top_k=40, seed=7):
            print(id, flush=True)

    words: ids are 0 to words - 1. context: positions that the model was trained for; 0: not
    told. begin_id, pad_id: None where the model has none. end_ids: behind which a text ends.

    >>> pt.Decoder("nowhere")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'nowhere'
    """
    words: int
    most: int
    slots: int
    context: int
    begin_id: int | None
    pad_id: int | None
    end_ids: tuple[int, ...]

    def __init__(self, path: Any, *, most: int = 0, room: int = 0, slots: int = 1,
                 encoder: Any = None, device: device | str | None = None, threads: int = 0,
                 numerics: str = "default") -> None:
        if numerics not in ("default", "strict", "fast"):
            raise ValueError(f"numerics is {numerics!r}: 'default', 'strict' and 'fast' "
                             "are known")
        if slots < 1:
            raise ValueError(f"slots is {slots!r}: a decoder has one at least")
        if not 0 <= threads < 2**31:
            raise ValueError(f"threads is {threads!r}: 0 (all of the pool's) to 2147483647")
        # A number would be an open file's to stat().
        path = os.fspath(path)
        os.stat(path)
        if encoder is not None:
            encoder = os.fspath(encoder)
            os.stat(encoder)
        self._raw = c.RawDecoder(path, most, room, slots, device, threads, numerics, encoder)
        self._lock = threading.Lock()
        info = self._raw.info()
        self.words, self.most, self.slots = info["words"], info["most"], info["slots"]
        self.context, self.begin_id = info["context"], info["begin_id"]
        self.end_ids, self.pad_id = info["end_ids"], info["pad_id"]
        self._temperature, self._top_k, self._top_p = self._raw.sampling()

    def encode(self, features: Any, slot: int = 0) -> None:
        """Gives the encoder of a speech model its features, [1, mels, frames] or [mels,
        frames], an array or what asarray() takes. Tokens of the slot come behind, and look at
        what it makes of them until other features come: fork() shares it, cut(0) keeps it.

        Raises ValueError, before anything is changed, for a model without an encoder, for
        features of another shape than info()["features"], and where the slot has tokens.
        """
        with self._lock:
            self._raw.encode(features, slot)

    def feed(self, ids: Any, slot: int = 0) -> None:
        """Appends tokens to the sequence of a slot: a prompt, what follows one, or the token
        that was chosen. Afterwards logits() are those of what comes next.

        Raises ValueError, before anything is changed, for ids that the model has not, none
        at all, more than there is room for, and for a slot that is not there.
        """
        with self._lock:
            self._raw.feed(_ids_of(ids), slot)

    def feed_each(self, ids: dict[int, int]) -> None:
        """Appends one token to each of several slots, {slot: id}: by one run, which reads the
        weights once, where the model takes batches. Raises as feed() does."""
        with self._lock:
            self._raw.feed_each(_ids_of(ids), _ids_of(ids.values()))

    def prefill(self, ids: Any, slot: int = 0) -> None:
        """Makes the sequence of a slot what ids are, whatever it was: forgets it, and feeds
        ids. Raises as feed() does, and the slot stays what it was."""
        ids = _ids_of(ids)
        if not ids:
            raise ValueError("a prompt has one token at least")
        if len(ids) > self.most:
            raise ValueError(f"{len(ids)} tokens: the sequence has room for {self.most} positions")
        for i, id in enumerate(ids):
            if not 0 <= id < self.words:
                raise ValueError(f"id {id} at place {i} is none of the model's, which are 0 to "
                                 f"{self.words - 1}")
        with self._lock:
            self._raw.cut(slot, 0)
            self._raw.feed(ids, slot)

    def step(self, id: int | None = None, slot: int = 0, **how: Any) -> int:
        """Chooses the token that comes next, feeds it, and returns it. id: it instead of a
        choice. how: as choose() has it."""
        with self._lock:
            chosen = self._choose(slot, **how) if id is None else operator.index(id)
            self._raw.feed([chosen], slot)
        return chosen

    def logits(self, slot: int = 0) -> Array:
        """The float32 of each word for the token that comes next, an array that stays what
        it is. Raises ValueError where nothing was fed."""
        with self._lock:
            return self._raw.logits(slot)

    def choose(self, slot: int = 0, *, temperature: float | None = None,
               top_k: int | None = None, top_p: float | None = None, seed: int = 0) -> int:
        """The token that comes next, which is not fed.

        temperature: logits are divided by it; 0: the likeliest. top_k: among so many of the
        likeliest; 0: all. top_p: among the likeliest whose probabilities reach it; 0 or 1:
        all. None: what genai_config.json says, else the likeliest. seed: 0 to 2**64 - 1; the
        same seed, sequence and logits give the same token.
        Raises ValueError for numbers out of range, and where nothing was fed.
        """
        with self._lock:
            return self._choose(slot, temperature, top_k, top_p, seed)

    def _choose(self, slot, temperature=None, top_k=None, top_p=None, seed=0):
        return self._raw.choose(slot, self._temperature if temperature is None else temperature,
                                self._top_k if top_k is None else top_k,
                                self._top_p if top_p is None else top_p, seed)

    def generate(self, ids: Any, count: int = 64, *, slot: int = 0, end: Any = None,
                 **how: Any) -> Iterator[int]:
        """Yields the tokens behind a prompt as they are chosen, until one of end, which is
        the last one, or until there are count, or no room.

        ids: the prompt; None: what the slot has. end: an id or several; None: end_ids. how:
        as choose() has it. What was yielded stays in the slot but for the last token, which
        is not fed. Raises as prefill() does, before the first token is asked for.
        """
        ends = self.end_ids if end is None else _ids_of(end if hasattr(end, "__iter__") else [end])
        if ids is not None:
            self.prefill(ids, slot)
        return self._generate(count, slot, frozenset(ends), how)

    def _generate(self, count, slot, ends, how):
        for i in range(count):
            id = self.choose(slot, **how)
            yield id
            if id in ends or i + 1 == count or self.length(slot) == self.most:
                return
            self.feed([id], slot)

    def length(self, slot: int = 0) -> int:
        """How many tokens the sequence of a slot has."""
        with self._lock:
            return self._raw.length(slot)

    def cut(self, length: int, slot: int = 0) -> None:
        """Forgets all tokens of a slot from place length on, and the logits."""
        with self._lock:
            self._raw.cut(slot, length)

    def fork(self, slot: int, to: int) -> None:
        """Makes slot to what slot is, at the cost of a copy of the rows in use."""
        with self._lock:
            self._raw.fork(slot, to)

    def save(self, path: Any, slot: int = 0) -> None:
        """Writes the sequence of a slot to a file."""
        with self._lock:
            self._raw.save(slot, os.fspath(path))

    def load(self, path: Any, slot: int = 0) -> None:
        """Reads what save() wrote. Raises Error for what is no such file, or of another
        model or another number of positions; the slot is then as it was."""
        with self._lock:
            self._raw.load(slot, os.fspath(path))

    def info(self) -> dict[str, Any]:
        """What it has and what it counted, a dict: room, caches, caches_in_place,
        caches_bounded, cache_bytes, token_bytes, weight_bytes, compiles, compile_ns, compiles_ahead,
        waits ... (pestle/decode.h says what each is)."""
        with self._lock:
            return self._raw.info()
