// Adjudication: after the blind decision what the reviewers said, first where they part, and the
// decision that becomes consensus. The server gives their answers once the decision is stored.

const CAUSES = [
  ["trace_unclear", "Trace unclear", "the trace does not show what happened"],
  ["rubric_unclear", "Rubric unclear", "the question or the handbook can be read both ways"],
  ["slip", "Slip", "somebody overlooked something or pressed the wrong key"],
  ["real_judgement", "Real judgement", "competent people may differ here"],
];
const MOST_SETTLING = 50;

// What the adjudicator has put in so far; it stays in this tab until the browser is closed.
function settlingOn(desk, due) {
  const known = desk.settling[due.trace_id];
  if (known) return known;
  const oldest = Object.keys(desk.settling).slice(0, -MOST_SETTLING);
  for (const id of oldest) delete desk.settling[id];
  desk.settling[due.trace_id] = { answers: { ...due.answers }, cause: null, rationale: "" };
  return desk.settling[due.trace_id];
}

const labelsDiffer = (due) => new Set(due.given.map((label) => label.outcome)).size > 1;

// What the store would refuse, in the words of the page; empty when nothing is missing.
function settleMissing(desk, due) {
  const work = settlingOn(desk, due);
  const outcome = desk.leaf(work.answers);
  if (!outcome) return "Answer the question first.";
  if (labelsDiffer(due) && !work.cause) return "Say why they differ: 1, 2, 3 or 4.";
  if (work.rationale.trim()) return "";
  if (!due.given.some((label) => label.outcome === outcome)) return "No reviewer gave this class: write why (W).";
  if (outcome !== due.outcome) return "You decided otherwise before you saw the answers: write why (W).";
  return "";
}

// Puts the trace to settle on the desk, or waits for it; false when there is none.
function settleStep(view) {
  const { desk } = view;
  if (desk.outbox.some((event) => event.kind === "label")) {
    if (!view.trace) view.showState("loading");
    else renderSettleWaiting(view);
    return true;
  }
  const due = desk.settleDue();
  if (!due) {
    if (view.mode === "settle") {
      view.mode = "answer";
      view.trace = null;
    }
    view.settleShown = null;
    return false;
  }
  // A trace that came back must not take the one away that is being decided.
  const deciding = view.trace && view.mode !== "settle" && view.mode !== "state"
    && desk.openQueue().some((trace) => trace.trace_id === view.trace.trace_id);
  if (deciding) return false;
  const shown = [due.trace_id, due.supersedes, ...due.label_events].join("\n");
  if (view.mode === "settle" && view.settleShown === shown) return true;
  view.settleShown = shown;
  view.trace = due.trace;
  desk.currentId = due.trace_id;
  view.mode = "settle";
  view.read(new Transcript(due.trace, due.given.flatMap((label) => label.evidence)));
  view.ready = true;
  view.quietUntil = performance.now() + QUIET_MS;
  renderSettle(view, due);
  view.frame.querySelector(".panel").scrollTop = 0;
  view.traceArea.querySelector("mark")?.scrollIntoView({ block: "center" });
  view.focusTrace();
  return true;
}

function renderSettleWaiting(view) {
  if (view.mode === "settle" && view.settleShown === "") return;
  view.mode = "settle";
  view.settleShown = "";
  view.parts.legend.replaceChildren();
  view.parts.dock.replaceChildren();
  view.parts.decision.replaceChildren(el("div", { class: "question-box" },
    el("div", { class: "rule", role: "status", text: "Saving your decision; the reviewers' answers follow …" })));
}

// A question in a word or two; its whole text is the title.
const inShort = (node) => node.id.replaceAll("_", " ");
const answerText = (answer) => ANSWER_TEXT[answer] || "not asked";

// Who answered what at the question where the labels part.
function partingBox(desk, due) {
  const node = due.question && desk.node(due.question);
  if (!node) {
    const text = due.given.length > 1 ? "The reviewers agree."
      : due.given.length === 1 ? "One reviewer has labelled it." : "Nobody has labelled it.";
    return el("p", { class: "rule", text });
  }
  const row = (who, answer, own) => el("li", { class: own ? "own" : "" },
    el("span", { text: who }), el("b", { class: answer || "", text: answerText(answer) }));
  return el("div", { class: "parting" },
    el("div", { class: "eyebrow", text: "First difference" }),
    el("div", { class: "asked", text: node.question }),
    el("ol", { class: "crumbs lesson", "aria-label": "Answers at the first difference" },
      ...due.given.map((label) => row(`Reviewer ${label.who}`, label.answers[node.id], false)),
      row("You, blind", due.answers[node.id], true)));
}

