// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Asks the daemon for its state once a second (server/metrics/status_json.h)
// and shows it. Names that clients chose are only ever put in as text.
"use strict";

// `smooth`: seconds that a point is the mean of.
const LINES = {
  memory: [
    { label: "in use", column: "bytes_in_use", color: "--blue" },
    { label: "cached", column: "bytes_cached", color: "--grey" },
  ],
  throughput: [
    { label: "ops/s", column: "ops_per_second", color: "--green", smooth: 5 },
  ],
  queue: [{ label: "waiting", column: "waiting", color: "--orange" }],
  device: [{ label: "%", column: "busy", scale: 100, color: "--purple", smooth: 5 }],
};
const BYTES = ["memory"];
const COUNTS = ["queue"];
const LEAST_SECONDS = 60;
const MOST_SECONDS = 600;

const byId = (id) => document.getElementById(id);

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

function duration(seconds) {
  const whole = Math.floor(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// What the charts take from page.css, which differs in the dark.
function paint(charts) {
  for (const [id, chart] of Object.entries(charts)) {
    LINES[id].forEach((line, i) => {
      const set = chart.data.datasets[i];
      set.borderColor = set.backgroundColor = color(line.color);
    });
    for (const axis of Object.values(chart.options.scales)) {
      axis.ticks.color = color("--text");
      axis.grid = { color: color("--faint") };
    }
    chart.options.plugins.legend.labels = { color: color("--text") };
    chart.update();
  }
}

function makeChart(id) {
  const bytes = BYTES.includes(id);
  return new Chart(byId(id), {
    type: "line",
    data: {
      datasets: LINES[id].map((line) => ({
        label: line.label,
        borderWidth: 1.5,
        // In use and cached are parts of one whole.
        fill: id === "memory" ? "stack" : false,
        pointRadius: 0,
        data: [],
      })),
    },
    options: {
      animation: false,
      maintainAspectRatio: false,
      parsing: false,
      interaction: { intersect: false, mode: "nearest", axis: "x" },
      plugins: {
        legend: { display: LINES[id].length > 1 },
        tooltip: bytes
          ? { callbacks: { label: (at) => `${at.dataset.label} ${size(at.parsed.y)}` } }
          : {},
      },
      scales: {
        x: {
          type: "linear",
          max: 0,
          ticks: {
            callback: (s) => (s % 60 ? `${s} s` : s ? `${s / 60} min` : "now"),
          },
        },
        y: {
          min: 0,
          stacked: id === "memory",
          suggestedMax: id === "device" ? 100 : COUNTS.includes(id) ? 4 : undefined,
          ticks: bytes ? { callback: size } : COUNTS.includes(id) ? { precision: 0 } : {},
        },
      },
    },
  });
}

// Each value the mean of those up to `seconds` before it.
function smoothed(values, ages, seconds) {
  let first = 0;
  let sum = 0;
  return values.map((value, i) => {
    sum += value;
    while (ages[i] - ages[first] >= seconds) sum -= values[first++];
    return sum / (i - first + 1);
  });
}

// Four to eight steps of a power of two; to the end of memory, if that is near.
function scaleBytes(axis, most, capacity) {
  axis.max = capacity && most > capacity / 4 ? capacity : undefined;
  axis.ticks.stepSize = 2 ** Math.max(10, Math.ceil(Math.log2((axis.max ?? most) / 8)));
}

function updateCharts(charts, history, capacity) {
  const now = history.uptime_seconds.at(-1);
  const ages = history.uptime_seconds.map((uptime) => uptime - now);
  const shown = Math.min(MOST_SECONDS, Math.max(LEAST_SECONDS, -ages[0]));
  for (const [id, chart] of Object.entries(charts)) {
    LINES[id].forEach((line, i) => {
      const values = smoothed(history[line.column], ages, line.smooth ?? 0.5);
      chart.data.datasets[i].data = values.map((value, j) => ({
        x: ages[j],
        y: value * (line.scale ?? 1),
      }));
    });
    const axis = chart.options.scales.x;
    axis.ticks.stepSize = shown > 300 ? 120 : shown > 120 ? 60 : 20;
    axis.min = -axis.ticks.stepSize * Math.ceil(shown / axis.ticks.stepSize);
    if (BYTES.includes(id)) {
      const sums = history.bytes_in_use.map((use, i) => use + history.bytes_cached[i]);
      scaleBytes(chart.options.scales.y, Math.max(...sums), capacity);
    }
    chart.update();
  }
}

// table -> [column, direction] that a click on a head chose.
const order = {};

function makeSortable(table) {
  for (const [column, head] of [...byId(table).tHead.rows[0].cells].entries()) {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    // Numbers fall, texts rise, and a second click turns them.
    const first = head.className === "number" ? -1 : 1;
    button.addEventListener("click", () => {
      const [former, direction] = order[table] ?? [];
      order[table] = [column, former === column ? -direction : first];
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order[table][1] > 0 ? "ascending" : "descending");
      const rows = [...byId(table).tBodies[0].rows].map((row) => row.source);
      byId(table).tBodies[0].replaceChildren(...inOrder(table, rows).map(byRow(table)));
    });
  }
}

// `rows`: {cells, keys}; a key is what a cell is sorted by, where not its text.
function inOrder(table, rows) {
  if (!order[table]) return rows;
  const [column, direction] = order[table];
  const key = (row) => row.keys?.[column] ?? row.cells[column];
  return [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return direction * (typeof x === "number" ? x - y : String(x).localeCompare(String(y)));
  });
}

