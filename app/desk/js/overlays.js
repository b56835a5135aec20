// What opens over the question: the evidence box, the list of skip reasons, the key help.

const HELP = [
  ["Y  N", "answer yes or no"],
  ["U", "one question back; on the first question, undo the last label or skip"],
  ["S", "skip this trace, with a reason"],
  ["⇧1 … ⇧9", "back to that question"],
  ["1  2  3", "how sure you are: low, middle, high; the same key again clears it"],
  ["E", "quote words of the trace as evidence: select them first, or type them; Backspace in the empty box removes the last"],
  ["T", "tags: type, Enter adds; arrows choose a suggestion; Escape leaves"],
  ["G", "tick the sub-goals: Y done, N not done, U unclear"],
  ["V", "mark safety violations of the step at hand: J and K choose the rule; 1 low, 2 medium, 3 high; the same key again takes it off"],
  ["F", "flag this trace for the lead, with or without a reason; the same key again removes it"],
  ["L", "your last 200 labels; Enter reopens one, with a reason"],
  ["W", "write the rationale; Escape, Enter or Ctrl+Enter leaves the field"],
  ["J  K", "next or previous step (also the arrow keys)"],
  ["Home  End", "task, final response"],
  ["X  Shift+X", "next or previous tool error"],
  ["/", "search this trace; Enter and Shift+Enter go on and back, Escape closes"],
  ["Enter", "open or collapse the long texts of the current step"],
  ["R", "the texts of the current step in raw form: without Markdown, JSON on one line; the same key again shows them as before"],
  ["H", "the handbook on this question"],
  ["?", "show or hide this list"],
  ["Escape", "close, cancel, leave a text field"],
];

const ADJUDICATION_HELP = [
  ["Y  N", "answer yes or no"],
  ["U", "one question back; before the first one, undo the last adjudication or skip"],
  ["⇧1 … ⇧9", "back to that question"],
  ["1  2  3  4", "once the answers are shown: why they differ (trace unclear, rubric unclear, slip, real judgement)"],
  ["Enter", "once the answers are shown: save it as final"],
  ...HELP.filter(([keys]) => ["S", "E", "W", "J  K", "Home  End", "X  Shift+X", "/", "R", "H", "?", "Escape"].includes(keys)),
];

function selectionInTrace(view) {
  const owner = view.root.getSelection ? view.root : document;
  const selection = owner.getSelection();
  const text = selection ? literalSelection(view.traceArea, selection) : "";
  if (!text) return { text: "", step: "" };
  const at = selection.anchorNode;
  const element = at && (at.nodeType === Node.ELEMENT_NODE ? at : at.parentElement);
  if (!element || !view.traceArea.contains(element)) return { text: "", step: "" };
  return { text, step: element.closest("[data-step]")?.dataset.step || "" };
}

// For an answer that asks for a quote, or (no answer) for a quote that goes with any class.
function openEvidence(view, answer = null) {
  const chosen = selectionInTrace(view);
  const work = view.desk.workOn(view.trace.trace_id);
  const node = answer && view.desk.question(work.answers);
  const earlier = answer ? work.evidence.find((e) => e.node === "")?.quote || "" : "";
  const quote = el("textarea", {
    class: "quote", id: "quote", rows: "4", autocomplete: "off",
    placeholder: "Paste or type the words exactly",
    "aria-describedby": "quote-found",
  });
  quote.value = chosen.text || earlier;
  const found = el("div", { class: "found", id: "quote-found", role: "status", "aria-live": "polite" });
  const accept = el("button", { type: "button", class: "primary" }, el("span", { text: "Accept" }), kbd("Enter"));
  const cancel = el("button", { type: "button" }, el("span", { text: "Cancel" }), kbd("Esc"));
  const full = () => work.evidence.length >= MAX_QUOTES;
  const where = () => {
    const places = quote.value.trim() ? findQuote(view.trace, quote.value.trim(), Boolean(answer)) : [];
    return places.includes(chosen.step) ? chosen.step : places[0] || "";
  };
  const verdict = () => {
    if (full()) return [false, `The most is ${MAX_QUOTES} quotes; Backspace in the empty box removes the last.`];
    if (!quote.value.trim()) return [false, answer ? "Select the invented words in the trace." : ""];
    const step = where();
    if (!step && answer && findQuote(view.trace, quote.value.trim()).length > 0) {
      return [false, "These words are in the system prompt: the agent did not invent them."];
    }
    if (!step) return [false, "Not found: copy the words exactly from a step or from the final response."];
    const elsewhere = chosen.step && chosen.step !== step ? ` It is not in step ${chosen.step}.` : "";
    const many = findQuote(view.trace, quote.value.trim(), Boolean(answer)).length - 1;
    const place = step === "response" ? "the final response" : `step ${step}`;
    return [true, `Found in ${place}${many > 0 ? ` and ${plural(many, "other place")}` : ""}.${elsewhere}`];
  };
  const check = () => {
    const [good, text] = verdict();
    found.classList.toggle("bad", !good && (full() || Boolean(quote.value.trim())));
    found.textContent = text;
    accept.disabled = !good;
  };
  const close = () => {
    view.mode = "answer";
    view.overlay = null;
    renderQuestion(view);
    view.focusTrace();
    view.mark();
  };
  const take = () => {
    if (!verdict()[0]) return;
    const item = { node: node ? node.id : "", step_id: where(), quote: quote.value.trim() };
    const same = (e) => e.step_id === item.step_id && e.quote === item.quote;
    work.evidence = [...work.evidence.filter((e) => !same(e) && !(node && e.node === node.id)), item];
    view.mode = "answer";
    view.overlay = null;
    if (answer) {
      view.commit(answer);
      return;
    }
    view.desk.saveDraft(view.trace.trace_id);
    close();
  };
  const dropLast = () => {
    if (work.evidence.length > 0) dropEvidence(view, work.evidence.at(-1));
    check();
  };
  quote.addEventListener("input", check);
  accept.addEventListener("click", take);
  cancel.addEventListener("click", close);
  check();
  view.mode = "evidence";
  // A click on the id of a step says which of several places is meant.
  const cite = (step) => {
    chosen.step = step;
    check();
  };
  const select = ({ text, step }) => {
    if (text) {
      Object.assign(chosen, { text, step });
      quote.value = text;
      check();
    }
    quote.focus();
  };
  view.overlay = { accept: take, cancel: close, cite, dropLast, take: select, field: quote };
  view.parts.decision.replaceChildren(
    el("div", { class: "question-box evidence" },
      el("div", { class: "eyebrow", text: node ? node.question : "Evidence" }),
      el("label", { class: "question", for: "quote", text: node ? "Which words are invented?" : "Which words support the class?" }),
      quote, found,
      el("div", { class: "row" }, accept, cancel)),
  );
  quote.focus();
  quote.select();
  view.mark();
}

