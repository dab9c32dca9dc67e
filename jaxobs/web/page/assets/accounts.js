// What each device's memory is in use for: one bar a device, on one scale, and the figures of one of them.
const GAP_NAME = "temporaries and rest";
const HUES = 6; // groups of live arrays that have a colour of their own
const account = { byFullness: null, chosen: null, hues: new Map() };

const signed = (value) => (value < 0 ? `−${bytes(-value)}` : bytes(value));
const groupKey = (group) => JSON.stringify([group.shape, group.dtype, group.sharding, group.memory_kind]);
const groupName = (group) => `${group.dtype}[${group.shape.join(",")}]`;
const fill = (device) => {
  const m = device.memory || {};
  return m.in_use_bytes != null && m.limit_bytes ? m.in_use_bytes / m.limit_bytes : null;
};

// The fullest first where there are many; to the percent, so that devices that are alike do not change places.
function ordered(devices) {
  const first = account.byFullness ?? devices.length > ROOMY;
  if (!first) return devices;
  const most = Math.max(1, ...devices.map((each) => (each.memory && (each.memory.in_use_bytes ?? each.memory.live_array_bytes)) || 0));
  const weight = (each) => Math.round(100 * (fill(each) ?? ((each.memory && each.memory.live_array_bytes) || 0) / most));
  return devices.map((each, n) => [each, n]).sort((a, b) => weight(b[0]) - weight(a[0]) || a[1] - b[1]).map(([each]) => each);
}

// The largest first on the device that each fills most: a device runs out of memory by itself.
const mostOf = (group) => Math.max(0, ...Object.values(group.bytes_per_device));
const elsewhere = (group, devices) => !devices.some((each) => isOwn(group, each));
const byDevice = ({ array_groups: groups, devices }) => [...groups].sort((a, b) => elsewhere(a, devices) - elsewhere(b, devices) || mostOf(b) - mostOf(a));

// A group keeps its colour for as long as it is among the largest.
function colourGroups(snap) {
  const keys = byDevice(snap).filter((group) => !elsewhere(group, snap.devices)).slice(0, HUES).map(groupKey);
  for (const key of account.hues.keys()) if (!keys.includes(key)) account.hues.delete(key);
  const free = Array.from({ length: HUES }, (_, n) => n).filter((n) => ![...account.hues.values()].includes(n));
  for (const key of keys) if (!account.hues.has(key)) account.hues.set(key, free.shift());
}
const hueOf = (group) => (account.hues.has(groupKey(group)) ? `group-${account.hues.get(groupKey(group))}` : "memory-live");

// Whether the group lies in the device's own memory, not in one of its others (`pinned_host`).
const isOwn = (group, device) => !(group.memory_kind in ((device.memory && device.memory.other_space_bytes) || {}));

// The parts of a bar, from the left: [name, bytes, colour]. Up to `free` they add up to what is in use.
function barOf(device, groups) {
  const m = device.memory;
  if (!m || (m.live_array_bytes == null && m.in_use_bytes == null)) return [];
  const parts = accountOf({ used: m.in_use_bytes, live: m.live_array_bytes, code: m.code_bytes ?? (device.account ? device.account.code_bytes : 0) });
  const left = m.limit_bytes != null && m.in_use_bytes != null ? [["free", Math.max(0, m.limit_bytes - m.in_use_bytes), ""]] : [];
  if (!parts) return [["in use, of what is not known", m.in_use_bytes, "memory"], ...left];
  const named = groups.filter((each) => account.hues.has(groupKey(each)) && isOwn(each, device) && each.bytes_per_device[device.device] > 0)
    .map((each) => [groupName(each), each.bytes_per_device[device.device], hueOf(each), groupKey(each)]);
  const others = parts.live - named.reduce((all, each) => all + each[1], 0);
  return [...named, [named.length ? "other arrays" : "live arrays", Math.max(0, others), "memory-live"], ["code", parts.code, "memory-code"], [GAP_NAME, parts.gap, "memory-gap"], ...left];
}

function drawAccounts(snap) {
  const devices = ordered(snap.devices.filter((each) => each.memory));
  show($("held"), devices.length > 0);
  colourGroups(snap);
  const groups = byDevice(snap);
  const whole = Math.max(1, ...devices.map((each) => Math.max(each.memory.limit_bytes || 0, each.memory.in_use_bytes ?? each.memory.live_array_bytes ?? 0)));
  const most = fullest(devices);
  const chosen = devices.find((each) => each.device === account.chosen) || most;
  const list = $("accounts");
  list.dataset.size = devices.length > ROOMY ? "many" : "few";
  keyed(list, devices, (each) => each.device, makeAccount, null);
  for (const each of devices) updateAccount(list.keyedRows.get(each.device), each, barOf(each, groups), whole, each === chosen, devices.length > 1 && each === most);
  if (chosen) drawAccountFacts(chosen, snap);
  drawMemoryTold(snap, devices);
}