// The head says which columns are numbers.
function byRow(table) {
  const heads = [...byId(table).tHead.rows[0].cells];
  return (source) => {
    const row = document.createElement("tr");
    row.source = source;
    if (source.away) row.className = "away";
    source.cells.forEach((text, i) => {
      const cell = row.insertCell();
      cell.textContent = text;
      cell.className = heads[i].className;
      if (heads[i].textContent === "Trace") {
        cell.className = "trace";
        cell.title = `holdfast trace ${text} LOG`;
      }
    });
    return row;
  };
}

function fill(table, rows, nothing) {
  const whole = byId(table);
  const heads = [...whole.tHead.rows[0].cells];
  // Beneath the rows: it is none of them.
  whole.deleteTFoot();
  if (!rows.length) {
    const cell = whole.createTFoot().insertRow().insertCell();
    cell.colSpan = heads.length;
    cell.className = "nothing";
    cell.textContent = nothing;
  }
  whole.tBodies[0].replaceChildren(...inOrder(table, rows).map(byRow(table)));
}

function show(status, charts) {
  const last = (column) => status.history[column].at(-1) ?? 0;
  byId("server").textContent = `${status.server} on ${status.device}`;
  byId("session-count").textContent = status.session_count;
  byId("in-use").textContent = size(last("bytes_in_use"));
  byId("cached").textContent = size(last("bytes_cached"));
  byId("rate").textContent = Math.round(last("ops_per_second")).toLocaleString("en");
  byId("busy").textContent = `${Math.round(100 * last("busy"))} %`;
  byId("waiting").textContent = last("waiting");
  byId("capacity").textContent = status.device_bytes ? ` of ${size(status.device_bytes)}` : "";
  byId("published").textContent = status.published_names;
  byId("published-size").textContent = status.published_names
    ? ` (${size(status.published_bytes)})`
    : "";
  const small = status.visible_count - status.sessions.length;
  const others = status.session_count - status.visible_count;
  fill(
    "sessions",
    status.sessions.map((s) => ({
      away: !s.connected,
      cells: [
        s.id, s.user || "–", s.name || "–", s.client,
        s.connected ? s.transport : "disconnected", s.tensors,
        size(s.bytes_in_use), size(s.bytes_cached), size(s.queued_bytes),
        s.ops.toLocaleString("en"), `${s.device_seconds.toFixed(1)} s`, s.trace_id,
      ],
      keys: [
        s.id, , , , , s.tensors, s.bytes_in_use, s.bytes_cached, s.queued_bytes, s.ops,
        s.device_seconds,
      ],
    })),
    others ? "no session of yours" : "no sessions",
  );
  byId("more").textContent = [
    small > 0 ? `and ${small} more with less memory` : "",
    others > 0
      ? `${others} of other users` +
        (status.viewer ? ` (you are ${status.viewer})` : ": enter a token to see yours")
      : "",
  ].filter(Boolean).join("; ");
  byId("identify").hidden = others === 0;
  fill(
    "users",
    status.users.map((u) => ({
      cells: [
        u.name, u.sessions, size(u.bytes_reserved),
        u.memory_bytes ? size(u.memory_bytes) : "–", u.weight || 1,
        `${u.device_seconds.toFixed(1)} s`,
      ],
      keys: [, u.sessions, u.bytes_reserved, u.memory_bytes, u.weight || 1, u.device_seconds],
    })),
    others ? "not you" : "nobody",
  );
  fill(
    "ops",
    status.ops.map((op) => ({
      cells: [op.name, op.calls.toLocaleString("en"), op.failures, op.seconds.toFixed(3)],
      keys: [, op.calls, op.failures, op.seconds],
    })),
    "nothing was executed yet",
  );
  if (status.history.uptime_seconds.length) {
    updateCharts(charts, status.history, status.device_bytes);
  }
}

async function refresh(charts) {
  const state = byId("state");
  try {
    const token = sessionStorage.getItem("token");
    const reply = await fetch("/api/status", {
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      signal: AbortSignal.timeout(5000),
    });
    if (reply.status === 401) sessionStorage.removeItem("token");
    if (!reply.ok) throw new Error(await reply.text());
    const status = await reply.json();
    show(status, charts);
    state.textContent = `up ${duration(status.uptime_seconds)}`;
    state.className = "";
  } catch (error) {
    state.textContent = `no answer from the daemon (${error.message})`;
    state.className = "gone";
  }
  setTimeout(refresh, 1000, charts);
}

// The tab remembers it, and forgets it when the daemon refuses it.
byId("identify").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  byId("token").value = "";
  if (token) sessionStorage.setItem("token", token);
});

["sessions", "users", "ops"].forEach(makeSortable);
const charts = Object.fromEntries(Object.keys(LINES).map((id) => [id, makeChart(id)]));
paint(charts);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint(charts));
refresh(charts);