function openSkip(view) {
  const reasons = view.desk.data.skip_reasons;
  if (reasons.length === 0) return; // an examination has no skips
  const close = () => {
    view.mode = "answer";
    view.overlay = null;
    renderQuestion(view);
    view.focusTrace();
    view.mark();
  };
  const choose = (index) => {
    if (index === reasons.length - 1) note();
    else if (reasons[index]) skip(reasons[index]);
  };
  const skip = (reason) => {
    view.mode = "answer";
    view.overlay = null;
    view.skip(reason);
  };
  const note = () => {
    const field = el("input", { class: "quote", id: "note", maxlength: "300", autocomplete: "off", placeholder: "Reason in your words" });
    const send = () => field.value.trim() && skip(`${reasons[reasons.length - 1]}: ${field.value.trim()}`);
    const accept = el("button", { type: "button", class: "primary", onclick: send }, el("span", { text: "Skip" }), kbd("Enter"));
    view.mode = "note";
    view.overlay = { accept: send, cancel: close, take: () => field.focus(), field };
    view.parts.decision.replaceChildren(
      el("div", { class: "question-box" },
        el("label", { class: "question", for: "note", text: "Why skip this trace?" }), field,
        el("div", { class: "row" }, accept,
          el("button", { type: "button", onclick: close }, el("span", { text: "Cancel" }), kbd("Esc")))),
    );
    field.focus();
    view.mark();
  };
  view.mode = "skip";
  view.overlay = { choose, cancel: close };
  view.parts.decision.replaceChildren(
    el("div", { class: "question-box" },
      el("div", { class: "question", role: "heading", "aria-level": "2", text: "Why skip this trace?" }),
      el("div", { class: "reasons" },
        ...reasons.map((reason, index) =>
          el("button", { type: "button", onclick: () => choose(index) }, kbd(String(index + 1)), el("span", { text: reason })))),
      el("div", { class: "row" }, el("button", { type: "button", onclick: close }, el("span", { text: "Cancel" }), kbd("Esc")))),
  );
  view.mark();
}

function closeHelp(view) {
  view.help.remove();
  view.help = null;
  view.modal = null;
  view.focusTrace();
}

function openHelp(view, title, ...content) {
  const box = el(
    "div", { class: "help-box", role: "dialog", "aria-modal": "true", "aria-label": title, tabindex: "-1" },
    heading(title),
    ...content,
    el("div", { class: "row" },
      el("button", { type: "button", onclick: () => closeHelp(view) }, el("span", { text: "Close" }), kbd("Esc"))),
  );
  view.help = el("div", { class: "help" }, box);
  view.frame.append(view.help);
  box.focus();
}

function toggleHelp(view) {
  if (view.help) return closeHelp(view);
  const skips = view.desk.data.skip_reasons.length > 0;
  const usable = ([key]) => (skips || key !== "S") && (asksForViolations(view.desk) || key !== "V");
  const help = (view.desk.data.adjudication ? ADJUDICATION_HELP : HELP).filter(usable);
  openHelp(view, "Keys", el("dl", {}, ...help.flatMap(([keys, what]) => [
    el("dt", {}, ...keys.split("  ").map(kbd)), el("dd", { text: what })])));
  return view.help.firstChild.classList.add("wide");
}

// The handbook on the question at hand; without a trace, on the first one.
function toggleHandbook(view) {
  if (view.help) return closeHelp(view);
  const { desk } = view;
  const due = view.mode === "settle" && desk.settleDue();
  const node = (due && desk.node(due.question)) || (view.trace && desk.question(desk.workOn(view.trace.trace_id).answers))
    || desk.node(desk.data.tree.root);
  const text = desk.data.handbook[node.id] || "The handbook has no entry for this question.";
  return openHelp(view, node.question, el("div", { class: "handbook", text }));
}