function makeAccount(device) {
  const used = h("span", { class: "num used" }), share = h("span", { class: "num quiet" }), bar = h("span", { class: "bar stack", "aria-hidden": "true" }), unseen = h("span", { class: "unseen" });
  const button = h("button", { type: "button", onclick: () => { account.chosen = device.device; drawAccounts(page.snap); } },
    h("strong", { class: "mono", text: device.device }), bar, used, share, unseen);
  return { node: h("li", { "data-device": device.device }, button), button, bar, used, share, unseen };
}

function updateAccount(row, device, parts, whole, chosen, most) {
  const m = device.memory;
  const ratio = fill(device);
  const held = m.in_use_bytes ?? m.live_array_bytes;
  stacked(row.bar, parts.filter(([name]) => name !== "free"), whole);
  const end = `${(100 * (m.limit_bytes || 0)) / whole}%`;
  if (row.bar.style.getPropertyValue("--end") !== end) row.bar.style.setProperty("--end", end);
  setText(row.used, bytes(held));
  setText(row.share, ratio == null ? "" : percent(ratio));
  row.node.dataset.state = fullness(ratio);
  row.node.classList.toggle("most", most);
  row.button.setAttribute("aria-pressed", String(chosen));
  const told = parts.filter(([, value]) => value).map(([name, value]) => `${name} ${signed(value)}`);
  setTitle(row.button, told.join("\n"));
  // For those who do not see the bar, after what everybody reads.
  setText(row.unseen, ` ${ratio == null ? "" : `of ${bytes(m.limit_bytes)} `}${m.in_use_bytes == null ? "of live arrays" : "in use"}${most ? ", the fullest" : ""}. ${told.join(", ")}`);
}

// The account of one device as figures, with what its allocator tells beside.
function drawAccountFacts(device, snap) {
  const m = device.memory;
  const parts = barOf(device, byDevice(snap));
  const told = (name, value, colour = "", text = signed(value)) => (value == null ? [] : [[name, text, colour]]);
  const figures = [
    ...parts.filter(([name, value]) => name !== "free" && (value || (name === GAP_NAME && m.in_use_bytes != null))).flatMap(([name, value, colour]) => told(name, value, colour)),
    ...(m.in_use_bytes != null && parts.length ? told("in use, the sum", m.in_use_bytes, "sum") : []),
    ...parts.filter(([name]) => name === "free").flatMap(([name, value]) => told(name, value, "line")),
  ];
  const beside = [
    ...told("live arrays", m.live_array_bytes, "", m.live_arrays == null ? bytes(m.live_array_bytes) : `${bytes(m.live_array_bytes)} in ${count(m.live_arrays)}`),
    ...told("limit", m.limit_bytes), ...told("peak", m.peak_bytes), ...told("most in the last minute", m.high_water_bytes),
    ...told("largest free block", m.largest_free_block_bytes), ...told("reserved", m.reserved_bytes),
    ...Object.entries(m.other_space_bytes || {}).flatMap(([kind, value]) => told(`arrays in ${kind}`, value)),
  ];
  const note = m.in_use_bytes == null ? `JAX’s ${device.platform.toUpperCase()} allocator reports no figures: these are only the live arrays, without temporaries, code and limit.`
    : parts.some(([name, value]) => name === GAP_NAME && value < 0) ? "The allocator does not count some arrays or code: the rest is negative." : "";
  redraw($("account-facts"), [device.device, device.device_kind, figures, beside, note], () => [
    h("h3", {}, h("span", { class: "mono", text: device.device }), h("span", { class: "quiet", text: ` ${device.device_kind === device.platform ? "" : device.device_kind}` })),
    note ? h("p", { class: "note", text: note }) : null,
    h("div", {}, ...[figures, beside].map((list) => h("dl", {}, ...list.flatMap(([name, text, colour]) => {
      const mark = colour && colour !== "sum" ? h("i", { "aria-hidden": "true" }) : null;
      if (mark) mark.style.background = `var(--${colour})`;
      return [h("dt", { class: colour === "sum" ? "sum" : null }, mark, name), h("dd", { class: `num${colour === "sum" ? " sum" : ""}`, text })];
    })))),
  ].filter(Boolean));
}

// The line beside the title: what is left where least is left, and what is loaded.
function drawMemoryTold(snap, devices) {
  const least = snap.headroom;
  const tight = least && devices.find((each) => each.device === least.device);
  const told = [
    least && [`${signed(least.bytes)} left on ${least.device}${devices.length > 1 ? ", the fullest" : ""}`, tight ? fullness(fill(tight)) : ""],
    snap.executables != null && [`${plural(snap.executables, "compiled program")} loaded`, ""],
  ].filter(Boolean);
  redraw($("memory-told"), told, () => told.map(([text, state]) => h("li", { class: state ? `state ${state}` : null, text })));
  const button = $("memory-order");
  show(button, devices.length > 1);
  setText(button, (account.byFullness ?? devices.length > ROOMY) ? "order: fullest first" : "order: by device");
}
