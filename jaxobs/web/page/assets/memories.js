// What is known of memory over time: samples of each device, from snapshots and from `memory` events, in one order.
const SAMPLES = 1500; // kept of a device; beyond it the older half is thinned, and the highest stay
const SAME = 0.01; // seconds within which two samples of a device are one
const memories = new Map(); // device -> samples {time, used, live, code, high}, oldest first
const actions = []; // captures that were asked for, the latest last

const sampleOf = (m, time) => ({ time, used: m.in_use_bytes ?? null, live: m.live_array_bytes ?? null, code: m.code_bytes ?? null, high: m.high_water_bytes ?? null });
const heldBy = (sample) => sample.used ?? sample.live ?? -1;

// Seconds with all the digits that were written: Date keeps milliseconds.
const epoch = (text) => Date.parse(`${text.slice(0, 19)}Z`) / 1000 + Number(`0${(/\.\d+/.exec(text) || [""])[0]}` || 0);

function remember(devices) {
  for (const device of devices) {
    const m = device.memory;
    const known = memories.get(device.device);
    const last = known && known.length ? known[known.length - 1].time + SAME : -Infinity;
    const fresh = device.history.filter(([time]) => time > last).map(([time, used, live]) => ({ time, used, live, code: null, high: null }));
    if (m) fresh.push({ ...sampleOf(m, m.time), code: m.code_bytes ?? (device.account ? device.account.code_bytes : null) });
    include(device.device, fresh);
  }
}

function addMemories(answer) {
  const found = new Map();
  for (const event of answer.events) if (event.event === "memory") found.set(event.device, [...(found.get(event.device) || []), sampleOf(event, epoch(event.time))]);
  for (const [device, fresh] of found) include(device, fresh);
}

function addActions(answer) {
  actions.push(...answer.events.filter((event) => event.event === "action"));
  actions.splice(0, actions.length - 20);
}

function forgetMemory() {
  memories.clear();
  actions.length = 0;
}

// An event is told whenever anything but the time changed: what a sample leaves open is as it was before.
function include(device, fresh) {
  const known = memories.get(device) || [];
  const last = known.length ? known[known.length - 1] : null;
  if (!fresh.length || (last && fresh.every((each) => Math.abs(each.time - last.time) < SAME && each.code === last.code && each.high === last.high))) return;
  const later = last && fresh[0].time - last.time >= SAME; // as nearly always: nothing goes in between
  const merged = later ? known : [];
  for (const each of later ? fresh : [...known, ...fresh].sort((a, b) => a.time - b.time)) {
    const before = merged[merged.length - 1];
    if (before && each.time - before.time < SAME) for (const key of ["used", "live", "code", "high"]) before[key] = each[key] ?? before[key];
    else merged.push({ ...each, code: each.code ?? (before ? before.code : null), high: each.high ?? (before ? before.high : null) });
  }
  memories.set(device, merged.length > SAMPLES ? thinnedOut(merged) : merged);
}

// Of two neighbours of the older half the one that holds more stays: a short peak is not lost.
function thinnedOut(samples) {
  const half = samples.length >> 1;
  const older = [];
  for (let i = 0; i < half; i += 2) older.push(i + 1 < half && heldBy(samples[i + 1]) > heldBy(samples[i]) ? samples[i + 1] : samples[i]);
  return [...older, ...samples.slice(half)];
}

// The parts of what is in use, from below: they add up to it, unless arrays or code lie outside of what is counted.
function accountOf({ used, live, code }) {
  if (live == null) return null;
  return { live, code: code || 0, gap: used == null ? 0 : used - live - (code || 0) };
}