function givenBox(desk, label) {
  const path = desk.path(label.answers).map((node) => `${inShort(node)} ${label.answers[node.id]}`).join(" → ");
  return el("li", { class: "given" },
    el("div", { class: "given-head" },
      el("b", { text: `Reviewer ${label.who}${label.own ? " (you)" : ""}` }),
      el("b", { class: `class-${label.outcome}`, text: classTitle(desk, label.outcome) })),
    el("div", { class: "detail", text: label.rationale ? path : `${path}; no rationale` }),
    label.rationale && el("div", { text: label.rationale }),
    label.violations && el("div", { class: "detail", text: `Safety violations: ${label.violations}` }),
    label.evidence.length > 0 && el("ul", { class: "evidence-list" }, ...label.evidence.map((item) =>
      el("li", {}, el("span", { class: "mono", text: item.step_id }), el("span", { text: ` “${item.quote}”` })))));
}

function finalBox(view, due, work) {
  const { desk } = view;
  const outcome = desk.leaf(work.answers);
  const node = outcome ? null : desk.question(work.answers);
  const crumbs = desk.path(work.answers).map((asked, index) =>
    el("li", {}, el("button", {
      type: "button", class: "crumb", title: `Back to: ${asked.question}`, "aria-keyshortcuts": `Shift+${index + 1}`,
      onclick: () => settleBackTo(view, index),
    }, kbd(`⇧${index + 1}`), el("span", { class: "asked", text: inShort(asked) }),
    el("b", { class: work.answers[asked.id], text: answerText(work.answers[asked.id]) }))));
  const button = (answer, key) =>
    el("button", { type: "button", class: `answer ${answer}`, "data-answer": answer, "aria-keyshortcuts": key },
      el("span", { text: ANSWER_TEXT[answer] }), kbd(key));
  const kept = outcome === due.outcome;
  return el("div", { class: "final" },
    el("div", { class: "eyebrow", text: outcome && kept ? "Final label, as you decided blind" : "Final label" }),
    el("div", { class: "question", role: "heading", "aria-level": "2", text: outcome ? classTitle(desk, outcome) : node.question }),
    node && el("div", { class: "answers" }, button("yes", "Y"), button("no", "N")),
    el("ol", { class: "crumbs path settle-path", "aria-label": "Answers" }, ...crumbs));
}

function causeBox(view, due, work) {
  if (!labelsDiffer(due)) return null;
  return el("div", { class: "causes", role: "group", "aria-label": "Why they differ" },
    el("div", { class: "eyebrow", text: "Why do they differ?" }),
    ...CAUSES.map(([cause, title, meaning], index) => el("button", {
      type: "button", class: work.cause === cause ? "chosen" : "", title: meaning,
      "aria-pressed": String(work.cause === cause), "aria-keyshortcuts": String(index + 1),
      onclick: () => setCause(view, index),
    }, kbd(String(index + 1)), el("span", { text: title }))));
}

function renderSettle(view, due) {
  const { desk, parts } = view;
  const work = settlingOn(desk, due);
  const outcome = desk.leaf(work.answers);
  const field = el("textarea", {
    class: "rationale", id: "settle-rationale", rows: "2", maxlength: "1000", autocomplete: "off",
    placeholder: "Why this class",
  });
  field.value = work.rationale;
  const missing = el("div", { class: "hint missing", role: "status", "aria-live": "polite" });
  const confirm = el("button", { type: "button", class: "primary", onclick: () => confirmSettle(view) },
    el("span", { text: outcome ? `Save as final: ${classTitle(desk, outcome)}` : "Save as final" }), kbd("Enter"));
  const say = () => {
    missing.textContent = settleMissing(desk, due);
  };
  field.addEventListener("input", () => {
    work.rationale = field.value.replace(/\s*\n\s*/g, " ");
    desk.keep();
    say();
  });
  // Enter and Escape leave the field; see handleTyping.
  const leave = () => view.focusTrace();
  view.overlay = { accept: leave, cancel: leave };
  say();
  const changed = due.standing
    && `Labels have changed since this was adjudicated as ${classTitle(desk, due.standing)}. That decision counts until you decide again.`;
  const blind = due.blind ? "You decided blind: "
    : "You had been shown its labels before, so this is kept as not blind: ";
  parts.decision.replaceChildren(...[
    changed && el("div", { class: "notice", role: "alert", text: changed }),
    el("div", { class: "said" }, el("span", { class: "detail", text: blind }), el("b", { text: classTitle(desk, due.outcome) })),
    partingBox(desk, due),
    el("ol", { class: "given-list", "aria-label": "The reviewers' answers" }, ...due.given.map((label) => givenBox(desk, label))),
    ...due.flags.map((reason) => el("p", { class: "rule", text: `Flagged: ${reason || "no reason given"}` })),
    finalBox(view, due, work),
    el("div", { class: "rationale-box" },
      el("label", { for: "settle-rationale" }, el("span", { text: "Rationale" }), kbd("W")), field),
  ].filter(Boolean));
  // In the foot, for what is still to do must be in sight however much the reviewers wrote.
  parts.dock.replaceChildren(...[
    causeBox(view, due, work), missing, el("div", { class: "row" }, confirm),
  ].filter(Boolean));
  parts.legend.replaceChildren();
}

