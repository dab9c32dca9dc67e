// The accelerators as their driver sees them, whoever uses them: a row each. What it does not tell is left empty.
const HOT = 0.97; // share of the memory from which on it is amber, whoever holds it

function drawAccelerators(snap) {
  const all = snap.accelerators;
  show($("accelerators"), all.length > 0);
  if (!all.length) return;
  setText($("accelerators-count"), plural(all.length, "device"));
  const drivers = [...new Set(all.map((each) => each.driver_version).filter(Boolean))];
  setText($("accelerators-driver"), drivers.length ? `driver ${drivers.join(", ")}` : "");
  keyed($("accelerators-rows"), all, (each) => each.uuid, makeAccelerator, updateAccelerator);
}

function makeAccelerator(device) {
  const cells = {};
  const cell = (name, label, css = "") => (cells[name] = h("td", { class: `num ${css}`, "data-label": label }));
  const node = h("tr", { "data-uuid": device.uuid },
    h("th", { scope: "row" }, h("strong", { class: "mono", text: device.device, title: device.uuid }), h("small", { class: "quiet", text: device.model || "" })),
    cell("use", "utilization", "metered"), cell("memory", "memory", "metered"), cell("power", "power", "metered"), cell("heat", "temperature"), cell("clock", "clock"), cell("processes", "processes", "who"), cell("marks", "", "marked"));
  return { node, cells };
}

const meter = (share, state = "") => {
  const bar = h("span", { class: "bar meter", "aria-hidden": "true" });
  stacked(bar, [["part", Math.max(0, Math.min(1, share)), state || "memory"]], 1);
  return bar;
};
const measured = (share, text, small, state) => [share == null ? "" : meter(share, state), h("span", { text }), ...(small ? [" ", h("small", { text: small })] : [])];

function updateAccelerator({ node, cells }, a) {
  node.classList.toggle("down", !a.up);
  const filled = a.memory_used_bytes != null && a.memory_total_bytes ? a.memory_used_bytes / a.memory_total_bytes : null;
  const draw = (name, value, build) => redraw(cells[name], value, () => (value == null || (Array.isArray(value) && value.every((each) => each == null)) ? [h("span", { class: "none", text: DASH })] : build()));
  draw("use", [a.utilization], () => measured(a.utilization, percent(a.utilization)));
  draw("memory", [a.memory_used_bytes, a.memory_total_bytes], () => measured(filled, bytes(a.memory_used_bytes), a.memory_total_bytes == null ? "" : `of ${bytes(a.memory_total_bytes)}`, filled >= HOT ? "warn" : ""));
  draw("power", [a.power_watts, a.power_limit_watts], () => measured(a.power_watts != null && a.power_limit_watts ? a.power_watts / a.power_limit_watts : null, a.power_watts == null ? DASH : `${Math.round(a.power_watts)} W`, a.power_limit_watts == null ? "" : `of ${Math.round(a.power_limit_watts)} W`));
  draw("heat", [a.temperature_celsius], () => [`${a.temperature_celsius} °C`]);
  draw("clock", [a.sm_clock_hertz], () => [`${(a.sm_clock_hertz / 1e9).toFixed(2)} GHz`]);
  draw("processes", a.processes, () => processesOf(a.processes));
  redraw(cells.marks, remarksOf(a), () => remarksOf(a).flatMap(([text, kind, title]) => [h("span", { class: `badge ${kind}`, title: title || null, text }), " "]));
}

function processesOf(processes) {
  if (!processes.length) return [h("span", { class: "none", text: "none" })];
  const who = ({ ours }) => (ours === true ? "this one" : ours === false ? "another" : "");
  return [...processes].sort((a, b) => (b.ours === true) - (a.ours === true) || (b.bytes || 0) - (a.bytes || 0)).slice(0, 3)
    .map((each) => h("span", { class: each.ours === false ? "other" : "" }, `${each.pid} `, h("small", { text: [who(each), each.bytes == null ? "" : bytes(each.bytes)].filter(Boolean).join(" ") })))
    .concat(processes.length > 3 ? [h("small", { text: `and ${count(processes.length - 3)} more` })] : []);
}

// What is out of the ordinary: it does not answer, it slows itself down, it reported errors.
function remarksOf(a) {
  const slowed = (a.throttle_reasons || []).filter((reason) => THROTTLE_REASONS.includes(reason));
  const uncorrected = (a.ecc_errors.uncorrected || {}).volatile || 0;
  return [
    ...(a.up ? [] : [["does not answer", "lost", a.trouble || ""]]),
    ...slowed.map((reason) => [`slowed: ${spaced(reason)}`, "slowed", "The driver throttles its clocks for this reason"]),
    ...Object.entries(a.xid_errors || {}).filter(([, n]) => n).map(([code, n]) => [`Xid ${code}${n > 1 ? ` × ${count(n)}` : ""}`, "lost", "Errors that the driver has reported since jaxobs started"]),
    ...(uncorrected ? [[plural(uncorrected, "uncorrected ECC error"), "lost", "since the driver was loaded"]] : []),
    ...(a.parent ? [["MIG instance", "", `part of ${a.parent}`]] : []),
  ];
}
