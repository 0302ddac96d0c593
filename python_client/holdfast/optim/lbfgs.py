# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""L-BFGS (Nocedal & Wright 2006, chapters 3 and 7)."""

import holdfast

from .optimizer import Optimizer


class LBFGS(Optimizer):
    """A quasi-Newton method for one group of parameters; `step` takes a closure.

    It reads the loss and some products of every iteration, and so waits.
    line_search_fn is None (steps of lr) or "strong_wolfe".
    """

    def __init__(
        self,
        params,
        lr: float = 1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups)"
            )
        self._params = self.param_groups[0]["params"]

    # ---- all parameters as one vector

    def _flat_gradient(self):
        parts = [
            holdfast.zeros(p.numel(), dtype=p.dtype) if p.grad is None else p.grad
            for p in self._params
        ]
        return holdfast.cat([part.reshape(-1) for part in parts])

    def _move(self, size, direction):
        offset = 0
        for p in self._params:
            part = direction[offset : offset + p.numel()]
            p.add_(part.view_as(p), alpha=size)
            offset += p.numel()

    def _values(self):
        return [p.clone() for p in self._params]

    def _set_values(self, values):
        for p, value in zip(self._params, values):
            p.copy_(value)

    def _evaluate(self, closure):
        with holdfast.enable_grad():
            loss = float(closure())
        return loss, self._flat_gradient()

    # ---- the step

    @holdfast.no_grad()
    def step(self, closure):
        """Up to max_iter iterations; returns the loss before the first."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with holdfast.enable_grad():
            first = closure()
        loss, gradient = float(first), self._flat_gradient()
        evaluations = 1
        state["func_evals"] += 1
        if gradient.abs().max().item() <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(group, state, gradient)
            state["prev_flat_grad"] = gradient
            before = loss
            size = group["lr"]
            if state["n_iter"] == 1:
                size = min(1.0, 1.0 / gradient.abs().sum().item()) * size
            slope = gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] == "strong_wolfe":
                start = self._values()

                def at(size, direction=direction, start=start):
                    self._move(size, direction)
                    result = self._evaluate(closure)
                    self._set_values(start)
                    return result

                loss, gradient, size, used = strong_wolfe(
                    at, size, direction, loss, gradient, slope
                )
                self._move(size, direction)
            else:
                self._move(size, direction)
                if iteration != group["max_iter"]:
                    loss, gradient = self._evaluate(closure)
                    used = 1
            state["d"], state["t"] = direction, size
            evaluations += used
            state["func_evals"] += used
            if evaluations >= group["max_eval"] or (
                gradient.abs().max().item() <= group["tolerance_grad"]
            ):
                break
            if (direction * size).abs().max().item() <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _direction(self, group, state, gradient):
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"] = [], [], []
            state["H_diag"] = 1.0
            return -gradient
        y = gradient - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        ys = y.dot(s).item()
        if ys > 1e-10:
            if len(dirs) == group["history_size"]:
                for memory in (dirs, steps, ro):
                    memory.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y).item()
        # The two loops of algorithm 7.4, without a read in either.
        q = -gradient
        weights = [None] * len(dirs)
        for i in reversed(range(len(dirs))):
            weights[i] = steps[i].dot(q) * ro[i]
            q = q - weights[i] * dirs[i]
        r = q * state["H_diag"]
        for i in range(len(dirs)):
            r = r + steps[i] * (weights[i] - dirs[i].dot(r) * ro[i])
        return r


def cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points and slopes is least, within bounds."""
    low, high = bounds if bounds is not None else sorted((x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(least, low), high)


def strong_wolfe(
    at, t, direction, f, g, slope, c1=1e-4, c2=0.9, tolerance=1e-9, most=25
):
    """A step size that satisfies the strong Wolfe conditions.

    Algorithms 3.5 and 3.6. `at(t)` gives loss and gradient. Returns loss,
    gradient, size and the number of evaluations.
    """
    width = direction.abs().max().item()
    points = [(0.0, f, g, slope)]

    def look(t):
        loss, gradient = at(t)
        return t, loss, gradient, gradient.dot(direction).item()

    new = look(t)
    evaluations = 1
    bracket = None
    for rounds in range(most):
        last = points[-1]
        if new[1] > f + c1 * new[0] * slope or (rounds > 0 and new[1] >= last[1]):
            bracket = [last, new]
            break
        if abs(new[3]) <= -c2 * slope:
            return new[1], new[2], new[0], evaluations
        if new[3] >= 0:
            bracket = [last, new]
            break
        least, most_t = new[0] + 0.01 * (new[0] - last[0]), new[0] * 10
        t = cubic_minimum(
            last[0], last[1], last[3], new[0], new[1], new[3], (least, most_t)
        )
        points.append(new)
        new = look(t)
        evaluations += 1
    if bracket is None:
        bracket = [points[0], new]
    # Between the two: the better end is `low`.
    stuck = False
    low, high = sorted(bracket, key=lambda point: point[1])
    while evaluations < most:
        ends = sorted((low[0], high[0]))
        if (ends[1] - ends[0]) * width < tolerance:
            break
        t = cubic_minimum(low[0], low[1], low[3], high[0], high[1], high[3])
        margin = 0.1 * (ends[1] - ends[0])
        if min(ends[1] - t, t - ends[0]) < margin:
            if stuck or t >= ends[1] or t <= ends[0]:
                near_high = abs(t - ends[1]) < abs(t - ends[0])
                t = ends[1] - margin if near_high else ends[0] + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = look(t)
        evaluations += 1
        if new[1] > f + c1 * new[0] * slope or new[1] >= low[1]:
            high = new
            if low[1] > high[1]:
                low, high = high, low
            continue
        if abs(new[3]) <= -c2 * slope:
            low = new
            break
        if new[3] * (high[0] - low[0]) >= 0:
            high = low
        low = new
    return low[1], low[2], low[0], evaluations
