// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Asks the daemon for its state once a second (server/metrics/status_json.h)
// and shows it. Names that clients chose are only ever put in as text.
"use strict";

const MIB = 2 ** 20;
const LINES = {
  memory: [
    { label: "in use", column: "bytes_in_use", scale: 1 / MIB, color: "#2e86c1" },
    { label: "cached", column: "bytes_cached", scale: 1 / MIB, color: "#aeb6bf" },
  ],
  throughput: [
    { label: "ops/s", column: "ops_per_second", scale: 1, color: "#239b56" },
  ],
  queue: [
    { label: "KiB", column: "queued_bytes", scale: 1 / 1024, color: "#ca6f1e" },
  ],
  device: [{ label: "%", column: "busy", scale: 100, color: "#7d3c98" }],
};

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

function makeChart(id) {
  return new Chart(byId(id), {
    type: "line",
    data: {
      datasets: LINES[id].map((line) => ({
        label: line.label,
        borderColor: line.color,
        backgroundColor: line.color,
        borderWidth: 1.5,
        pointRadius: 0,
        data: [],
      })),
    },
    options: {
      animation: false,
      maintainAspectRatio: false,
      parsing: false,
      interaction: { intersect: false, mode: "nearest", axis: "x" },
      plugins: { legend: { display: LINES[id].length > 1 } },
      scales: {
        x: {
          type: "linear",
          min: -600,
          max: 0,
          ticks: { stepSize: 120, callback: (s) => (s ? `${s / 60} min` : "now") },
        },
        y: { min: 0, suggestedMax: id === "device" ? 100 : undefined },
      },
    },
  });
}

function updateCharts(charts, history) {
  const now = history.uptime_seconds.at(-1);
  const ages = history.uptime_seconds.map((uptime) => uptime - now);
  for (const [id, chart] of Object.entries(charts)) {
    LINES[id].forEach((line, i) => {
      chart.data.datasets[i].data = history[line.column].map((value, j) => ({
        x: ages[j],
        y: value * line.scale,
      }));
    });
    chart.update();
  }
}

function fill(table, rows) {
  const body = byId(table).tBodies[0];
  body.replaceChildren(
    ...rows.map(({ cells, away }) => {
      const row = document.createElement("tr");
      if (away) row.className = "away";
      for (const cell of cells) row.insertCell().textContent = cell;
      return row;
    }),
  );
}

function show(status, charts) {
  const last = (column) => status.history[column].at(-1) ?? 0;
  byId("server").textContent = `${status.server} on ${status.device}`;
  byId("session-count").textContent = status.session_count;
  byId("in-use").textContent = size(last("bytes_in_use"));
  byId("cached").textContent = size(last("bytes_cached"));
  byId("rate").textContent = Math.round(last("ops_per_second")).toLocaleString("en");
  byId("busy").textContent = `${Math.round(100 * last("busy"))} %`;
  byId("queued").textContent = size(last("queued_bytes"));
  fill(
    "sessions",
    status.sessions.map((s) => ({
      away: !s.connected,
      cells: [
        s.id, s.user || "–", s.name || "–", s.client, s.connected ? s.transport : "(away)", s.tensors,
        size(s.bytes_in_use), size(s.bytes_cached), size(s.queued_bytes),
        s.ops.toLocaleString("en"), `${s.device_seconds.toFixed(1)} s`, s.trace_id,
      ],
    })),
  );
  const small = status.visible_count - status.sessions.length;
  const others = status.session_count - status.visible_count;
  byId("more").textContent = [
    small > 0 ? `and ${small} more with less memory` : "",
    others > 0 ? `${others} of users other than ${status.viewer || "nobody"}` : "",
  ].filter(Boolean).join("; ");
  byId("identify").hidden = others === 0;
  fill(
    "ops",
    status.ops.map((op) => ({
      cells: [op.name, op.calls.toLocaleString("en"), op.failures, op.seconds.toFixed(3)],
    })),
  );
  if (status.history.uptime_seconds.length) updateCharts(charts, status.history);
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

refresh(Object.fromEntries(Object.keys(LINES).map((id) => [id, makeChart(id)])));
