# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A graph convolutional network over sparse.mm on a small random graph."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter
from torch.nn.modules.module import Module


def normalize_adjacency(edges, count):
    """D^-1/2 (A + I) D^-1/2 as a sparse tensor."""
    rows = np.concatenate([edges[:, 0], edges[:, 1], np.arange(count)])
    cols = np.concatenate([edges[:, 1], edges[:, 0], np.arange(count)])
    indices = torch.from_numpy(np.stack([rows, cols]).astype(np.int64))
    values = torch.ones(indices.shape[1])
    adjacency = torch.sparse_coo_tensor(indices, values, (count, count)).coalesce()
    degree = torch.sparse.sum(adjacency, dim=1).to_dense()
    scale = degree.pow(-0.5)
    i, v = adjacency.indices(), adjacency.values()
    return torch.sparse.FloatTensor(i, v * scale[i[0]] * scale[i[1]], adjacency.shape)


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)

    def reset_parameters(self, rng):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        drawn = rng.uniform(-stdv, stdv, tuple(self.weight.size()))
        self.weight.data = torch.tensor(drawn, dtype=torch.float)
        if self.bias is not None:
            self.bias.data.fill_(0.05)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.in_features} -> {self.out_features})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super(GCN, self).__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)


rng = np.random.RandomState(0)
nodes, classes = 40, 3
labels = torch.from_numpy(np.arange(nodes) % classes)
pairs = rng.randint(0, nodes, (400, 2))
same = labels.numpy()[pairs[:, 0]] == labels.numpy()[pairs[:, 1]]
edges = pairs[same | (rng.rand(400) < 0.1)]
adj = normalize_adjacency(edges, nodes)
print(adj.is_sparse, adj.shape, adj._nnz() == adj.coalesce().values().numel())
features = torch.FloatTensor(rng.randn(nodes, 8))
features[:, 0] += labels.float()
model = GCN(8, 6, classes, dropout=0.0)
model.gc1.reset_parameters(rng)
model.gc2.reset_parameters(rng)
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
idx_train, idx_val = torch.arange(0, 20), torch.arange(20, 40)
for epoch in range(6):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    model.eval()
    loss_val = F.nll_loss(model(features, adj)[idx_val], labels[idx_val])
    print(
        "Epoch: {:04d}".format(epoch + 1),
        "loss_train: {:.4f}".format(loss_train.item()),
        "acc_train: {:.4f}".format(
            accuracy(output[idx_train], labels[idx_train]).item()
        ),
        "loss_val: {:.4f}".format(loss_val.item()),
    )
two_steps = torch.sparse.mm(adj, adj).to_dense()
print("two steps", two_steps.sum().item(), (adj.t() @ features).norm().item())
weights = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
matrix = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], weights, (2, 3))
(torch.sparse.mm(matrix, torch.eye(3)) ** 2).sum().backward()
print("gradient of values", weights.grad.tolist())
