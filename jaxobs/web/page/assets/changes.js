// What differs between two signatures: a table of paths with the part that changed marked in both texts.
const SHOWN_CHANGES = 3, DIFFERENCE_MOST = 240, INLINE = 50;

// Numbers, words, quoted texts and single signs: what a reader takes for one thing.
const tokens = (text) => text.match(/'[^']*'|"[^"]*"|[A-Za-z_][\w.]*|\d+(?:\.\d+)?|\s+|[^]/g) || [];

// Both texts as [part, differs] runs, by the longest common subsequence of their tokens.
function differing(before, after) {
  const a = tokens(before), b = tokens(after);
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail);
  const [inX, inY] = x.length * y.length > DIFFERENCE_MOST ** 2 ? [new Set(), new Set()] : common(x, y);
  const marked = (all, middle, kept) => {
    const parts = [];
    all.forEach((token, n) => {
      const differs = n >= head && n < head + middle.length && !kept.has(n - head);
      const last = parts[parts.length - 1];
      if (last && last[1] === differs) last[0] += token;
      else parts.push([token, differs]);
    });
    return parts;
  };
  return [marked(a, x, inX), marked(b, y, inY)];
}

// Positions of a longest common subsequence, in each of the two.
function common(x, y) {
  const width = y.length + 1;
  const best = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i -= 1)
    for (let j = y.length - 1; j >= 0; j -= 1)
      best[i * width + j] = x[i] === y[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  const inX = new Set(), inY = new Set();
  for (let i = 0, j = 0; i < x.length && j < y.length; ) {
    if (x[i] === y[j]) { inX.add(i++); inY.add(j++); }
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return [inX, inY];
}

const partsOf = (parts) => parts.map(([text, differs]) => (differs ? h("mark", { text }) : document.createTextNode(text)));

function changesOf(event) {
  const { changes, cause } = event;
  const kinds = changes.some((change) => change.what !== cause);
  const first = changesTable(changes.slice(0, SHOWN_CHANGES), kinds);
  const rest = changes.slice(SHOWN_CHANGES);
  if (!rest.length) return first;
  const more = h("details", { class: "rest-changes" }, h("summary", { text: plural(rest.length, "more change") }));
  // Hundreds of rows cost nothing before somebody asks for them.
  more.addEventListener("toggle", () => more.append(changesTable(rest, kinds)), { once: true });
  return h("div", {}, first, more);
}

function changesTable(changes, kinds) {
  const long = changes.some((change) => change.path.length + change.before.length + change.after.length > INLINE);
  return h("table", { class: `changes mono${long ? " long" : ""}` },
    h("thead", { class: "unseen" }, h("tr", {}, ...["Argument", "Before", "Now"].map((text) => h("th", { scope: "col", text })))),
    h("tbody", {}, ...changes.map((change) => {
      const [before, after] = differing(change.before, change.after);
      return h("tr", { title: `${spaced(change.what)} of ${change.path || "the call"}` },
        h("th", { scope: "row" }, change.path || spaced(change.what), kinds && change.path ? h("small", { text: spaced(change.what) }) : null),
        h("td", {}, h("del", {}, ...partsOf(before))),
        h("td", {}, h("span", { class: "arrow", text: "→", "aria-hidden": "true" }), " ", h("ins", {}, ...partsOf(after))));
    })));
}
