// Markdown in a text of a trace, as a form (see json.js): what is shown are stretches of the text
// itself without their marks, so that a selection is a literal piece of it. Nothing is hidden but
// marks, nothing loads: the address of a link or an image stands beside its words.

const MOST_MARKDOWN = 20_000; // characters; a parser may take quadratic time on hostile text
const MOST_ELEMENTS = 4_000;
const DEEPEST = 16;

const markdownParser = parser.configure([Table, Strikethrough, {
  remove: ["HTMLBlock", "HTMLTag", "LinkReference", "IndentedCode", "Entity"],
}]);

const MARKS = new Set(["HeaderMark", "EmphasisMark", "StrikethroughMark", "CodeMark", "QuoteMark", "ListMark", "TableDelimiter"]);
const INLINE = { Emphasis: "em", StrongEmphasis: "strong", Strikethrough: "s", InlineCode: "code" };
// Anything else is one paragraph of plain text, and that is quicker to see than to parse.
const MAY_BE_MARKDOWN = /[*_`#>|~[\\]|\n[ \t]*\n|\s$|^[ \t]*(?:[-+]|\d+[.)])[ \t]|^(?:-{2,}|={2,})\s*$/m;

// The form of a text, or null if it is one plain paragraph, or too long or nested too deeply. `plain`
// says that paragraphs are all it has.
function markdownForm(raw) {
  if (raw.length > MOST_MARKDOWN || !MAY_BE_MARKDOWN.test(raw)) return null;
  const writer = new Writer(raw);
  let elements = 0;
  let nested = 0; // lists and quotes around: the blanks at the start of their lines are not text
  let lineStart = true;

  const text = (from, to) => {
    if (nested === 0) return [writer.keep(from, to)];
    const kept = [];
    for (let at = from; at < to;) {
      while (lineStart && at < to && (raw[at] === " " || raw[at] === "\t")) at += 1;
      const stop = raw.indexOf("\n", at);
      const end = stop < 0 || stop >= to ? to : stop + 1;
      if (end > at) {
        kept.push(writer.keep(at, end));
        lineStart = raw[end - 1] === "\n";
      }
      at = end;
    }
    return kept;
  };
  const element = (tag, name, kids, attributes = {}) => {
    elements += 1;
    if (elements > MOST_ELEMENTS) throw new RangeError("too many elements");
    return { tag, class: name, kids, attributes };
  };
  const children = (node) => {
    const found = [];
    for (let child = node.firstChild; child; child = child.nextSibling) found.push(child);
    return found;
  };

  // The words of a block or of a stretch within it, from `from` to `to`.
  const words = (node, depth, from = node.from, to = node.to) => {
    if (depth > DEEPEST) throw new RangeError("nested too deeply");
    const kids = [];
    let at = from;
    for (const child of children(node)) {
      if (child.from < at || child.to > to) continue;
      kids.push(...text(at, child.from), ...inline(child, depth + 1));
      at = child.to;
    }
    kids.push(...text(at, to));
    return kids;
  };
  const inline = (node, depth) => {
    const { name } = node;
    if (MARKS.has(name)) return [];
    if (name === "Escape") return text(node.from + 1, node.to);
    if (name === "HardBreak") return text(node.to - 1, node.to);
    if (name === "Link" || name === "Image") return link(node, depth);
    if (INLINE[name]) return [element(INLINE[name], null, words(node, depth))];
    return text(node.from, node.to);
  };
  const link = (node, depth) => {
    const kids = children(node);
    const marks = kids.filter((kid) => kid.name === "LinkMark");
    if (!kids.some((kid) => kid.name === "URL") || marks.length < 4) return text(node.from, node.to);
    return [
      element("span", node.name === "Image" ? "image" : "link", words(node, depth, marks[0].to, marks[1].from)),
      element("span", "address", text(marks[2].from, marks[3].to)),
    ];
  };
  const row = (node, tag, depth) => {
    const cells = [];
    let cell = null;
    const bars = children(node);
    for (const [index, part] of bars.entries()) {
      if (part.name === "TableCell") cell = part;
      const last = index === bars.length - 1;
      if (part.name === "TableDelimiter" ? index > 0 : last) {
        if (cells.length > 0) writer.put(" ");
        cells.push(element(tag, null, cell ? words(cell, depth) : []));
        cell = null;
      }
    }
    return element("tr", null, cells);
  };
  const block = (node, depth) => {
    if (depth > DEEPEST) throw new RangeError("nested too deeply");
    const { name } = node;
    if (MARKS.has(name)) return [];
    if (writer.length > 0) writer.put("\n"); // so that no match of a search runs over two blocks
    lineStart = true;
    const inside = (tag, attributes) => {
      nested += 1;
      const kids = children(node).flatMap((child) => block(child, depth + 1));
      nested -= 1;
      return [element(tag, null, kids, attributes)];
    };
    if (name === "BulletList" || name === "OrderedList") return inside(name === "BulletList" ? "ul" : "ol");
    if (name === "ListItem") {
      const number = /^\d{1,9}/.exec(raw.slice(node.from, node.from + 10));
      return inside("li", number ? { value: number[0] } : {});
    }
    if (name === "Blockquote") return inside("blockquote");
    if (name === "HorizontalRule") return [element("hr", null, text(node.from, node.from))];
    if (name === "FencedCode") {
      const parts = children(node);
      const info = parts.find((part) => part.name === "CodeInfo");
      const language = info ? [element("span", "language", [writer.keep(info.from, info.to)])] : [];
      if (info) writer.put("\n");
      const code = parts.filter((part) => part.name === "CodeText").map((part) => writer.keep(part.from, part.to));
      return [...language, element("pre", null, code)];
    }
    if (name === "Table") {
      const rows = [];
      for (const part of children(node)) {
        if (part.name === "TableDelimiter") continue;
        if (rows.length > 0) writer.put("\n");
        rows.push(row(part, part.name === "TableHeader" ? "th" : "td", depth));
      }
      return [element("div", "table", [element("table", null, rows)])];
    }
    const level = /Heading(\d)$/.exec(name);
    if (level) {
      const marks = children(node).filter((child) => child.name === "HeaderMark");
      const from = marks[0]?.from === node.from ? marks[0].to : node.from;
      const end = marks.at(-1)?.to === node.to && marks.at(-1).from > from ? marks.at(-1).from : node.to;
      const blanks = /^[ \t]*/.exec(raw.slice(from, end))[0].length;
      const shown = raw.slice(from + blanks, end).trimEnd().length;
      const attributes = { role: "heading", "aria-level": String(Math.min(6, Number(level[1]) + 2)) };
      return [element("div", `title title-${level[1]}`, words(node, depth, from + blanks, from + blanks + shown), attributes)];
    }
    return [element("p", null, words(node, depth))];
  };

  try {
    const tree = children(markdownParser.parse(raw).topNode).flatMap((node) => block(node, 0));
    const form = writer.form(tree);
    const bare = (shown) => shown.replace(/\s+/g, "");
    const paragraphs = tree.length === elements && tree.every((node) => node.tag === "p");
    const plain = paragraphs && bare(form.text) === bare(raw);
    return plain && form.text === raw ? null : { ...form, plain };
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
