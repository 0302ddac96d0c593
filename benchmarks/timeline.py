# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A training step of ResNet-50 on two timelines: submitted, and executed.

Writes a Chrome trace (open it in ui.perfetto.dev) and a picture of the step. A
program that only submits is done long before the daemon is: that is what lets
it be Python.
"""

import os
import statistics
import sys

import daemon
import report

# Phases in the picture's order, and their colours.
COLOURS = {
    "forward": "#3b6fb6",
    "backward": "#c8553d",
    "optimizer": "#4f9d69",
    "wait for the loss": "#c9c9c9",
}
ARROWS = 24  # from submissions to executions; more would hide the picture


def train(torch, batch, size, steps):
    """Profiles of `steps` training steps after one that warms up."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "models"))
    import resnet

    torch.manual_seed(0)
    model = resnet.resnet50(classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, size, size)
    labels = torch.randint(0, 10, (batch,))
    profiles = []
    for _ in range(1 + steps):
        torch.synchronize()
        with torch.profiler.profile(record_shapes=True) as prof:
            with torch.profiler.record_function("forward"):
                loss = torch.nn.functional.cross_entropy(model(images), labels)
            with torch.profiler.record_function("backward"):
                loss.backward()
            with torch.profiler.record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            with torch.profiler.record_function("wait for the loss"):
                loss.item()
        profiles.append(prof)
    return profiles[1:]


def phases(events):
    """{phase: its range event}."""
    return {e.name: e for e in events if e.is_user_annotation}


def figures(prof):
    """Milliseconds: until all was submitted, until all was executed; commands."""
    events = prof.events()
    ranges = phases(events)
    begin = ranges["forward"].time_range.start
    ran = [e for e in events if not e.is_user_annotation]
    commands = [e for e in ran if e.submit_range is not None]
    submitted = ranges["optimizer"].time_range.end - begin
    executed = max(e.time_range.end for e in ran) - begin
    return submitted / 1e3, executed / 1e3, len(commands)


def executions(events, joined):
    """[(phase, start, end)] in ms: what the daemon ran; `joined`: neighbours of a
    phase as one, since a picture of the whole step cannot show each."""
    bars = []
    for e in events:
        top = e
        while top.cpu_parent is not None:
            top = top.cpu_parent
        if e.is_user_annotation or e.cpu_children or top.name not in COLOURS:
            continue
        start, end = e.time_range.start / 1e3, e.time_range.end / 1e3
        near = bars and bars[-1][0] == top.name and start - bars[-1][2] < 0.02
        if joined and near:
            bars[-1][2] = max(end, bars[-1][2])
        else:
            bars.append([top.name, start, end])
    return bars


def draw(prof, path, title):
    """The step as two lanes, client above daemon; below, its beginning alone."""
    import matplotlib

    matplotlib.use("agg")
    # The same picture for the same step: no random ids, no date.
    matplotlib.rcParams["svg.hashsalt"] = "holdfast"
    from matplotlib import pyplot

    events = prof.events()
    ranges = phases(events)
    begin = ranges["forward"].time_range.start / 1e3
    submitted, executed, _ = figures(prof)
    figure, panels = pyplot.subplots(
        2, 1, figsize=(10, 5.2), gridspec_kw={"hspace": 0.6}
    )
    sent = [e for e in events if e.submit_range and not e.is_user_annotation]
    titles = (title, "Its beginning: the client runs ahead")
    limits = (executed * 1.01, min(submitted * 12, executed))
    for axes, limit, text in zip(panels, limits, titles):
        whole = axes is panels[0]
        for name, event in ranges.items():
            start, end = (t / 1e3 - begin for t in event.time_range)
            axes.broken_barh([(start, end - start)], (2, 0.8), color=COLOURS[name])
        for name, start, end in executions(events, joined=whole):
            if start - begin < limit:
                axes.broken_barh(
                    [(start - begin, end - start)],
                    (0, 0.8),
                    facecolor=COLOURS[name],
                    edgecolor=COLOURS[name] if whole else "white",
                    linewidth=0.4,
                )
        axes.set_yticks([0.4, 2.4], ["holdfastd\nexecutes", "client\nsubmits"])
        axes.set_ylim(-0.2, 3)
        axes.set_xlabel("milliseconds")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, limit)
        axes.set_title(text, fontsize=10, loc="left")
        near = [e for e in sent if e.time_range.start / 1e3 - begin <= limit]
        for e in near[:: max(1, len(near) // ARROWS)]:
            axes.annotate(
                "",
                (e.time_range.start / 1e3 - begin, 0.8),
                (e.submit_range.start / 1e3 - begin, 2),
                arrowprops={"arrowstyle": "->", "color": "#555555", "lw": 0.5},
            )
    figure.legend(
        [pyplot.Rectangle((0, 0), 1, 1, color=c) for c in COLOURS.values()],
        COLOURS,
        loc="lower center",
        bbox_to_anchor=(0.5, -0.06),
        ncol=len(COLOURS),
        frameon=False,
        fontsize=8,
    )
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main():
    parser = report.parser(__doc__)
    parser.add_argument("--out", default="build/trace", help="folder for the files")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--size", type=int, default=64, help="of the images, squares")
    args = parser.parse_args()
    import holdfast.run

    holdfast.run.stand_in_for_torch()
    import torch

    os.makedirs(args.out, exist_ok=True)
    with daemon.running() as running:
        torch.connect("unix:" + running["socket"])
        profiles = train(torch, args.batch, args.size, 1 if args.quick else 5)
        # The step that is nearest to the usual one.
        profiles.sort(key=lambda prof: figures(prof)[1])
        prof = profiles[len(profiles) // 2]
        torch.disconnect()
    shape = f"{args.batch}x3x{args.size}x{args.size}"
    submitted, executed, commands = figures(prof)
    trace = os.path.join(args.out, "resnet50_trace.json.gz")
    picture = os.path.join(args.out, "resnet50_trace.svg")
    prof.export_chrome_trace(trace)
    draw(
        prof,
        picture,
        f"A training step of ResNet-50 ({shape}): {commands} commands submitted in "
        f"{submitted:.1f} ms, executed in {executed:.0f} ms",
    )
    results = report.Report(f"ResNet-50 training step, {shape}, shared memory")
    results.add("commands", commands, "commands")
    results.add("submitted after", submitted, "ms")
    results.add("executed after", executed, "ms")
    results.add("submitted / executed", submitted / executed, "", target=0.5)
    waits = [e.queue_time / 1e3 for e in prof.events() if e.submit_range]
    results.add("queueing, median", statistics.median(waits), "ms")
    status = results.finish(args)
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))
    print(f"{trace}\n{picture}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
