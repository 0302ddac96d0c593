# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: what training loops do with weights and gradients."""

from autograd_program import leaf, program, ramp


def network(torch, *sizes, seed=0):
    """Linear layers and tanh, with weights that both packages agree on."""
    layers = []
    for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
        linear = torch.nn.Linear(n, m).double()
        with torch.no_grad():
            linear.weight.copy_((ramp(torch, m, n) * (3 + seed) + i).sin())
            linear.bias.copy_(ramp(torch, m) / 2)
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


@program
def gan_step(torch):
    generator = network(torch, 2, 4, 3)
    critic = network(torch, 3, 4, 1, seed=1)
    g_opt = torch.optim.SGD(generator.parameters(), lr=0.1)
    d_opt = torch.optim.Adam(critic.parameters(), lr=0.01)
    loss = torch.nn.BCEWithLogitsLoss()
    noise, real = ramp(torch, 6, 2), ramp(torch, 6, 3, start=0, end=2)
    ones, zeros = torch.ones(6, 1).double(), torch.zeros(6, 1).double()
    for _ in range(2):
        fake = generator(noise)
        d_opt.zero_grad()
        d_loss = loss(critic(real), ones) + loss(critic(fake.detach()), zeros)
        d_loss.backward()
        untouched = all(p.grad is None for p in generator.parameters())
        d_opt.step()
        g_opt.zero_grad()
        g_loss = loss(critic(fake), ones)
        g_loss.backward()
        g_opt.step()
        g_opt.zero_grad(set_to_none=True)
    return d_loss, g_loss, untouched, weights(generator), weights(critic)


@program
def gradient_penalty(torch):
    critic = network(torch, 3, 5, 1)
    real, fake = ramp(torch, 4, 3), ramp(torch, 4, 3, start=2, end=-1)
    mix = ramp(torch, 4, 1, start=0, end=1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    out = critic(between)
    (g,) = torch.autograd.grad(out, between, torch.ones_like(out), create_graph=True)
    penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
    (critic(fake).mean() - critic(real).mean() + 10 * penalty).backward()
    return penalty, [p.grad for p in critic.parameters()]


@program
def wgan_clipping(torch):
    critic = network(torch, 3, 4, 1)
    opt = torch.optim.SGD(critic.parameters(), lr=2.0)
    for _ in range(2):
        opt.zero_grad()
        (-critic(ramp(torch, 5, 3)).mean()).backward()
        opt.step()
        for p in critic.parameters():
            p.data.clamp_(-0.3, 0.3)
    return weights(critic), all(p.requires_grad for p in critic.parameters())


@program
def average_of_weights(torch):
    model, average = network(torch, 2, 3, 1), network(torch, 2, 3, 1)
    for p in average.parameters():
        p.requires_grad_(False)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        opt.zero_grad()
        model(ramp(torch, 4, 2)).pow(2).mean().backward()
        opt.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):
                slow.mul_(0.9).add_(fast, alpha=0.1)
    return weights(average), average(ramp(torch, 4, 2)).requires_grad


@program
def dqn_target_network(torch):
    online, target = network(torch, 3, 4, 2), network(torch, 3, 4, 2, seed=2)
    states, after = ramp(torch, 5, 3), ramp(torch, 5, 3, start=1, end=-1)
    actions = torch.tensor([0, 1, 1, 0, 1])
    reward = ramp(torch, 5)
    opt = torch.optim.SGD(online.parameters(), lr=0.05)
    for step in range(4):
        q = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            goal = reward + 0.9 * target(after).max(1)[0]
        loss = torch.nn.functional.smooth_l1_loss(q, goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2:
            with torch.no_grad():
                for a, b in zip(target.parameters(), online.parameters()):
                    a.copy_(b)
    return loss, weights(target)


@program
def policy_gradient(torch):
    policy = network(torch, 3, 4, 2)
    states = ramp(torch, 6, 3)
    actions = torch.tensor([0, 1, 0, 0, 1, 1])
    log_prob = policy(states).log_softmax(-1)[torch.arange(6), actions]
    returns = torch.zeros(6, dtype=torch.float64)
    running = 0.0
    for t in reversed(range(6)):
        running = (t % 3) + 0.9 * running
        returns[t] = running
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    loss = -(log_prob * returns).sum()
    loss.backward()
    return loss, [p.grad for p in policy.parameters()]


@program
def actor_and_critic(torch):
    body, actor, critic = (
        network(torch, 3, 4),
        network(torch, 4, 2, seed=1),
        network(torch, 4, 1, seed=2),
    )
    features = body(ramp(torch, 5, 3)).tanh()
    value = critic(features).squeeze(-1)
    advantage = (ramp(torch, 5) - value).detach()
    probabilities = actor(features).softmax(-1)
    entropy = -(probabilities * probabilities.log()).sum(-1).mean()
    loss = -(probabilities[:, 0].log() * advantage).mean() - 0.01 * entropy
    loss = loss + 0.5 * (value - ramp(torch, 5)).pow(2).mean()
    loss.backward()
    every = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    return loss, [p.grad for p in every]


@program
def tied_weights(torch):
    embedding = torch.nn.Embedding(5, 3).double()
    head = torch.nn.Linear(3, 5, bias=False).double()
    with torch.no_grad():
        embedding.weight.copy_(ramp(torch, 5, 3))
    head.weight = embedding.weight
    tokens = torch.tensor([[0, 3], [4, 3]])
    logits = head(embedding(tokens).mean(1))
    torch.nn.functional.cross_entropy(logits, torch.tensor([1, 2])).backward()
    return embedding.weight.grad, head.weight.grad is embedding.weight.grad


@program
def clipped_gradients(torch):
    model = network(torch, 3, 4, 1)
    (model(ramp(torch, 5, 3)) * 50).pow(2).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    clipped = [p.grad.clone() for p in model.parameters()]
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
    return norm, clipped, [p.grad for p in model.parameters()]


@program
def frozen_layers(torch):
    model = network(torch, 3, 4, 4, 1)
    for p in model[2].parameters():
        p.requires_grad = False
    trained = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.Adam(trained, lr=0.1)
    before = weights(model[2])
    for step in range(3):
        if step == 2:
            for p in model[2].parameters():
                p.requires_grad = True
        opt.zero_grad()
        model(ramp(torch, 5, 3)).pow(2).sum().backward()
        opt.step()
    have = [p.grad is not None for p in model.parameters()]
    return have, before, weights(model)


@program
def accumulated_batches(torch):
    model = network(torch, 2, 3, 1)
    data = ramp(torch, 8, 2)
    model(data).pow(2).mean().backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for batch in data.split(2):
        (model(batch).pow(2).mean() / 4).backward()
    return whole, [p.grad for p in model.parameters()]


@program
def adversarial_example(torch):
    model = network(torch, 3, 4, 2)
    x = ramp(torch, 4, 3).requires_grad_()
    target = torch.tensor([0, 1, 1, 0])
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(x), target)
        (g,) = torch.autograd.grad(loss, x)
        with torch.no_grad():
            x += 0.1 * g.sign()
            x.clamp_(-1, 1)
    untouched = all(p.grad is None for p in model.parameters())
    return x, loss, untouched


