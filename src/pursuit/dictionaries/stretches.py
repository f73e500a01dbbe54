"""Which stretches of a recording, and which of the templates so far, templates are made of."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from pursuit.arrays import Small
from pursuit.atoms.events import Events

Random: TypeAlias = np.random.Generator

ALIKE = 0.85
"""A template is a copy of another if a translate of that one has at least this correlation with it."""


def by_worth(D: Small, events: Events) -> list[int]:
    """The templates that are used and no copies of others, the most valuable first: by what the objective would rise
    by without them, where others do in part what they do."""
    value = np.bincount(events.template, events.weight**2, len(D))
    kept: list[int] = []
    worth = np.zeros(len(D))
    for k in np.argsort(-value, kind="stable"):
        like = float(likeness(D[k], D[kept]).max(initial=0.0))
        if value[k] > 0 and like < ALIKE:
            kept.append(int(k))
            worth[k] = value[k] * (1.0 - like**2)
    return sorted(kept, key=lambda k: -worth[k])


def moved(d: Small, r: Small, events: Events) -> Small:
    """The template over the stretch around it that has most energy, where r says how it goes on outside its window.

    A template that was begun too early or too late so finds the end that it lacks.
    """
    length = d.shape[1]
    more = length // 2
    inside = (events.position >= more) & (events.position + length + more <= r.shape[1])
    w, position = events.weight[inside], events.position[inside]
    if not w.any():
        return d
    longer = np.einsum("e,cel->cl", w, r[:, position[:, None] + np.arange(-more, length + more)]) / float(w @ w)
    longer[:, more : more + length] += d
    energy = np.convolve((longer**2).sum(axis=0), np.ones(length), "valid")
    start = int(energy.argmax())
    return np.asarray(longer[:, start : start + length] / math.sqrt(float(energy[start])))


def likeness(a: Small, b: Small) -> Small:
    """The largest correlation of one template with a translate of the other, or of each of several others."""
    n = 2 * a.shape[1]
    c = np.fft.irfft((np.fft.rfft(a, n) * np.conj(np.fft.rfft(b, n))).sum(axis=-2), n)
    return np.asarray(np.abs(c).max(axis=-1))


def distinct_stretches(source: tuple[Small, Random], r: Small, known: list[Small], count: int, length: int) -> Small:
    """Stretches of the recording where r has much energy that are unlike the known ones, and unlike one another.

    `source` is the recording, and what makes noise where it is silent."""
    y, rng = source
    energy = np.convolve((r**2).sum(axis=0), np.ones(length), "valid")
    found, patience = list(known), ALIKE / 2
    places = np.argsort(-energy, kind="stable")
    free = np.ones(len(energy), bool)
    chosen: list[int] = []
    for p in places:  # local maxima of the energy, the loudest first
        if len(chosen) == 8 * count + 50:
            break
        if free[p]:
            chosen.append(int(p))
            free[max(0, p - length // 2) : p + length // 2 + 1] = False
    loud = [y[:, p : p + length] for p in chosen]
    stretches = [s / np.linalg.norm(s) for s in loud if s.any()]
    out: list[Small] = []
    while len(out) < count and patience < 2:
        for s in stretches:
            if len(out) < count and all(likeness(s, d) < patience for d in found):
                out.append(s)
                found.append(s)
        patience += 0.1
    while len(out) < count:
        noise = rng.standard_normal((len(y), length))
        out.append(noise / np.linalg.norm(noise))
    return np.stack(out)
