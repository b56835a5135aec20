// JSON in a text of a trace, shown as `key: value` lines or indented.
//
// A form is what is shown in place of a text: {text, map, tree}. `map` holds [place shown, place in
// the text, length] of each run that is copied, so that a selection leads back to literal words.
// `tree` holds what to paint: stretches [from, to] of what is shown, and elements around them.

const MOST_INDENT = 40; // levels; deeper nesting must not grow the text without bound
const ONE_LINE = 96; // characters
const BETWEEN = "  ·  "; // the members on one line
const MOST_JSON = 60; // levels of a value that is shown compactly

// Collects a form from left to right.
class Writer {
  constructor(raw) {
    Object.assign(this, { raw, out: [], map: [], length: 0 });
  }

  put(text) {
    this.out.push(text);
    this.length += text.length;
  }

  // Copies a stretch of the text; returns where it stands in what is shown.
  keep(from, to) {
    const at = this.length;
    if (to > from) {
      this.map.push([at, from, to - from]);
      this.put(this.raw.slice(from, to));
    }
    return [at, this.length];
  }

  form(tree = null) {
    return { text: this.out.join(""), map: this.map, tree };
  }
}

function isJson(raw) {
  if (!/^\s*[[{]/.test(raw)) return false;
  try {
    JSON.parse(raw);
    return true;
  } catch {
    return false;
  }
}

function stringEnd(raw, from) {
  let at = from + 1;
  while (raw[at] !== '"') at += raw[at] === "\\" ? 2 : 1;
  return at + 1;
}

// Only for text that is JSON: nothing here looks for mistakes.
function indentedJson(raw) {
  const writer = new Writer(raw);
  let depth = 0;
  const keep = (from, to) => { writer.keep(from, to); return to; };
  const newline = (extra = 0) => writer.put(`\n${"  ".repeat(Math.min(depth + extra, MOST_INDENT))}`);
  const string = (from) => {
    const end = stringEnd(raw, from);
    let start = from;
    for (let at = from + 1; at < end - 1; at += 1) {
      if (raw[at] !== "\\") continue;
      at += 1;
      if (raw[at] === "n" && at + 1 < end - 1) {
        keep(start, at + 1);
        newline(1);
        start = at + 1;
      }
    }
    return keep(start, end);
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
    else if (c === ":") { at = keep(at, at + 1); writer.put(" "); }
    else {
      const from = at;
      while (at < raw.length && !/[\s,{}[\]]/.test(raw[at])) at += 1;
      keep(from, at);
    }
  }
  return writer.form();
}

// The members of the outermost object or list without the quotation marks of their names and texts:
// short ones share a line, others have lines of their own. Null if it is nested too deeply for that.
function compactJson(raw) {
  const writer = new Writer(raw);
  const tree = [];
  let at = 0;
  let line = 0; // where the line began
  const blanks = () => { while (/\s/.test(raw[at] ?? "")) at += 1; };
  const leaf = (from, to) => tree.push(writer.keep(from, to));
  const put = (text) => {
    tree.push([writer.length, writer.length + text.length]);
    writer.put(text);
  };
  const name = () => {
    const end = stringEnd(raw, at);
    const plain = end - at > 2;
    tree.push({ tag: "span", class: "name", kids: [writer.keep(at + plain, end - plain)] });
    at = end;
    blanks();
    leaf(at, at + 1); // the colon
    put(" ");
    at += 1;
    blanks();
  };
  const value = (depth) => {
    if (depth > MOST_JSON) throw new RangeError("nested too deeply");
    const c = raw[at];
    if (c === '"') {
      const end = stringEnd(raw, at);
      const plain = depth === 0 && end - at > 2;
      leaf(at + plain, end - plain);
      at = end;
    } else if (c === "{" || c === "[") {
      const close = c === "{" ? "}" : "]";
      leaf(at, at + 1);
      at += 1;
      for (blanks(); raw[at] !== close; blanks()) {
        if (raw[at] === ",") {
          leaf(at, at + 1);
          put(" ");
          at += 1;
          blanks();
        }
        if (close === "}") name();
        value(depth + 1);
      }
      leaf(at, at + 1);
      at += 1;
    } else {
      const from = at;
      while (at < raw.length && !/[\s,{}[\]]/.test(raw[at])) at += 1;
      leaf(from, at);
    }
  };
  // Where the member at hand ends: its length decides whether it shares the line.
  const member = (close) => {
    const place = [tree.length, writer.out.length, writer.map.length, writer.length, at];
    const write = (between) => {
      if (between) put(between);
      if (between === "\n") line = writer.length;
      if (close === "}") name();
      value(0);
    };
    const first = writer.length === 0;
    write(first ? "" : BETWEEN);
    if (first || writer.length - line <= ONE_LINE) return;
    [tree.length, writer.out.length, writer.map.length, writer.length, at] = place;
    write("\n");
  };
  blanks();
  const close = raw[at] === "{" ? "}" : "]";
  const open = at;
  at += 1;
  blanks();
  try {
    if (raw[at] === close) {
      leaf(open, open + 1);
      leaf(at, at + 1);
    }
    for (; raw[at] !== close; blanks()) {
      if (raw[at] === ",") {
        at += 1;
        blanks();
      }
      member(close);
    }
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
  return writer.form(tree);
}
