"""A matching-pursuit autoencoder beside TopK: the time of a training step, and what each leaves of random activations.

The encoder of TopK is a matrix; that of matching pursuit is `encode`. Orthogonal pursuits have the best weights for
their atoms, so the loss is flat in them: its gradient for D is that with constant codes (the envelope theorem).
"""

import time
from typing import Any

import torch

import pursuit as ps


class Pursuit(torch.nn.Module):
    def __init__(self, D: Any, k: int) -> None:
        super().__init__()
        self.D, self.k = torch.nn.Parameter(D.clone()), k

    def forward(self, Y: Any) -> Any:
        return ps.encode(self.D.detach(), Y, atoms=self.k).to_dense() @ self.D.T


class TopK(Pursuit):
    def __init__(self, D: Any, k: int) -> None:
        super().__init__(D, k)
        self.E = torch.nn.Parameter(D.clone())

    def forward(self, Y: Any) -> Any:
        values, atoms = (Y @ self.E).topk(self.k, dim=1)
        return torch.zeros(len(Y), self.D.shape[1], device=Y.device).scatter(1, atoms, values.relu()) @ self.D.T


def train(model: Any, Y: Any, batch: int, steps: int) -> tuple[float, float]:
    """Milliseconds of a step, and the share of the energy of the last batch that is not explained."""
    optimiser, synchronize = torch.optim.Adam(model.parameters(), 1e-3), torch.cuda.synchronize if Y.is_cuda else int
    for step in range(steps):
        if step == steps // 4:  # after all has been compiled
            synchronize()
            began = time.perf_counter()
        some = Y[torch.arange(step * batch, (step + 1) * batch, device=Y.device) % len(Y)]
        loss = (some - model(some)).square().sum() / some.square().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            model.D /= model.D.norm(dim=0)
    synchronize()
    return 1e3 * (time.perf_counter() - began) / (steps - steps // 4), float(loss.detach())


def rows(d: int, n: int, k: int, batch: int, steps: int, device: str) -> list[str]:
    torch.manual_seed(0)
    atoms, D = (torch.nn.functional.normalize(torch.randn(d, n, device=device), dim=0) for _ in range(2))
    active = torch.rand(8 * batch, n, device=device).topk(k).indices
    Y = torch.zeros(8 * batch, n, device=device).scatter(1, active, 1.0) @ atoms.T
    results = [(kind.__name__, *train(kind(D, k), Y, batch, steps)) for kind in (TopK, Pursuit)]
    return [f"| {name} | {batch:,}, {d} x {n}, {k} | {ms:.2f} | {lost:.3f} |" for name, ms, lost in results]
