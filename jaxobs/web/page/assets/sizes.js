// The sizes that a dimension took, as bars, with the buckets that would hold them: what one would rather see than read.
const BINS = 44, WIDE_RANGE = 16;

// [size, how often], ascending, from any of the forms that a list of sizes may have.
function sizesSeen(sizes) {
  const pairs = Array.isArray(sizes) ? sizes.map((each) => (Array.isArray(each) ? each : [each, 1])) : Object.entries(sizes || {});
  const totals = new Map();
  for (const [size, n] of pairs) if (Number(size) >= 0 && Number(n) > 0) totals.set(Number(size), (totals.get(Number(size)) || 0) + Number(n));
  return [...totals].sort((a, b) => a[0] - b[0]);
}

const bucketsOf = (finding) => (finding.data.buckets || []).map(Number).filter((each) => each > 0).sort((a, b) => a - b);

function sizesPicture(finding) {
  const seen = sizesSeen(finding.data.sizes);
  if (seen.length < 2) return null;
  const buckets = bucketsOf(finding);
  const low = seen[0][0], high = Math.max(seen[seen.length - 1][0], ...buckets);
  const range = `${plural(seen.length, "size")}, ${count(low)} to ${count(seen[seen.length - 1][0])}`;
  const cure = buckets.length ? `${buckets.length === 1 ? "one bucket" : `${buckets.length} buckets`}: ${buckets.map(count).join(", ")}` : "";
  const padding = finding.data.padding == null ? "" : `${percent(finding.data.padding)} padding`;
  const spoken = [range, cure, padding].filter(Boolean).join("; ");
  return h("figure", { class: "sizes" }, sizesChart(seen, buckets, low, high, spoken),
    h("figcaption", {}, h("span", { text: range }), cure ? h("span", {}, h("i", { "aria-hidden": "true" }), cure) : null, padding ? h("span", { class: "num", title: "of the computation would be padding, with the sizes seen so far", text: padding }) : null));
}

function sizesChart(seen, buckets, low, high, spoken) {
  const width = 250, height = 78, floor = 60, left = 6, right = width - 6;
  const wide = high / Math.max(low, 1) >= WIDE_RANGE;
  const scale = (value) => (wide ? Math.log2(Math.max(value, 1)) : value);
  const from = scale(low) - (scale(high) - scale(low)) / BINS, to = scale(high);
  const x = (value) => left + ((scale(value) - from) / (to - from)) * (right - left);
  const bins = new Map(); // which bin -> its largest size, how often
  for (const [size, n] of seen) {
    const bin = Math.ceil(((scale(size) - from) / (to - from)) * BINS);
    bins.set(bin, [size, n + (bins.has(bin) ? bins.get(bin)[1] : 0)]);
  }
  const most = Math.max(...[...bins.values()].map(([, n]) => n)), thick = (right - left) / BINS - 1;
  const bars = [...bins.values()].map(([size, n]) => {
    const tall = Math.max(3, (n / most) * 44); // a bar ends at its size: left of the bucket that holds it
    return s("rect", { class: "seen", x: (x(size) - thick).toFixed(1), width: thick.toFixed(1), y: (floor - tall).toFixed(1), height: tall.toFixed(1) });
  });
  const bands = buckets.map((bucket, i) => {
    const start = i ? x(buckets[i - 1]) : left;
    return s("rect", { class: i % 2 ? "band odd" : "band", x: start.toFixed(1), width: Math.max(0, x(bucket) - start).toFixed(1), y: 12, height: floor - 12 });
  });
  let free = right + 20;
  const labels = [...buckets].reverse().map((bucket) => {
    const at = Math.min(x(bucket), right), label = count(bucket), half = label.length * 3.4 + 3;
    const line = s("line", { class: "bucket", x1: at, x2: at, y1: 12, y2: floor + 3 });
    const middle = Math.min(at, right - half + 5);
    if (middle + half > free) return [line];
    free = middle - half;
    return [line, s("text", { class: "tick", x: middle.toFixed(1), y: height - 4, "text-anchor": "middle" }, label)];
  }).flat();
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken }, ...bands, ...bars, s("line", { class: "floor", x1: left, x2: right, y1: floor, y2: floor }), ...labels);
}
