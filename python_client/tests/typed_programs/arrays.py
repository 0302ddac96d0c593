# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors as in a notebook: making, indexing, reducing, solving, NumPy."""

import numpy as np

import holdfast as torch
from holdfast import Tensor

a = torch.arange(12).reshape(3, 4).float()
b: Tensor = torch.linspace(0.0, 1.0, steps=4)
c = a[1:, ::2] + a[..., None].sum() * 2 - 1
a[0] = 3.0
a[a > 5] = torch.tensor(0.0)
mask = (a > 2) & ~(a < 1) | (a == 5)
values, indices = a.max(dim=1)
low, high = torch.aminmax(a)
ordered = torch.sort(b, descending=True)
print(ordered.values, ordered.indices, values.shape, mask.any().item())
square = a @ a.T + 3 * torch.eye(3)
u, s, vh = torch.linalg.svd(square, full_matrices=False)
x = torch.linalg.solve(square, torch.ones(3, 1))
l_factor = torch.linalg.cholesky(square + 50 * torch.eye(3))
print(torch.allclose(square @ x, torch.ones(3, 1), atol=1e-3), s.tolist()[0] > 0)
spectrum = torch.fft.rfft(b, n=8)
print(spectrum.abs().numpy().round(2), torch.special.expit(b))
array: np.ndarray = np.asarray(b)
shared = torch.from_numpy(np.ones((2, 2), dtype=np.float32))
both = torch.stack([shared, shared * 2]).permute(1, 2, 0).contiguous().view(2, -1)
top = torch.topk(both.flatten(), k=3)
print(array.sum(), both.tolist(), top.values.tolist(), len(both), float(both[0, 0]))
print(torch.where(b > 0.5, b, 0.0).std(), torch.var(b, dim=0, correction=0))
print(torch.einsum("ij,kj->ik", a, a).shape, torch.cdist(a, a).shape)
print(torch.quantile(b, 0.5).item(), b.long().bincount(), torch.unique(mask))
one, two = torch.randint(0, 5, (2,)).tolist()
size: tuple[int, ...] = a.shape
kind: torch.dtype = a.dtype
print(one + two >= 0, size, kind.is_floating_point, a.untyped_storage().nbytes())
print(torch.tensor([[1, 2], [3, 4]], dtype=torch.int64).sum(dim=0, keepdim=True))
