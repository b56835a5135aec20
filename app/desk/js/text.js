// One text of a trace: Markdown and JSON in a form of their own, diffs coloured, quotes set off,
// collapsed when long.
//
// Every place of a form leads back to a place in the text, and a selection to a quote that stands
// literally in it.

// When a text is collapsed, and to what: in lines of so many characters, as on a wide screen. What
// was said, and the changes of a diff, are read more often than results.
const PROSE_LINES = { most: 12, preview: 8, wide: 120 };
const CODE_LINES = { most: 6, preview: 4, wide: 100 };
const MOST_DIFF_LINES = 5000;

const bytes = new TextEncoder();

function lineCount(text) {
  let n = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) n += 1;
  return n;
}

// Where the first `lines` lines of a text end, wrapped when longer than `wide`; its length if it has fewer.
function endOfLines(text, lines, wide) {
  let left = lines;
  for (let at = 0; at < text.length;) {
    const stop = text.indexOf("\n", at);
    const end = stop < 0 ? text.length : stop;
    const wrapped = Math.max(1, Math.ceil((end - at) / wide));
    if (wrapped > left) return at + left * wide;
    left -= wrapped;
    if (left === 0) return end;
    at = end + 1;
  }
  return text.length;
}

function size(text) {
  const n = bytes.encode(text).length;
  return n < 1000 ? plural(n, "byte") : `${count(n < 10000 ? Math.round(n / 100) / 10 : Math.round(n / 1000))} kB`;
}

// Where a place of a form stands in the text; the end of a stretch belongs to what is before it.
function rawPlace(map, shown, end) {
  const probe = end ? shown - 1 : shown;
  let low = 0;
  let high = map.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (map[middle][0] <= probe) low = middle;
    else high = middle - 1;
  }
  const [at, raw, length] = map[low];
  if (probe < at + length) return raw + Math.max(0, probe - at) + (end ? 1 : 0);
  return end || low === map.length - 1 ? raw + length : map[low + 1][1];
}

