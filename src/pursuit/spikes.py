"""Template matching of SpikeInterface by matching pursuit: after `register()`, its method "pursuit".

    from spikeinterface.sortingcomponents.matching import find_spikes_from_templates
    from pursuit.spikes import register
    register()
    spikes = find_spikes_from_templates(recording, templates, method="pursuit")

SpikeInterface cuts the recording into chunks, and `encode` finds the events of a chunk, one at a time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pursuit.atoms.convolutional import Convolutional
from pursuit.coding import encode

PARAMETERS = """
    threshold : float, default: 10.0
        A spike must lower the squared residual by this many times the mean square of the noise.
    prior : float, default: 10.0
        How much amplitudes other than 1 cost; see pursuit.encode.
    bounds : tuple, default: (0.5, 2.0)
        The least and the largest amplitude.
    rank : int or float, default: 0.001
        Templates are approximated by this many products of channels and time; below 1: they may lose this fraction of
        their energy.
    visibility : float, default: 0.25
        A channel belongs to a dense template where it reaches this many noise levels from peak to peak.
    refractory_ms : float, default: 0.5
        Two spikes of one template are further apart than this.
    noise_levels : array or None
        Of every channel; None: estimated from the recording.
"""

LOSS = 1e-4
"""The samples at either end of all templates that hold less than this fraction of the energy of each are left out."""


def register() -> None:
    """Add the method "pursuit" to those of SpikeInterface."""
    from spikeinterface.sortingcomponents.matching.method_list import matching_methods

    matching_methods["pursuit"] = matching_method()


@cache
def matching_method() -> Any:
    """The class of the method, a subclass of SpikeInterface's, which must be installed."""
    from spikeinterface.core import get_noise_levels
    from spikeinterface.sortingcomponents.matching.base import BaseTemplateMatching, _base_matching_dtype

    class PursuitMatching(BaseTemplateMatching):  # type: ignore[misc]
        """Matching pursuit over all translates of the templates."""

        name = "pursuit"
        need_noise_levels = False
        need_first_call_before_pipeline = False
        params_doc = PARAMETERS

        def __init__(self, recording: Any, templates: Any, return_output: bool = True, **options: Any) -> None:
            BaseTemplateMatching.__init__(self, recording, templates, return_output=return_output)
            given: dict[str, Any] = {"threshold": 10.0, "prior": 10.0, "bounds": (0.5, 2.0), "rank": 1e-3,
                     "visibility": 0.25, "refractory_ms": 0.5, "noise_levels": None}  # fmt: skip
            unknown = set(options) - set(given)
            if unknown:
                raise TypeError(f"{min(unknown)} is no parameter of this method; give one of {', '.join(given)}.")
            given |= options
            noise = given["noise_levels"]
            noise = np.asarray(get_noise_levels(recording, return_in_uV=False) if noise is None else noise)
            dense = np.asarray(templates.get_dense_templates(), dtype=np.float64)
            on = _channels(templates, dense, given["visibility"] * noise)
            first, stop = _samples(dense)
            waveforms = [w[first:stop, c].T for w, c in zip(dense, on, strict=True)]
            self.atoms = Convolutional(waveforms, channels=on, rank=given["rank"])
            self.main = np.abs(dense).max(axis=1).argmax(axis=1)
            self.count, self.nbefore, self.width = dense.shape[2], templates.nbefore - first, stop - first
            refractory = int(given["refractory_ms"] * 1e-3 * recording.get_sampling_frequency())
            self.options: dict[str, Any] = {
                "method": "mp", "threshold": given["threshold"] * float(np.mean(noise**2)), "prior": given["prior"],
                "bounds": given["bounds"], "refractory": refractory, "n_jobs": 1,
            }  # fmt: skip

        def get_margin(self) -> int:
            return 3 * int(self.width)

        def compute_matching(self, traces: Any, start_frame: int, end_frame: int, segment_index: int) -> Any:
            spikes = np.zeros(0, _base_matching_dtype)
            if len(traces) < self.width:
                return spikes
            events = encode(self.atoms.on((self.count, len(traces))), traces.T, **self.options)
            spikes = np.zeros(len(events), _base_matching_dtype)
            spikes["sample_index"] = events.position + self.nbefore
            spikes["cluster_index"] = events.template
            spikes["channel_index"] = self.main[events.template]
            spikes["amplitude"] = events.weight
            return spikes

    PursuitMatching.__module__, PursuitMatching.__qualname__ = __name__, "PursuitMatching"
    return PursuitMatching


def _channels(templates: Any, dense: Any, least: Any) -> list[Any]:
    """The channels of every template: those it says, or those where it can be seen; the largest one in any case."""
    seen = templates.sparsity.mask if templates.are_templates_sparse() else np.ptp(dense, axis=1) >= least
    seen = seen & dense.any(axis=1)
    seen[np.arange(len(dense)), np.ptp(dense, axis=1).argmax(axis=1)] = True
    return [np.flatnonzero(row) for row in seen]


def _samples(dense: Any) -> tuple[int, int]:
    """Where all templates begin and end, less the stretches at both ends where each has but LOSS of its energy."""
    energy = (dense**2).sum(axis=2)
    before, after = (np.cumsum(e, axis=1) > LOSS * energy.sum(axis=1, keepdims=True) for e in (energy, energy[:, ::-1]))
    return int(before.argmax(axis=1).min()), dense.shape[1] - int(after.argmax(axis=1).min())


def __getattr__(name: str) -> Any:
    if name == "PursuitMatching":  # so that other processes find the class, which is made at the first use
        return matching_method()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