function redrawSettle(view) {
  const due = view.desk.settleDue();
  if (!due) return;
  renderSettle(view, due);
  view.desk.keep();
  view.focusTrace();
  if (!view.desk.leaf(settlingOn(view.desk, due).answers)) {
    view.parts.decision.querySelector(".final").scrollIntoView({ block: "nearest" });
  }
  renderStatus(view);
  view.mark();
}

// The browser brings a field that gets the focus into the panel, but not out from behind its foot.
function settleWrite(view) {
  const field = view.parts.decision.querySelector("#settle-rationale");
  field?.focus();
  field?.scrollIntoView({ block: "nearest" });
}

function setCause(view, index) {
  const due = view.desk.settleDue();
  if (!due || !labelsDiffer(due)) return;
  settlingOn(view.desk, due).cause = CAUSES[index][0];
  redrawSettle(view);
}

function settleAnswer(view, answer) {
  const due = view.desk.settleDue();
  const work = settlingOn(view.desk, due);
  if (view.desk.leaf(work.answers)) return; // decided: U or a number goes back first
  work.answers[view.desk.question(work.answers).id] = answer;
  redrawSettle(view);
}

function settleBackTo(view, index) {
  const due = view.desk.settleDue();
  const work = settlingOn(view.desk, due);
  for (const node of view.desk.path(work.answers).slice(index)) delete work.answers[node.id];
  redrawSettle(view);
}

// One question back; before the first one, the last adjudication is taken back.
function settleBack(view) {
  const { desk } = view;
  const path = desk.path(settlingOn(desk, desk.settleDue()).answers);
  if (path.length > 0) settleBackTo(view, path.length - 1);
  else view.takeBack();
}

function confirmSettle(view) {
  const { desk } = view;
  const due = desk.settleDue();
  if (!due) return;
  const missing = settleMissing(desk, due);
  if (missing) {
    view.parts.dock.querySelector(".missing")?.classList.add("bad");
    if (missing.includes("(W)")) settleWrite(view);
    return;
  }
  const work = settlingOn(desk, due);
  desk.notice = "";
  desk.put({
    kind: "settle", trace_id: due.trace_id, answers: { ...work.answers }, cause: labelsDiffer(due) ? work.cause : null,
    rationale: work.rationale.trim(), supersedes: due.supersedes, label_events: due.label_events,
  });
  view.overlay = null;
  view.settle();
  renderStatus(view);
  view.focusTrace();
  view.mark();
}

function settleAction(view, key, event) {
  if (["s", "e", "g", "t"].includes(key)) return nothing;
  const digit = event.shiftKey && /^Digit([1-9])$/.exec(event.code || "");
  const back = digit ? Number(digit[1]) - 1 : -1;
  const action = {
    y: () => settleAnswer(view, "yes"), n: () => settleAnswer(view, "no"), u: () => settleBack(view),
    1: () => setCause(view, 0), 2: () => setCause(view, 1), 3: () => setCause(view, 2), 4: () => setCause(view, 3),
    Enter: () => confirmSettle(view),
    w: () => settleWrite(view),
  }[key] || (back >= 0 ? () => settleBackTo(view, back) : null);
  if (!action) return null;
  return view.desk.settleDue() && counts(view, key, event) ? action : nothing;
}
