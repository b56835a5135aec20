// What a label holds beside its class: confidence, tags, sub-goals; and the flag for the lead.

const CONFIDENCE_TEXT = ["low", "middle", "high"];
const GOAL_TEXT = { done: "done", not_done: "not done", unclear: "unclear" };
const GOAL_KEYS = { y: "done", n: "not_done", u: "unclear" };
const MAX_TAGS = 50;
const MAX_TAG = 80;
const MAX_QUOTES = 20;
const TAGS_OFFERED = 6;
const QUOTE_SHOWN = 60;

function marksSkeleton() {
  const tagField = el("input", {
    id: "tag", class: "tag-field", autocomplete: "off", maxlength: String(MAX_TAG),
    placeholder: "add a tag", role: "combobox", "aria-expanded": "false", "aria-controls": "tag-hints",
  });
  const parts = {
    confidence: el("div", { class: "choices", role: "group", "aria-label": "Confidence" }),
    quotes: el("div", { class: "quotes" }),
    tags: el("span", { class: "chips" }),
    tagField,
    tagHints: el("div", { class: "tag-hints", id: "tag-hints", role: "listbox", "aria-label": "Tags to choose from", hidden: true }),
    tagMeaning: el("div", { class: "hint tag-meaning", role: "status", hidden: true }),
    goals: el("button", { type: "button", class: "goals-sum", "data-key": "G" }),
    violations: el("button", { type: "button", class: "violations-sum", "data-key": "V" }),
    flag: el("div", { class: "flag-note", role: "status", hidden: true }),
  };
  const row = (text, key, ...content) => el("div", { class: "mark" },
    el("span", { class: "mark-name" }, el("span", { text }), key && kbd(key)), ...content);
  parts.goalsRow = row("Sub-goals", "G", parts.goals);
  parts.violationsRow = row("Violations", "V", parts.violations);
  parts.violationsRow.hidden = true;
  parts.marks = el("div", { class: "marks" },
    row("Confidence", "", parts.confidence),
    row("Evidence", "E", parts.quotes),
    row("Tags", "T", el("div", { class: "tag-box" }, parts.tags, tagField, parts.tagHints, parts.tagMeaning)),
    parts.goalsRow, parts.violationsRow, parts.flag);
  return parts;
}

// Once a view: the tag field answers to typing and to losing the focus.
function listenMarks(view, options) {
  const { tagField } = view.parts;
  for (const name of ["input", "focus", "blur"]) {
    tagField.addEventListener(name, () => {
      view.tagAt = -1;
      renderTagHints(view);
    }, options);
  }
}

function renderMarks(view) {
  const { desk, parts, trace } = view;
  if (!trace) return;
  const work = desk.workOn(trace.trace_id);
  parts.confidence.replaceChildren(...CONFIDENCE_TEXT.map((text, index) =>
    el("button", {
      type: "button", class: "choice", "data-key": String(index + 1),
      "aria-pressed": String(work.confidence === index + 1),
    }, kbd(String(index + 1)), el("span", { text }))));
  renderQuotes(view, work);
  parts.tags.replaceChildren(...work.tags.map((tag) =>
    el("button", {
      type: "button", class: "chip", title: "Remove this tag", "aria-label": `Remove the tag ${tag}`,
      onclick: () => removeTag(view, tag),
    }, el("span", { text: tag }), el("span", { class: "cross", text: "×" }))));
  parts.goalsRow.hidden = trace.sub_goals.length === 0;
  const states = trace.sub_goals.map((goal) => work.goals[goal.id]);
  const said = Object.keys(GOAL_TEXT).map((state) => [states.filter((s) => s === state).length, GOAL_TEXT[state]])
    .filter(([n]) => n > 0).map(([n, text]) => `${n} ${text}`);
  const open = states.filter((state) => !state).length;
  parts.goals.textContent = said.length === 0 ? `tick ${plural(trace.sub_goals.length, "sub-goal")}`
    : [...said, ...(open > 0 ? [`${open} open`] : [])].join(", ");
  renderViolations(view, work);
  renderFlag(view);
}

function renderQuotes(view, work) {
  const shown = (text) => (text.length > QUOTE_SHOWN ? `${text.slice(0, QUOTE_SHOWN)} …` : text).replace(/\s+/g, " ");
  view.parts.quotes.replaceChildren(...work.evidence.map((item) =>
    el("button", {
      type: "button", class: "chip", title: "Remove this quote", "aria-label": `Remove the quote from ${item.step_id}`,
      onclick: () => dropEvidence(view, item),
    }, el("span", { class: "mono", text: item.step_id }), el("span", { text: shown(item.quote) }),
    el("span", { class: "cross", text: "×" }))),
  work.evidence.length < MAX_QUOTES
    && el("button", { type: "button", class: "cite", "data-key": "E", text: "quote words of the trace" }) || "");
}

