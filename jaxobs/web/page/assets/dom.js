// The few things that the page needs of the DOM. Every text goes in as text, never as markup.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value == null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

function s(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props)) if (value != null) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// A sentence in which `names` stand between backticks, as text and code.
function sentence(text) {
  return text.split("`").map((part, n) => (n % 2 ? h("code", { text: part }) : document.createTextNode(part)));
}

// The section of the docs about a finding or an error; its address is a link, and nothing is fetched.
function symptomOf(kind) {
  const [title, url] = SYMPTOM_SECTIONS[Object.hasOwn(SYMPTOMS, kind) ? SYMPTOMS[kind] : 0];
  return h("a", { class: "symptom", href: url, target: "_blank", rel: "noreferrer", text: title ? `By symptom: ${title}` : "By symptom" });
}

// Writes only what differs: an untouched text keeps the reader's selection.
function setText(node, value) { if (node.textContent !== value) node.textContent = value; }
function setTitle(node, value) { if (node.title !== value) node.title = value; }
function show(node, yes) { if (node.hidden === yes) node.hidden = !yes; }

// Makes the children of `parent` after `start` those of `items`: kept, moved, made or removed by key.
function keyed(parent, items, key, make, update, start = null) {
  const rows = parent.keyedRows || (parent.keyedRows = new Map());
  const wanted = new Set(items.map(key));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  for (const [name, row] of rows) if (!wanted.has(name)) { row.node.remove(); rows.delete(name); }
  let cursor = start ? start.nextSibling : parent.firstChild;
  for (const item of items) {
    const name = key(item);
    let row = rows.get(name);
    if (!row) { row = make(item); rows.set(name, row); }
    if (update) update(row, item);
    if (row.node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(row.node, cursor);
  }
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

// Rebuilds `parent` when `value` differs from the last one.
function redraw(parent, value, build) {
  const seen = JSON.stringify(value);
  if (parent.seen === seen) return;
  parent.seen = seen;
  parent.replaceChildren(...build());
}

// A thin stacked bar of [name, value, css variable]; `whole` is what full width stands for.
function stacked(node, parts, whole) {
  const drawn = parts.filter(([, value]) => value > 0);
  redraw(node, [drawn, whole], () => drawn.map(([name, value, colour]) => {
    const piece = h("i", { "data-part": name });
    piece.style.width = `${(100 * value) / whole}%`;
    piece.style.background = `var(--${colour})`;
    return piece;
  }));
}

// Brings a row into view, lights it up and puts the focus on it.
function reveal(node) {
  node.scrollIntoView({ block: "nearest" });
  node.focus({ preventScroll: true });
  node.classList.remove("found");
  void node.offsetWidth; // so that the animation starts again
  node.classList.add("found");
  setTimeout(() => node.classList.remove("found"), 4000);
}

// A small button that copies `text`. Away from localhost a page without TLS has no clipboard: then the old way.
function copier(text, what) {
  const button = h("button", { type: "button", class: "copy", title: `Copy ${what}`, "aria-label": `Copy ${what} ${text}` });
  const icon = (...shapes) => button.replaceChildren(s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, ...shapes));
  const rest = () => icon(s("path", { d: "M6 2.5h6.5v8H6zM3.5 5.5v8H10" }));
  rest();
  button.addEventListener("click", async () => {
    const done = await copied(text);
    icon(s("path", { d: done ? "M3 8.5l3.5 3.5L13 4.5" : "M4 4l8 8M12 4l-8 8" }));
    button.dataset.state = done ? "done" : "failed";
    setText($("said"), done ? `Copied ${text}` : `Could not copy ${text}`);
    setTimeout(() => { rest(); delete button.dataset.state; }, 1500);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = h("textarea", { class: "unseen", "aria-hidden": "true" });
    field.value = text;
    const focused = document.activeElement;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (focused) focused.focus({ preventScroll: true });
    return done;
  }
}

function nameNode(name, tag = "span") {
  const [prefix, rest] = splitName(name);
  return h(tag, { class: "fn mono", title: name }, h("span", { class: "prefix", text: prefix }), h("span", { class: "rest", text: rest }));
}

function chip(cause, number) {
  const known = CAUSES.includes(cause) ? cause : "unknown";
  return h("span", { class: "chip", "data-cause": known, title: `cause: ${cause}` },
    h("i", { "aria-hidden": "true" }), h("span", { text: spaced(cause) }),
    number == null ? null : h("b", { text: count(number) }));
}
