# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch-geometric: layers over graphs, by its scatters in plain PyTorch."""

import pytest
import torch

geometric = pytest.importorskip("torch_geometric")

from three_steps import assert_near, compare, to  # noqa: E402

nn = geometric.nn

LAYERS = {
    "arma": lambda: nn.ARMAConv(6, 4),
    "cheb": lambda: nn.ChebConv(6, 4, K=2),
    "edge": lambda: nn.EdgeConv(torch.nn.Linear(12, 4)),
    "gat": lambda: nn.GATConv(6, 4, heads=2),
    "gatv2": lambda: nn.GATv2Conv(6, 4, heads=2),
    "gcn": lambda: nn.GCNConv(6, 4),
    "gin": lambda: nn.GINConv(torch.nn.Linear(6, 4)),
    "graph": lambda: nn.GraphConv(6, 4, aggr="max"),
    "sage": lambda: nn.SAGEConv(6, 4),
    "sg": lambda: nn.SGConv(6, 4, K=2),
    "tag": lambda: nn.TAGConv(6, 4),
    "transformer": lambda: nn.TransformerConv(6, 4, heads=2),
}


class Graphs(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.out = torch.nn.LazyLinear(3)

    def forward(self, x, edges, batch):
        return self.out(nn.global_mean_pool(torch.tanh(self.layer(x, edges)), batch))


def graph():
    edges = torch.randint(10, (2, 30))
    edges = edges[:, edges[0] != edges[1]]
    batch = torch.tensor([0] * 6 + [1] * 4)
    return [torch.randn(10, 6), edges, batch]


@pytest.mark.parametrize("name", LAYERS)
def test_training(device, name):
    model, batch = Graphs(LAYERS[name]()), graph()
    model(*batch)  # the last layer's size
    compare(model, batch, device)


def test_batches_and_functions(device):
    data = [
        geometric.data.Data(x=torch.randn(4, 3), edge_index=torch.randint(4, (2, 6)))
        for _ in range(3)
    ]
    batch = next(iter(geometric.loader.DataLoader(data, batch_size=3)))
    there = batch.clone().to(device)
    assert there.x.device.type == device and there.num_graphs == 3
    for name in ("global_add_pool", "global_max_pool", "global_mean_pool"):
        function = getattr(nn, name)
        assert_near(function(there.x, there.batch), function(batch.x, batch.batch))
    utils = geometric.utils
    edges, moved = batch.edge_index, there.edge_index
    assert_near(utils.degree(moved[0], 12), utils.degree(edges[0], 12))
    assert_near(utils.coalesce(moved), utils.coalesce(edges))
    assert_near(utils.to_undirected(moved), utils.to_undirected(edges))
    assert_near(
        utils.softmax(there.x[:, 0], there.batch),
        utils.softmax(batch.x[:, 0], batch.batch),
    )
    assert_near(
        utils.to_dense_adj(moved, there.batch), utils.to_dense_adj(edges, batch.batch)
    )
    assert_near(to(batch.x, device), batch.x)