@program
def losses_balanced_by_their_gradients(torch):
    shared, a, b = leaf(torch, 3), leaf(torch, 3), leaf(torch, 3)
    h = shared.tanh()
    losses = [(h * a).pow(2).sum(), (h + b).pow(2).sum()]
    norms = [
        torch.autograd.grad(loss, h, retain_graph=True)[0].norm() for loss in losses
    ]
    sum(loss / norm for loss, norm in zip(losses, norms)).backward()
    return norms, shared.grad, a.grad, b.grad


@program
def teacher_and_student(torch):
    teacher, student = network(torch, 3, 4, 2), network(torch, 3, 2, seed=3)
    functional = torch.nn.functional
    x = ramp(torch, 5, 3)
    with torch.no_grad():
        soft = functional.softmax(teacher(x) / 2, -1)
    log = functional.log_softmax(student(x) / 2, -1)
    functional.kl_div(log, soft, reduction="batchmean").backward()
    return [p.grad for p in student.parameters()], [
        p.grad is None for p in teacher.parameters()
    ]


@program
def reparameterised_sampling(torch):
    mean, log_var = leaf(torch, 4), leaf(torch, 4, start=-2, end=0)
    noise = ramp(torch, 4, start=-0.7, end=1.1)
    z = mean + noise * (0.5 * log_var).exp()
    kl = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum()
    ((z.sigmoid() - 0.3).pow(2).sum() + kl).backward()
    return z, kl, mean.grad, log_var.grad


@program
def batch_norm_modes(torch):
    norm = torch.nn.BatchNorm1d(3).double()
    x = leaf(torch, 6, 3)
    (norm(x) * ramp(torch, 6, 3)).sum().backward()
    trained = x.grad.clone()
    norm.eval()
    x.grad = None
    norm(x).pow(2).sum().backward()
    return trained, x.grad, norm.running_mean, norm.running_var, norm.weight.grad


@program
def checkpointed_by_hand(torch):
    w = leaf(torch, 3, 3)

    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, run, x):
            ctx.run = run
            ctx.save_for_backward(x)
            return run(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                again = x.detach().requires_grad_()
                y = ctx.run(again)
            y.backward(g)  # also into w
            return None, again.grad

    x = leaf(torch, 3)
    y = x
    for _ in range(3):
        y = Checkpoint.apply(lambda t: (w @ t).tanh(), y)
    y.sum().backward()
    return y, x.grad, w.grad


@program
def sharpness_aware_step(torch):
    model = network(torch, 2, 3, 1)
    x = ramp(torch, 4, 2)
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        moves = [p.grad * 0.05 for p in model.parameters()]
        for p, move in zip(model.parameters(), moves):
            p.add_(move)
    model.zero_grad()
    model(x).pow(2).mean().backward()
    with torch.no_grad():
        for p, move in zip(model.parameters(), moves):
            p.sub_(move)
            p.add_(p.grad, alpha=-0.1)
    return weights(model)


@program
def spectral_normalisation_by_hand(torch):
    w = leaf(torch, 4, 3)
    u = torch.ones(4, dtype=torch.float64)
    for _ in range(3):
        with torch.no_grad():
            v = torch.nn.functional.normalize(w.t() @ u, dim=0)
            u = torch.nn.functional.normalize(w @ v, dim=0)
    sigma = u @ w @ v
    ((w / sigma) ** 2).sum().backward()
    return sigma, w.grad
