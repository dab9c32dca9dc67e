// A finding as a picture of 1200 x 630, as sites show beside a link: what it costs, where, and what to do.
const CARD = { left: 72, right: 1128, ink: "#eef2f7", quiet: "#9aa7b8", cure: "#5ec98b", seen: "#6ea8fe", severity: { critical: "#f0616d", warning: "#f2a93b" } };
const SANS = "system-ui, sans-serif", MONO = "ui-monospace, monospace";

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

function cardOf(finding) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1200, height: 630 });
  const pen = canvas.getContext("2d");
  const entry = (verdictOf(page.snap).findings || []).find((each) => each.id === finding.id);
  let y = 96;
  const write = (text, font, color, { most = 1, width = CARD.right - CARD.left, step = 1.25, x = CARD.left } = {}) => {
    pen.font = font; pen.fillStyle = color;
    for (const line of wrapped(pen, text, width, most)) { pen.fillText(line, x, y, width); y += parseInt(font.match(/(\d+)px/)[1], 10) * step; }
  };
  pen.fillStyle = "#10151c"; pen.fillRect(0, 0, 1200, 630);
  pen.fillStyle = CARD.severity[(entry && entry.severity) || finding.severity] || CARD.seen; pen.fillRect(0, 0, 16, 630);
  write(spaced(finding.finding).toUpperCase(), `600 24px ${SANS}`, CARD.quiet, { step: 2.2 });
  write(finding.summary, `600 42px ${SANS}`, CARD.ink, { most: 4 });
  const cost = [finding.count > 0 && counted(finding), finding.seconds > 0 && lostTime(finding), finding.bytes && bytes(finding.bytes)].filter(Boolean).join(" · ");
  y += 12;
  if (cost) write(cost, `600 32px ${SANS}`, CARD.severity.warning, { step: 1.6 });
  const seen = sizesSeen(finding.data.sizes), drawn = seen.length > 1;
  const half = drawn ? 600 : CARD.right - CARD.left;
  if (finding.advice) write(finding.advice, `30px ${SANS}`, CARD.cure, { most: Math.max(1, Math.floor((556 - y) / 38)), width: half });
  if (drawn) drawSizes(pen, seen, (finding.data.buckets || []).map(Number).filter((each) => each > 0), { left: 736, right: CARD.right, top: 372, floor: 520 });
  y = 588;
  write(finding.where || finding.subject || "", `26px ${MONO}`, CARD.quiet, { width: 880 });
  pen.textAlign = "right"; y = 588;
  write("jaxobs", `600 28px ${SANS}`, CARD.quiet, { x: CARD.right });
  return canvas;
}

// How often each size came, as bars; lines are the sizes to pad to.
function drawSizes(pen, seen, buckets, { left, right, top, floor }) {
  const low = seen[0][0], high = Math.max(seen[seen.length - 1][0], ...buckets), most = Math.max(...seen.map(([, n]) => n));
  const x = (size) => left + ((size - low + 1) / (high - low + 1)) * (right - left), thick = Math.max(3, Math.min(24, (right - left) / (high - low + 1) - 2));
  pen.fillStyle = CARD.seen;
  for (const [size, n] of seen) pen.fillRect(x(size) - thick, floor - Math.max(4, (n / most) * (floor - top)), thick, Math.max(4, (n / most) * (floor - top)));
  pen.fillStyle = CARD.quiet; pen.fillRect(left, floor, right - left, 2);
  pen.fillStyle = CARD.cure; pen.font = `22px ${SANS}`; pen.textAlign = "right";
  let free = left;
  for (const bucket of [...buckets].sort((a, b) => a - b)) {
    pen.fillRect(x(bucket), top - 12, 2, floor - top + 12);
    if (x(bucket) - pen.measureText(count(bucket)).width < free) continue;
    pen.fillText(count(bucket), x(bucket) + 2, floor + 28); free = x(bucket) + 12;
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
const shareOf = (finding) => h("p", { class: "share" },
  h("button", { type: "button", class: "badge part", text: "save as a picture", onclick: () => saveCard(finding) }), " ",
  h("a", { href: `#finding-${finding.id}`, text: "link" }));

// Goes to the finding that the address names, once it is there.
let addressed = false;
function goToAddress() {
  const id = decodeURIComponent(location.hash).replace(/^#finding-/, "");
  if (addressed || id === location.hash || !page.snap.findings.some((each) => each.id === id)) return;
  addressed = true;
  goToFinding(id);
}
window.addEventListener("hashchange", () => { addressed = false; if (page.snap) goToAddress(); });
