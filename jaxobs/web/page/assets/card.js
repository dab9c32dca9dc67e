// A finding as a picture of 1200 x 630, as sites show beside a link: what it costs, where, and what to do.
const CARD = { left: 72, right: 1128, ink: "#eef2f7", quiet: "#9aa7b8", cure: "#5ec98b", seen: "#6ea8fe", severity: { critical: "#f0616d", warning: "#f2a93b" } };
const SANS = "system-ui, sans-serif", MONO = "ui-monospace, monospace", LINE = 1.25, MOST_BINS = 32;

// Lines of a text that fit; the last ends with an ellipsis if there are more.
function wrapped(pen, text, width, most) {
  const lines = [""];
  for (const word of text.replaceAll("`", "").split(/\s+/)) {
    const longer = lines[lines.length - 1] ? `${lines[lines.length - 1]} ${word}` : word;
    if (pen.measureText(longer).width <= width) { lines[lines.length - 1] = longer; continue; }
    if (lines.length === most) { lines[most - 1] += " …"; break; }
    lines.push(word);
  }
  return lines;
}

// A card is for others: a file has its folder, and none of those above it, such as a home directory.
const SITE = /(^|[\s`(])(?:\/(?:home|Users)\/[^/\s]+|\/root)?(\/[^\s`]+:\d+)/g;
const shared = (text) => text.replace(SITE, (_, before, path) => before + placeOf(path).replace(/^\//, ""));

function cardOf(finding) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1200, height: 630 });
  const pen = canvas.getContext("2d");
  const entry = entriesOf(page.snap).get(finding.id);
  const all = CARD.right - CARD.left;
  let y = 96;
  const write = (text, size, color, { weight = 600, family = SANS, most = 1, width = all, step = LINE, x = CARD.left } = {}) => {
    pen.font = `${weight} ${size}px ${family}`; pen.fillStyle = color;
    for (const line of wrapped(pen, text, width, most)) { pen.fillText(line, x, y, width); y += size * step; }
  };
  // The first sentences that fit, in the largest letters in which the first of them does.
  const told = (text, sizes, color, { weight, width, room }) => {
    const all = shared(text).split(ENDED);
    for (const size of sizes) for (let n = all.length; n; n -= 1) {
      const kept = all.slice(0, n).join(" "), most = Math.floor(room / size / LINE);
      pen.font = `${weight} ${size}px ${SANS}`;
      if (wrapped(pen, kept, width, 99).length <= most || (n === 1 && size === sizes[2])) return write(kept, size, color, { weight, width, most });
    }
  };
  pen.fillStyle = "#10151c"; pen.fillRect(0, 0, 1200, 630);
  pen.fillStyle = CARD.severity[(entry && entry.severity) || finding.severity] || CARD.seen; pen.fillRect(0, 0, 16, 630);
  write(spaced(finding.finding).toUpperCase(), 24, CARD.quiet, { step: 2.2 });
  const again = finding.sequences.length > 0 && finding.count > 0 && finding.seconds > 0 && ![EAGER, OTHER, "<unknown>"].includes(finding.function);
  if (again) {
    y += 10;
    told(`${splitName(finding.function)[1]} recompiled ${plural(finding.count, "time")}, ${seconds(finding.saves_seconds ?? finding.seconds)} lost`, [56, 46, 36], CARD.ink, { weight: 700, width: all, room: 75 });
    told(finding.summary, [30, 26, 24], CARD.quiet, { weight: 400, width: all, room: 110 });
    y += 22;
  } else {
    told(finding.summary, [42, 36, 30], CARD.ink, { weight: 600, width: all, room: 212 });
    const cost = [finding.count > 0 && counted(finding), finding.seconds > 0 && lostTime(finding), finding.bytes && bytes(finding.bytes)].filter(Boolean).join(" · ");
    y += 12;
    if (cost) write(cost, 32, CARD.severity.warning, { step: 1.6 });
  }
  const seen = sizesSeen(finding.data.sizes), drawn = seen.length > 1;
  if (finding.advice) told(finding.advice, [30, 26, 22], CARD.cure, { weight: 400, width: drawn ? 600 : all, room: 566 - y });
  if (drawn) drawSizes(pen, seen, bucketsOf(finding), { left: 736, right: CARD.right, top: 372, floor: 520 });
  y = 588;
  write(shared(finding.where || finding.subject || ""), 26, CARD.quiet, { weight: 400, family: MONO, width: 880 });
  pen.textAlign = "right"; y = 588;
  write("jaxobs", 28, CARD.quiet, { x: CARD.right });
  return canvas;
}

// How often sizes came, in bins of a round width; lines are the sizes to pad to, or the axis has its ends.
function drawSizes(pen, seen, buckets, { left, right, top, floor }) {
  const least = seen[0][0], high = Math.max(seen[seen.length - 1][0], ...buckets);
  const bin = 2 ** Math.max(0, Math.ceil(Math.log2((high - least + 1) / MOST_BINS)));
  const last = (size) => Math.ceil(size / bin) * bin, low = last(least) - bin; // a bar ends with its last size
  const totals = {};
  for (const [size, n] of seen) totals[last(size)] = (totals[last(size)] || 0) + n;
  const most = Math.max(...Object.values(totals)), x = (size) => left + ((size - low) / (last(high) - low)) * (right - left), thick = x(low + bin) - left;
  pen.fillStyle = CARD.seen;
  for (const [end, n] of Object.entries(totals)) { const tall = Math.max(4, (n / most) * (floor - top)); pen.fillRect(x(end) - thick + 1, floor - tall, Math.max(2, thick - 2), tall); }
  pen.fillStyle = CARD.quiet; pen.fillRect(left, floor, right - left, 2);
  pen.font = `22px ${SANS}`; pen.textAlign = "right";
  if (buckets.length) pen.fillStyle = CARD.cure;
  let free = left;
  for (const mark of buckets.length ? buckets : [least, high]) {
    if (buckets.length) pen.fillRect(x(mark), top - 12, 2, floor - top + 12);
    if (x(mark) - pen.measureText(count(mark)).width < free) continue;
    pen.fillText(count(mark), x(mark) + 2, floor + 28); free = x(mark) + 12;
  }
  pen.textAlign = "left";
}

function saveCard(finding) {
  cardOf(finding).toBlob((blob) => {
    const link = h("a", { href: URL.createObjectURL(blob), download: `jaxobs-${finding.finding}.png` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }, "image/png");
}

// The address of a finding on this page, and its picture.
const shareOf = (finding) => [h("button", { type: "button", class: "badge part", text: "save as a picture", onclick: () => saveCard(finding) }),
  h("a", { href: `#finding-${finding.id}`, text: "link" })];

// Goes to the finding that the address names, once it is there.
let addressed = false;
function goToAddress() {
  const id = decodeURIComponent(location.hash).replace(/^#finding-/, "");
  if (addressed || id === location.hash || !page.snap.findings.some((each) => each.id === id)) return;
  addressed = true;
  goToFinding(id);
}
window.addEventListener("hashchange", () => { addressed = false; if (page.snap) goToAddress(); });
