// One text of a trace: collapsed when long, JSON indented, diffs coloured, quotes set off.
//
// What is shown is the text itself plus, in indented JSON, line breaks and blanks between its
// tokens. Every shown place thus leads back to a place in the text, and a selection to a quote
// that stands literally in it.

const LONG_LINES = 40;
const LONG_CHARACTERS = 4000;
const PREVIEW_LINES = 20;
const PREVIEW_CHARACTERS = 1500;
const MOST_INDENT = 40; // levels; deeper nesting must not grow the text without bound
const MOST_DIFF_LINES = 5000;

const bytes = new TextEncoder();

function lineCount(text) {
  let n = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) n += 1;
  return n;
}

function size(text) {
  const n = bytes.encode(text).length;
  return n < 1000 ? plural(n, "byte") : `${count(n < 10000 ? Math.round(n / 100) / 10 : Math.round(n / 1000))} kB`;
}

// The object or list in `raw` with line breaks: {text, map}, or null for anything else.
// `map` holds [place shown, place in raw, length] of each run that is copied from `raw`.
function reindented(raw) {
  if (!/^\s*[[{]/.test(raw)) return null;
  try {
    JSON.parse(raw);
  } catch {
    return null;
  }
  const out = [];
  const map = [];
  let length = 0;
  let depth = 0;
  const put = (text) => { out.push(text); length += text.length; };
  const keep = (from, to) => { map.push([length, from, to - from]); put(raw.slice(from, to)); return to; };
  const newline = (extra = 0) => put(`\n${"  ".repeat(Math.min(depth + extra, MOST_INDENT))}`);
  const string = (from) => {
    let start = from;
    let at = from + 1;
    while (raw[at] !== '"') {
      const escape = raw[at] === "\\";
      at += escape ? 2 : 1;
      if (escape && raw[at - 1] === "n" && raw[at] !== '"') {
        keep(start, at);
        newline(1);
        start = at;
      }
    }
    return keep(start, at + 1);
  };
  let at = 0;
  while (at < raw.length) {
    const c = raw[at];
    if (/\s/.test(c)) at += 1;
    else if (c === '"') at = string(at);
    else if (c === "{" || c === "[") {
      at = keep(at, at + 1);
      while (/\s/.test(raw[at])) at += 1;
      if (raw[at] === "}" || raw[at] === "]") at = keep(at, at + 1);
      else { depth += 1; newline(); }
    } else if (c === "}" || c === "]") {
      depth -= 1;
      newline();
      at = keep(at, at + 1);
    } else if (c === ",") { at = keep(at, at + 1); newline(); }
    else if (c === ":") { at = keep(at, at + 1); put(" "); }
    else {
      const from = at;
      while (at < raw.length && !/[\s,{}[\]]/.test(raw[at])) at += 1;
      keep(from, at);
    }
  }
  return { text: out.join(""), map };
}

// Where a shown place of indented JSON stands in the raw text.
function rawPlace(map, shown, end) {
  let low = 0;
  let high = map.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (map[middle][0] <= shown) low = middle;
    else high = middle - 1;
  }
  const [at, raw, length] = map[low];
  if (shown <= at + length) return raw + Math.max(0, shown - at);
  return end || low === map.length - 1 ? raw + length : map[low + 1][1];
}

// The changed lines of unified diffs in a text: [start, end, kind]. Only lines that a hunk's
// own header counts are lines of a diff; a list with dashes around it is none.
function diffRuns(text) {
  if (!/^@@ -\d+(,\d+)? \+\d+(,\d+)? @@/m.test(text) || lineCount(text) > MOST_DIFF_LINES) return [];
  const runs = [];
  const add = (start, end, kind) => {
    const last = runs[runs.length - 1];
    if (last && last[1] === start && last[2] === kind) last[1] = end;
    else runs.push([start, end, kind]);
  };
  let old = 0;
  let fresh = 0;
  for (let at = 0; at < text.length;) {
    const stop = text.indexOf("\n", at);
    const end = stop < 0 ? text.length : stop + 1;
    const head = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(text.slice(at, Math.min(end, at + 80)));
    if (head) {
      [old, fresh] = [Number(head[1] ?? 1), Number(head[2] ?? 1)];
      add(at, end, "hunk");
    } else if (old > 0 || fresh > 0) {
      const sign = text[at];
      if (sign === "+") add(at, end, "added");
      else if (sign === "-") add(at, end, "removed");
      if (sign !== "+" && sign !== "\\") old -= 1;
      if (sign !== "-" && sign !== "\\") fresh -= 1;
    }
    at = end;
  }
  return runs;
}

const FIELDS = new WeakMap(); // the element of a painted text -> its field

class Field {
  constructor({ text, more }, { className, prose = false, whole = false, quotes = [] }) {
    Object.assign(this, { text, more, className, prose, whole, quotes, hits: [], nodes: [] });
    this.raw = this.quotes.some((quote) => text.includes(quote));
    this.open = this.raw;
  }

  get indented() {
    if (this.json === undefined) this.json = this.more > 0 ? null : reindented(this.text);
    return this.json;
  }

  get shown() {
    return this.indented && !this.raw ? this.indented.text : this.text;
  }

  // Where a collapsed text ends; its whole length if it is short or open.
  get cut() {
    const { shown } = this;
    const limit = this.prose ? 1.5 * LONG_CHARACTERS : LONG_CHARACTERS;
    const long = !this.whole && (shown.length > limit || (!this.prose && lineCount(shown) > LONG_LINES));
    this.long = long;
    if (!long || this.open) return shown.length;
    let at = 0;
    for (let n = 0; n < PREVIEW_LINES; n += 1) {
      const next = shown.indexOf("\n", at + 1);
      // A line too long for the preview is cut, unless enough lines stand before it.
      if (next < 0 || next > PREVIEW_CHARACTERS) return at > PREVIEW_CHARACTERS / 3 ? at : Math.min(PREVIEW_CHARACTERS, shown.length);
      at = next;
    }
    return at;
  }

  element() {
    if (this.box) return this.box;
    this.body = el("div", {});
    this.cutMark = el("div", { class: "cut", "aria-hidden": "true", text: "…" });
    this.toggle = el("button", { class: "expand", type: "button", onclick: () => this.setOpen(!this.open) });
    this.form = el("button", { class: "form", type: "button", onclick: () => this.setRaw(!this.raw) });
    this.box = el("div", { class: "text" }, this.form, this.body, this.cutMark, this.toggle,
      this.more > 0 && el("div", { class: "note", text: `${plural(this.more, "further character")} not shown` }));
    FIELDS.set(this.box, this);
    this.paint();
    return this.box;
  }

  setOpen(open) {
    this.open = open;
    this.paint();
  }

  setRaw(raw) {
    this.raw = raw;
    this.paint();
    this.box?.dispatchEvent(new CustomEvent("reform", { bubbles: true }));
  }

  paint() {
    if (!this.box) return;
    const end = this.cut;
    this.nodes = [];
    this.body.className = this.indented ? "code" : this.className;
    this.body.replaceChildren();
    let at = 0;
    const diff = this.indented ? [] : diffRuns(this.shown);
    for (const [from, to, kind] of diff) {
      if (from >= end) break;
      this.append(this.body, at, from);
      const line = el("span", { class: `diff ${kind}` });
      this.append(line, from, Math.min(to, end));
      this.body.append(line);
      at = Math.min(to, end);
    }
    this.append(this.body, at, end);
    this.cutMark.hidden = end >= this.shown.length;
    this.toggle.hidden = !this.long;
    this.toggle.textContent = this.open ? "Show less" : `Show all: ${plural(lineCount(this.shown), "line")}, ${size(this.text)}`;
    this.toggle.setAttribute("aria-expanded", String(this.open));
    this.form.hidden = !this.indented;
    this.form.textContent = this.raw ? "Show indented" : "Show raw";
    this.box.dispatchEvent(new CustomEvent("painted", { bubbles: true }));
  }

  // The places to set off: quotes of evidence and, without the highlight API, search matches.
  spans() {
    const found = [];
    if (this.raw || !this.indented) {
      for (const quote of this.quotes) {
        for (let at = this.text.indexOf(quote); quote && at >= 0; at = this.text.indexOf(quote, at + quote.length)) {
          found.push([at, at + quote.length, ""]);
        }
      }
    }
    if (!CSS.highlights) for (const hit of this.hits) found.push([hit.start, hit.end, hit.now ? "hit now" : "hit"]);
    return found.sort((a, b) => a[0] - b[0]);
  }

  append(parent, from, to) {
    let at = from;
    const text = (node, start, end) => {
      const leaf = document.createTextNode(this.shown.slice(start, end));
      this.nodes.push([leaf, start, end]);
      node.append(leaf);
    };
    for (const [start, end, name] of this.spans()) {
      const first = Math.max(start, at);
      const last = Math.min(end, to);
      if (first >= last) continue;
      if (first > at) text(parent, at, first);
      const mark = el("mark", { class: name || null });
      text(mark, first, last);
      parent.append(mark);
      at = last;
    }
    if (at < to) text(parent, at, to);
  }

  // Live ranges of a shown stretch, as far as it is painted.
  ranges(start, end) {
    return this.nodes.filter(([, from, to]) => from < end && start < to).map(([node, from, to]) => {
      const range = document.createRange();
      range.setStart(node, Math.max(start, from) - from);
      range.setEnd(node, Math.min(end, to) - from);
      return range;
    });
  }

  // The literal text under a selection, and "" if none of it is selected.
  selected(range) {
    let start = Infinity;
    let end = -1;
    for (const [node, from, to] of this.nodes) {
      if (!range.intersectsNode(node)) continue;
      const first = node === range.startContainer ? from + range.startOffset : from;
      const last = node === range.endContainer ? from + range.endOffset : to;
      if (first >= last) continue;
      start = Math.min(start, first);
      end = Math.max(end, last);
    }
    if (end < 0) return "";
    if (!this.indented || this.raw) return this.text.slice(start, end);
    const { map } = this.indented;
    return this.text.slice(rawPlace(map, start, false), rawPlace(map, end, true));
  }
}

// The words of the trace under a selection: literal when they stand in one text, else as the
// browser puts them together, and then the check of the quote says that they stand nowhere.
function literalSelection(area, selection) {
  const plain = selection.toString().trim();
  if (!plain || selection.rangeCount === 0) return plain;
  const range = selection.getRangeAt(0);
  const parts = [...area.querySelectorAll(".text")]
    .filter((box) => range.intersectsNode(box))
    .map((box) => FIELDS.get(box)?.selected(range))
    .filter(Boolean);
  return parts.length === 1 ? parts[0].trim() : plain;
}