// The stretch of a form in which a stretch of the text is shown; null if none of it is.
function shownPlaces(map, from, to) {
  const first = map.find(([, raw, length]) => raw + length > from);
  const last = map.findLast(([, raw]) => raw < to);
  if (!first || !last || first[1] >= to || last[1] + last[2] <= from) return null;
  return [first[0] + Math.max(0, from - first[1]), last[0] + Math.min(last[2], to - last[1])];
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

// The forms of a text, the usual one first.
const PLAIN = ["Raw"];
const MARKDOWN = ["Rendered", "Raw"];
const JSON_FORMS = ["Compact", "Indented", "Raw"];

class Field {
  constructor({ text, more }, { className, prose = false, whole = false, quotes = [], lines }) {
    Object.assign(this, { text, more, className, prose, whole, quotes, hits: [], nodes: [] });
    this.lines = lines;
    this.open = this.quotes.some((quote) => text.includes(quote));
  }

  // Found when they are first needed: most texts of a long trace are never looked at.
  get forms() {
    if (this.known) return this.known;
    const whole = this.more === 0;
    this.made = {};
    if (whole && isJson(this.text)) this.known = JSON_FORMS;
    else {
      this.made.Rendered = this.prose && whole ? markdownForm(this.text) : null;
      this.known = this.made.Rendered ? MARKDOWN : PLAIN;
    }
    this.form = this.known[0];
    return this.known;
  }

  // What is shown in place of the text; of the text as it came, the field itself.
  get laid() {
    if (this.raw) return this;
    const make = { Compact: compactJson, Indented: indentedJson };
    this.made[this.form] ??= make[this.form](this.text) || indentedJson(this.text);
    return this.made[this.form];
  }

  get raw() {
    return this.forms === PLAIN || this.form === "Raw";
  }

  // Where a click on the button leads.
  get nextForm() {
    return this.forms[(this.forms.indexOf(this.form) + 1) % this.forms.length];
  }

  get shown() {
    return this.laid.text;
  }

  get diff() {
    return this.changes ??= this.forms === PLAIN ? diffRuns(this.text) : [];
  }

  // Where a collapsed text ends; its whole length if it is short or open.
  get cut() {
    const { shown } = this;
    const usual = this.prose || this.diff.length > 0 ? PROSE_LINES : CODE_LINES;
    const { most, preview, wide } = { ...usual, ...this.lines };
    this.long = !this.whole && endOfLines(shown, most, wide) < shown.length;
    return this.long && !this.open ? endOfLines(shown, preview, wide) : shown.length;
  }

  element() {
    if (this.box) return this.box;
    this.body = el("div", {});
    this.toggle = el("button", { class: "expand", type: "button", onclick: () => this.expand(!this.open) });
    this.button = el("button", { class: "form", type: "button", onclick: () => this.choose(this.nextForm) });
    this.box = el("div", { class: "text" }, this.button, ...(this.prose ? [this.body, this.toggle] : [this.toggle, this.body]),
      this.more > 0 && el("div", { class: "note", text: `${plural(this.more, "further character")} not shown` }));
    FIELDS.set(this.box, this);
    this.paint();
    return this.box;
  }

  setOpen(open) {
    this.open = open;
    this.paint();
  }

  // As the reader asks for it: JSON that is opened is read indented, and in another form all of it.
  expand(open) {
    this.open = open;
    if (this.forms === JSON_FORMS && !this.raw) this.setForm(open ? "Indented" : "Compact");
    else this.paint();
  }

  choose(name) {
    if (this.forms === JSON_FORMS) this.open = name !== "Compact";
    this.setForm(name);
  }

  setForm(name) {
    if (!this.forms.includes(name)) return;
    this.form = name;
    this.paint();
    this.box?.dispatchEvent(new CustomEvent("reform", { bubbles: true }));
  }

  paint() {
    if (!this.box) return;
    const { laid } = this;
    const end = this.cut;
    this.nodes = [];
    this.places = this.spans();
    this.body.className = [this.className, laid.tree && this.forms === MARKDOWN && "rendered", this.forms === JSON_FORMS && "code",
      end < this.shown.length && "cut"].filter(Boolean).join(" ");
    this.body.replaceChildren();
    if (laid.tree) this.grow(this.body, laid.tree, end);
    else this.lay(this.body, end);
    this.toggle.hidden = !this.long;
    const all = this.forms === JSON_FORMS ? size(this.text) : `${plural(lineCount(this.text), "line")}, ${size(this.text)}`;
    this.toggle.textContent = this.open ? "Show less" : `${this.prose ? "… " : ""}Show all: ${all}`;
    this.toggle.setAttribute("aria-expanded", String(this.open));
    // Where another form has little to add there is no button; R shows it all the same.
    const alike = laid.plain || (this.form === "Compact" && !/\n|[{[](?![}\]])/.test(this.shown));
    this.button.hidden = this.forms === PLAIN || alike;
    this.button.textContent = this.nextForm;
    this.button.title = `Show this text ${this.nextForm.toLowerCase()} (R: as it came)`;
    this.box.dispatchEvent(new CustomEvent("painted", { bubbles: true }));
  }

  // The elements of a form, as far as the text is shown.
  grow(parent, tree, end) {
    for (const part of tree) {
      if (Array.isArray(part)) {
        if (part[0] >= end && end < this.shown.length) return;
        this.append(parent, part[0], Math.min(part[1], end));
      } else {
        const node = el(part.tag, { class: part.class, ...part.attributes });
        const before = this.nodes.length;
        this.grow(node, part.kids, end);
        if (this.nodes.length > before || end >= this.shown.length) parent.append(node);
      }
    }
  }

  // Text as it came; the changed lines of a diff stand in boxes.
  lay(parent, end) {
    let at = 0;
    for (const [from, to, kind] of this.diff) {
      if (from >= end) break;
      this.append(parent, at, from);
      const line = el("span", { class: `diff ${kind}` });
      this.append(line, from, Math.min(to, end));
      parent.append(line);
      at = Math.min(to, end);
    }
    this.append(parent, at, end);
  }

  // The places to set off: quotes of evidence and, without the highlight API, search matches.
  spans() {
    const found = [];
    const { map } = this.laid;
    for (const quote of this.quotes) {
      for (let at = this.text.indexOf(quote); quote && at >= 0; at = this.text.indexOf(quote, at + quote.length)) {
        const place = map ? shownPlaces(map, at, at + quote.length) : [at, at + quote.length];
        if (place) found.push([...place, ""]);
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
    for (const [start, end, name] of this.places) {
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
    const { map } = this.laid;
    return map ? this.text.slice(...this.quoted(rawPlace(map, start, false), rawPlace(map, end, true))) : this.text.slice(start, end);
  }

  // A piece of JSON over more than one value takes the quotation marks around its ends along.
  quoted(from, to) {
    const { text } = this;
    const one = this.forms !== JSON_FORMS || !/[:,]/.test(text.slice(from, to)) || !text.slice(from, to).includes('"');
    if (one) return [from, to];
    return [text[from - 1] === '"' ? from - 1 : from, text[to] === '"' ? to + 1 : to];
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