function dropEvidence(view, item) {
  const work = view.desk.workOn(view.trace.trace_id);
  work.evidence = work.evidence.filter((known) => known !== item);
  view.desk.saveDraft(view.trace.trace_id);
  renderMarks(view);
}

function renderFlag(view) {
  const reason = view.trace ? view.desk.flagOn(view.trace.trace_id) : null;
  const text = reason === null ? "" : reason ? `Flagged for the lead: ${reason}` : "Flagged for the lead";
  const { flag } = view.parts;
  flag.hidden = !text;
  if (flag.textContent !== text) flag.textContent = text;
}

function setConfidence(view, level) {
  const { desk, trace } = view;
  const work = desk.workOn(trace.trace_id);
  work.confidence = work.confidence === level ? null : level;
  desk.saveDraft(trace.trace_id);
  renderMarks(view);
}

// The question with this place in the crumbs is asked again; what came after it is forgotten.
function backTo(view, index) {
  const { desk, trace } = view;
  const node = trace && desk.path(desk.workOn(trace.trace_id).answers)[index];
  if (!node) return;
  if (view.mode !== "answer") view.overlay?.cancel();
  desk.notice = "";
  desk.forget(trace.trace_id, node);
  desk.saveDraft(trace.trace_id);
  renderQuestion(view);
  renderStatus(view);
  view.mark();
}

const folded = (tag) => tag.toLowerCase();

function addTag(view, text) {
  const { desk, trace, parts } = view;
  const work = desk.workOn(trace.trace_id);
  const tag = text.replace(/[;,\s]+/g, " ").trim().slice(0, MAX_TAG);
  parts.tagField.value = "";
  if (tag && work.tags.length < MAX_TAGS && !work.tags.some((known) => folded(known) === folded(tag))) {
    work.tags.push(tag);
    desk.saveDraft(trace.trace_id);
  }
  view.tagAt = -1;
  renderMarks(view);
  renderTagHints(view);
}

function removeTag(view, tag) {
  const work = view.desk.workOn(view.trace.trace_id);
  work.tags = work.tags.filter((known) => known !== tag);
  view.desk.saveDraft(view.trace.trace_id);
  renderMarks(view);
  renderTagHints(view);
}

function tagsOffered(view) {
  const typed = folded(view.parts.tagField.value.trim());
  const { tags } = view.desk.workOn(view.trace.trace_id);
  const taken = new Set(tags.map(folded));
  return view.desk.tagsKnown()
    .filter((tag) => !taken.has(folded(tag)) && folded(tag).includes(typed)).slice(0, TAGS_OFFERED);
}

function renderTagHints(view) {
  const { parts } = view;
  const { tagField, tagHints } = parts;
  const focused = view.root.activeElement === tagField && view.trace;
  const full = focused && view.desk.workOn(view.trace.trace_id).tags.length >= MAX_TAGS;
  const offered = focused && !full ? tagsOffered(view) : [];
  tagHints.hidden = !full && offered.length === 0;
  tagField.setAttribute("aria-expanded", String(!tagHints.hidden));
  tagHints.replaceChildren(...(full
    ? [el("div", { class: "hint", text: `${MAX_TAGS} tags are the limit; Backspace removes the last one.` })]
    : offered.map((tag, index) => el("button", {
      type: "button", role: "option", class: "tag-hint", tabindex: "-1", title: meaning(view, tag),
      "aria-selected": String(index === view.tagAt),
      onpointerdown: (event) => event.preventDefault(), // the field keeps the focus
      onclick: () => addTag(view, tag),
    }, el("span", { text: tag })))));
  const words = offered[view.tagAt] ? meaning(view, offered[view.tagAt]) : "";
  parts.tagMeaning.textContent = words;
  parts.tagMeaning.hidden = !words;
}

// What the catalogue says of a tag, and how one recognises it; empty for a tag of one's own.
function meaning(view, tag) {
  const found = view.desk.pattern(tag);
  return found ? `${found.definition} Test: ${found.test}` : "";
}

function handleTagKey(view, event) {
  const field = view.parts.tagField;
  const offered = view.trace ? tagsOffered(view) : [];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    field.value = "";
    view.focusTrace();
  } else if (event.key === "Enter") {
    if (event.repeat) return;
    if (offered[view.tagAt]) addTag(view, offered[view.tagAt]);
    else if (field.value.trim()) addTag(view, field.value);
    else view.focusTrace();
  } else if ((event.key === "," || event.key === ";") && !event.repeat) {
    addTag(view, field.value);
  } else if (event.key === "Backspace" && field.value === "" && !event.repeat) {
    const last = view.desk.workOn(view.trace.trace_id).tags.at(-1);
    if (last) removeTag(view, last);
  } else if (step && offered.length > 0) {
    view.tagAt = Math.max(-1, Math.min((view.tagAt ?? -1) + step, offered.length - 1));
    renderTagHints(view);
  } else {
    return;
  }
  event.preventDefault();
}

