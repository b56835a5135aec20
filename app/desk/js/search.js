// Search inside the trace on the desk: in every text, collapsed and not yet painted ones too.

const MOST_HITS = 2000;

class Search {
  constructor(view) {
    this.view = view;
    this.hits = [];
    this.now = -1;
    this.input = el("input", {
      type: "text", maxlength: "200", autocomplete: "off", spellcheck: "false",
      placeholder: "Find in this trace", "aria-label": "Find in this trace", oninput: () => this.find(),
    });
    this.said = el("span", { class: "detail said", role: "status", "aria-live": "polite" });
    const button = (label, text, action) =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: action }, el("span", { text }));
    this.box = el("div", { class: "search", role: "search", hidden: true }, this.input, this.said,
      button("Previous match (Shift+Enter)", "↑", () => this.go(-1)),
      button("Next match (Enter)", "↓", () => this.go(1)),
      button("Close (Escape)", "×", () => this.close()));
  }

  get opened() {
    return !this.box.hidden;
  }

  open() {
    this.box.hidden = false;
    this.input.focus();
    this.input.select();
    if (this.input.value) this.find();
  }

  close() {
    this.clear();
    this.box.hidden = true;
    this.view.focusTrace();
  }

  reset() {
    this.clear();
    this.input.value = "";
    this.box.hidden = true;
  }

  clear() {
    const fields = new Set(this.hits.map((hit) => hit.field));
    this.hits = [];
    this.now = -1;
    for (const field of fields) {
      field.hits = [];
      if (!CSS.highlights) field.paint();
    }
    this.highlight();
  }

  // Also called when a text changes its form, as the places of the matches change with it.
  find(keep = false) {
    if (this.finding) return;
    this.finding = true;
    try {
      this.collect(keep);
    } finally {
      this.finding = false;
    }
  }

  collect(keep) {
    const { transcript } = this.view;
    const before = keep ? this.now : -1;
    this.clear();
    const query = this.input.value;
    this.said.textContent = "";
    if (!query || !transcript) return;
    const pattern = () => new RegExp(query.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu");
    for (const { field, stop } of transcript.fields) {
      let found = [...this.matches(field.shown, pattern())];
      if (found.length === 0 && !field.raw && pattern().test(field.text)) {
        field.setForm("Raw"); // it stands only in the text as it came
        found = [...this.matches(field.text, pattern())];
      }
      field.hits = found.map(([start, end]) => ({ field, stop, start, end, now: false }));
      this.hits.push(...field.hits);
      if (!CSS.highlights && found.length > 0) field.paint();
      if (this.hits.length >= MOST_HITS) break;
    }
    this.now = keep ? Math.min(before, this.hits.length - 1) : -1;
    if (this.hits.length === 0) this.said.textContent = "No match";
    else if (keep) this.say();
    else this.go(1, transcript.at);
    this.highlight();
  }

  *matches(text, pattern) {
    let n = this.hits.length;
    for (const match of text.matchAll(pattern)) {
      yield [match.index, match.index + match[0].length];
      n += 1;
      if (n >= MOST_HITS) return;
    }
  }

  // To the next match; `from` says at which stop to begin.
  go(by, from = null) {
    if (this.hits.length === 0) return;
    const { transcript } = this.view;
    const first = from === null ? -1 : this.hits.findIndex((hit) => transcript.stops.indexOf(hit.stop) >= from);
    const old = this.hits[this.now];
    this.now = from === null ? (this.now + by + this.hits.length) % this.hits.length : Math.max(0, first);
    const hit = this.hits[this.now];
    if (old) old.now = false;
    hit.now = true;
    transcript.fill(hit.stop);
    if (hit.end > hit.field.cut) hit.field.setOpen(true);
    if (!CSS.highlights) [old?.field, hit.field].forEach((field) => field?.paint());
    const input = hit.field.box.closest("details");
    if (input) input.open = true;
    transcript.hold(transcript.stops.indexOf(hit.stop));
    this.highlight();
    transcript.keepInView(() => this.scroll(hit), () => this.hits[this.now] === hit);
    this.say();
  }

  say() {
    const many = this.hits.length >= MOST_HITS ? `${count(MOST_HITS)} or more` : count(this.hits.length);
    this.said.textContent = `${count(this.now + 1)} of ${many}`;
  }

  scroll(hit) {
    const { area } = this.view.transcript;
    const place = hit.field.ranges(hit.start, hit.end)[0];
    if (!place) return;
    const box = place.getBoundingClientRect();
    const frame = area.getBoundingClientRect();
    if (box.top < frame.top + 40 || box.bottom > frame.bottom - 40) {
      area.scrollTop += box.top - frame.top - area.clientHeight / 3;
    }
  }

  highlight() {
    if (!CSS.highlights) return;
    const all = this.hits.flatMap((hit) => (hit.now ? [] : hit.field.ranges(hit.start, hit.end)));
    const now = this.hits[this.now];
    CSS.highlights.set("asr-hit", new Highlight(...all));
    CSS.highlights.set("asr-hit-now", new Highlight(...(now ? now.field.ranges(now.start, now.end) : [])));
  }

  // Texts painted while a search is open show their matches too; many at once, one pass.
  repaint() {
    if (!this.opened || this.hits.length === 0 || this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.highlight();
    });
  }

  key(event) {
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter") this.go(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  }
}
