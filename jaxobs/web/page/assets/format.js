// Numbers, times and names as a person reads them. Null is not known, and is shown as a dash, never as zero.
const DASH = "\u2014";

function seconds(value) {
  if (value == null) return DASH;
  const s = Math.max(0, value);
  if (s === 0) return "0 s";
  if (s < 0.0009995) return `${Math.max(1, Math.round(s * 1e6))} µs`;
  if (s < 0.00995) return `${(s * 1e3).toFixed(1)} ms`;
  if (s < 0.9995) return `${Math.round(s * 1e3)} ms`;
  if (s < 59.95) return `${s.toFixed(1)} s`;
  return span(s);
}

// Whole seconds: for what ticks.
function span(value) {
  const s = Math.max(0, Math.round(value));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

const ago = (value) => (value < 2 ? "just now" : `${span(value)} ago`);

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
function bytes(value) {
  if (value == null) return DASH;
  let size = value, unit = 0;
  while (size >= 1023.5 && unit < UNITS.length - 1) { size /= 1024; unit += 1; }
  return `${unit === 0 || size >= 99.95 ? Math.round(size) : size.toFixed(1)} ${UNITS[unit]}`;
}

// Seconds with their fractions however many they are: what a cache saved is added up from small parts.
function fraction(value) {
  if (value == null || Math.abs(value) < 59.95) return value < 0 ? `−${seconds(-value)}` : seconds(value);
  const tenths = Math.round(value * 10);
  return tenths < 36000 ? `${Math.floor(tenths / 600)} min ${((tenths % 600) / 10).toFixed(1).padStart(4, "0")} s` : span(value);
}

// Operations by powers of a thousand, as they are told everywhere.
const POWERS = ["", "k", "M", "G", "T", "P", "E"];
function flops(value) {
  if (value == null) return DASH;
  let size = value, power = 0;
  while (size >= 999.5 && power < POWERS.length - 1) { size /= 1000; power += 1; }
  return `${power === 0 || size >= 99.95 ? Math.round(size) : size.toFixed(1)} ${POWERS[power]}FLOP`;
}

const integer = new Intl.NumberFormat("en-US");
const shortly = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const brief = (value) => (value == null || Math.abs(value) < 1e6 ? count(value) : shortly.format(value)); // for narrow columns
const count = (value) => (value == null ? DASH : integer.format(value));
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || `${one}s`}`;
const percent = (ratio) => `${ratio > 0 && ratio < 0.01 ? "<1" : Math.round(ratio * 100)} %`;

const two = (n) => String(n).padStart(2, "0");
function clock(epoch, withSeconds = true) {
  const d = new Date(epoch * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}${withSeconds ? `:${two(d.getSeconds())}` : ""}`;
}
function moment(epoch) {
  const d = new Date(epoch * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(epoch)}`;
}

// The time of day, with the day where it is not today's.
function when(epoch) {
  const today = new Date().toDateString() === new Date(epoch * 1000).toDateString();
  return today ? clock(epoch) : `${moment(epoch).slice(5, 10)} ${clock(epoch, false)}`;
}

const ENDED = /(?<=\.)\s+(?=[A-Z`])/; // between two sentences

// A reason as what changed, and what to do about it: its first sentence and the others.
function changeAndCure(reason) {
  const end = reason.search(ENDED);
  return end < 0 ? [reason, ""] : [reason.slice(0, end), reason.slice(end)];
}

// A reason without the name of its function, which stands beside it.
const unnamed = (reason, name) => (reason || "").replace(`\`${name}\`: `, "");

const spaced = (word) => word.replaceAll("_", " ");
const sum = (numbers) => Object.values(numbers).reduce((a, b) => a + b, 0);

// What to dim and what to show: `train.loop.` and `Trainer.step`. Angle-bracket names have no module.
function splitName(name) {
  const cut = name.lastIndexOf(".");
  if (cut < 1 || !/^[\w.<>]+$/.test(name)) return ["", name];
  const before = name.slice(0, cut).split(".");
  const owner = before[before.length - 1];
  if (/^[A-Z]/.test(owner)) { before.pop(); return [before.length ? `${before.join(".")}.` : "", `${owner}${name.slice(cut)}`]; }
  return [`${before.join(".")}.`, name.slice(cut + 1)];
}