// The sub-goals take the place of the question until G, Enter or Escape.
function openGoals(view) {
  if (view.trace.sub_goals.length === 0) return;
  const states = view.desk.workOn(view.trace.trace_id).goals;
  const open = view.trace.sub_goals.findIndex((goal) => !states[goal.id]);
  view.goalAt = Math.max(0, open);
  view.mode = "goals";
  view.overlay = {
    cancel: () => {
      view.mode = "answer";
      view.overlay = null;
      renderQuestion(view);
      renderStatus(view);
      view.focusTrace();
      view.mark();
    },
  };
  renderGoals(view);
  renderStatus(view);
  view.mark();
}

function renderGoals(view) {
  const states = view.desk.workOn(view.trace.trace_id).goals;
  const button = (goal, index, key) => el("button", {
    type: "button", class: `choice ${GOAL_KEYS[key]}`, "aria-pressed": String(states[goal.id] === GOAL_KEYS[key]),
    onclick: () => setGoal(view, index, GOAL_KEYS[key]),
  }, index === view.goalAt && kbd(key.toUpperCase()), el("span", { text: GOAL_TEXT[GOAL_KEYS[key]] }));
  view.parts.decision.replaceChildren(
    el("div", { class: "question-box" },
      el("div", { class: "eyebrow", text: "Sub-goals" }),
      el("div", { class: "question", role: "heading", "aria-level": "2", text: "Which of them are done?" })),
    el("ol", { class: "goal-list" }, ...view.trace.sub_goals.map((goal, index) =>
      el("li", { class: index === view.goalAt ? "here" : "", "data-goal": goal.id, "data-said": states[goal.id] || "" },
        el("div", {}, el("span", { text: goal.text.text }), !goal.matters && el("span", { class: "tag", text: "minor" })),
        el("div", { class: "choices" }, ...Object.keys(GOAL_KEYS).map((key) => button(goal, index, key)))))),
    el("div", { class: "row" }, el("button", { type: "button", class: "primary", onclick: () => view.overlay.cancel() },
      el("span", { text: "Back to the question" }), kbd("G"))),
  );
  view.parts.decision.querySelector("li.here")?.scrollIntoView({ block: "nearest" });
}

// The same answer again takes it off.
function setGoal(view, index, state) {
  const { desk, trace } = view;
  const { goals } = desk.workOn(trace.trace_id);
  const { id } = trace.sub_goals[index];
  if (goals[id] === state) delete goals[id];
  else goals[id] = state;
  view.goalAt = goals[id] ? Math.min(index + 1, trace.sub_goals.length - 1) : index;
  desk.saveDraft(trace.trace_id);
  renderGoals(view);
  renderMarks(view);
}

function goalsAction(view, key, event) {
  const last = view.trace.sub_goals.length - 1;
  const moveTo = (index) => () => {
    view.goalAt = Math.max(0, Math.min(index, last));
    renderGoals(view);
  };
  if (key === "j" || key === "ArrowDown") return moveTo(view.goalAt + 1);
  if (key === "k" || key === "ArrowUp") return moveTo(view.goalAt - 1);
  if (GOAL_KEYS[key]) return counts(view, key, event) ? () => setGoal(view, view.goalAt, GOAL_KEYS[key]) : nothing;
  if (["g", "Enter", "Escape"].includes(key)) return event.repeat ? nothing : view.overlay.cancel;
  return /^[a-z1-9]$/.test(key) ? nothing : null;
}

function pressFlag(view) {
  if (view.help || !["answer", "lesson"].includes(view.mode)) return;
  const id = view.trace.trace_id;
  if (view.desk.flagOn(id) !== null) {
    putFlag(view, id, false, "");
    return;
  }
  const field = el("input", {
    class: "quote", id: "flag-reason", maxlength: "300", autocomplete: "off",
    placeholder: "Reason (optional)",
  });
  const raise = () => {
    closeHelp(view);
    putFlag(view, id, true, field.value.trim());
  };
  openHelp(view, "Flag this trace for the lead",
    el("label", { class: "rule", for: "flag-reason", text: "The lead sees the flag; other reviewers do not. It is not a label." }),
    field);
  view.help.firstChild.lastChild.prepend(
    el("button", { type: "button", class: "primary", onclick: raise }, el("span", { text: "Flag" }), kbd("Enter")));
  view.modal = {
    accept: raise, cancel: () => closeHelp(view),
    action: (key) => ({ Enter: raise, Escape: () => closeHelp(view) })[key] || null,
  };
  field.focus();
}

function putFlag(view, id, flagged, reason) {
  view.desk.put({ kind: "flag", trace_id: id, flagged, reason });
  renderFlag(view);
  renderStatus(view);
  view.mark();
}
