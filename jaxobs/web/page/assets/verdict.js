// The verdict: the worst first, on top of everything.
const WORDS = { fix: "Fix", watch: "Watch", ok: "OK" };

const verdictOf = (snap) => snap.verdict || { verdict: "ok", headline: "", findings: [] };
const entriesOf = (snap) => new Map(verdictOf(snap).findings.map((entry) => [entry.id, entry]));

function costOf(cost) {
  const share = cost.share != null && cost.share >= 0.005 ? ` (${percent(cost.share)} of the time)` : "";
  return [cost.seconds != null && `${seconds(cost.seconds)} lost${share}`, cost.bytes && bytes(cost.bytes)].filter(Boolean);
}

// The last two names of a path; the whole one is in the evidence.
const placeOf = (where) => where && where.replace(/^\/\S*?([^/\s]+\/[^/\s]+:\d+)/, "$1");

function drawVerdict(snap) {
  const verdict = snap.verdict;
  show($("verdict"), Boolean(verdict));
  if (!verdict) return;
  const worst = verdict.findings[0];
  $("verdict").dataset.verdict = verdict.verdict;
  $("verdict").dataset.severity = worst ? worst.severity : "";
  setText($("verdict-word"), WORDS[verdict.verdict] || verdict.verdict);
  const text = worst && verdict.headline.startsWith(worst.title) ? worst.title : verdict.headline;
  redraw($("verdict-text"), text, () => sentence(text));
  show($("verdict-do"), Boolean(worst && worst.do));
  redraw($("verdict-do"), worst && worst.do, () => (worst && worst.do ? [h("strong", { text: "Do" }), ...sentence(worst.do)] : []));
  const rest = verdict.findings.filter((each) => !each.caused_by).length - 1;
  const told = worst ? [...costOf(worst.cost), placeOf(worst.where), rest > 0 && `${plural(rest, "other finding")} below`].filter(Boolean) : [];
  const finding = worst && snap.findings.find((each) => each.id === worst.id);
  show($("verdict-cost"), told.length > 0 || Boolean(finding));
  redraw($("verdict-cost"), [told, finding && finding.finding], () => [...told.flatMap((each, n) => [n ? " · " : "", h("span", { text: each })]),
    ...(finding ? [told.length ? " · " : "", symptomOf(finding.finding)] : [])]);
}
