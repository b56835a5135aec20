// The decision panel: progress, the questions answered, the current one, rationale, classes.

const ANSWER_TEXT = { yes: "Yes", no: "No" };

function panelSkeleton() {
  const rationale = el("textarea", {
    class: "rationale", id: "rationale", rows: "2", maxlength: "1000", autocomplete: "off",
    placeholder: "One line: why this class (optional)",
  });
  return {
    purpose: el("div", { class: "purpose" }),
    done: el("span", { class: "done" }),
    saved: el("span", { class: "saved", role: "status", "aria-live": "polite" }),
    left: el("div", { class: "left detail" }),
    crumbs: el("ol", { class: "crumbs path", "aria-label": "Questions answered", hidden: true }),
    bar: el("div", { class: "bar", role: "progressbar", "aria-label": "Traces labelled" }, el("i")),
    notice: el("div", { class: "notice", role: "alert", hidden: true }),
    decision: el("div", { class: "decision" }),
    rationale,
    ...marksSkeleton(),
    rationaleBox: el(
      "div", { class: "rationale-box" },
      el("label", { for: "rationale" }, el("span", { text: "Rationale" }), kbd("W")),
      rationale,
      el("div", { class: "hint", text: "Write it before the last answer. Enter or Escape leaves the field." }),
    ),
    legend: el("dl", { class: "legend", "aria-label": "Classes" }),
    dock: el("div", { class: "dock" }),
    last: el("div", { class: "last" }),
    who: el("div", { class: "who detail" }),
    keys: el("div", { class: "keys" }),
  };
}

const LEGEND_FOLDS = 10; // labels; then the reviewer knows the classes

function panelElement(parts) {
  const summary = el("summary", { text: "Classes" });
  parts.legendBox = el("details", { class: "legend-box" }, summary, parts.legend);
  summary.addEventListener("click", () => {
    parts.legendBox.dataset.chosen = String(!parts.legendBox.open);
  });
  return el(
    "aside", { class: "panel", "aria-label": "Decision" },
    el("div", { class: "status" }, parts.purpose,
      el("div", { class: "status-line" }, parts.done, parts.saved), parts.bar, parts.left),
    parts.decision, // above what comes and goes: its buttons never move
    parts.notice,
    parts.crumbs,
    parts.rationaleBox,
    parts.marks,
    parts.legendBox,
    el("footer", {}, parts.dock, el("div", { class: "foot-line" }, parts.last, parts.who), parts.keys),
  );
}

function classTitle(desk, name) {
  return desk.data.tree.classes.find((c) => c.name === name)?.title || name;
}

const PURPOSES = { practice: "Practice", exam: "Examination", production: "Production", adjudication: "Adjudication" };

// What kind of labels these are, unmistakable; in practice with the score so far.
function renderPurpose(view) {
  const { data } = view.desk;
  const purpose = data.adjudication ? "adjudication" : data.purpose;
  const score = data.score?.of ? `${data.score.right} of ${data.score.of} right` : "";
  view.parts.purpose.className = `purpose ${purpose}`;
  view.parts.purpose.replaceChildren(el("b", { text: PURPOSES[purpose] || purpose }),
    score && el("span", { class: "score", text: score }));
}

// What changes whenever the server answers: never touches a field that is being typed in.
function renderStatus(view) {
  const { desk, parts } = view;
  renderPurpose(view);
  const { done, skipped, total } = desk.progress();
  const decided = ["state", "lesson", "settle"].includes(view.mode);
  const place = Math.min(done + skipped + (decided ? 0 : 1), total);
  parts.done.replaceChildren(
    el("strong", { text: view.mode === "state" ? `${done} of ${total} ${desk.data.adjudication ? "decided" : "labelled"}` : `${place} of ${total}` }),
    skipped > 0 && el("span", { class: "detail", text: ` ${skipped} skipped` }) || "",
  );
  parts.bar.setAttribute("aria-valuemin", "0");
  parts.bar.setAttribute("aria-valuemax", String(total));
  parts.bar.setAttribute("aria-valuenow", String(done + skipped));
  parts.bar.firstChild.style.width = total ? `${(100 * (done + skipped)) / total}%` : "0";

  const minutes = desk.minutesLeft();
  const left = total - done - skipped;
  const leftText = left > 0
    ? `${count(left)} left${minutes === null ? "" : `, about ${plural(minutes, "minute")} at your pace`}` : "";
  if (parts.left.textContent !== leftText) parts.left.textContent = leftText;

  const unsaved = desk.unsaved();
  const text = unsaved === 0 ? "All saved" : `Saving ${unsaved} …`;
  const late = unsaved > 0 && view.unsavedSince && performance.now() - view.unsavedSince > 5000;
  const shown = late ? `${unsaved} not saved yet; kept in this tab` : text;
  if (parts.saved.textContent !== shown) parts.saved.textContent = shown;
  parts.saved.classList.toggle("pending", unsaved > 0);
  parts.saved.classList.toggle("late", Boolean(late));
  if (unsaved === 0) view.unsavedSince = null;
  else view.unsavedSince ??= performance.now();

  const trouble = desk.data.trouble ? `The store did not answer: ${desk.data.trouble}` : "";
  const message = trouble || desk.notice;
  if (parts.notice.textContent !== message) parts.notice.textContent = message;
  parts.notice.hidden = !message;

  const last = desk.last();
  parts.last.replaceChildren(
    ...(last
      ? [el("span", { class: "detail", text: "Last: " }),
         el("span", { text: last.outcome ? classTitle(desk, last.outcome) : "skipped" })]
      : [el("span", { class: "detail", text: desk.data.adjudication ? "Nothing adjudicated yet" : "Nothing labelled yet" })]),
  );
  const who = `${desk.data.name} · ${desk.data.batch}`;
  if (parts.who.textContent !== who) parts.who.textContent = who;
  const work = view.trace ? desk.workOn(view.trace.trace_id) : null;
  const undo = view.mode === "settle" ? "one answer back" : work && desk.path(work.answers).length > 0 ? "one question back" : "undo last";
  const { adjudication } = desk.data;
  const flag = ["F", view.trace && desk.flagOn(view.trace.trace_id) !== null ? "unflag" : "flag"];
  const keys = view.mode === "lesson" ? [flag] : view.trace && !decided ? [["S", "skip"], flag, ["H", "handbook"]] : [];
  if (desk.data.skip_reasons.length === 0 && keys[0]?.[0] === "S") keys.shift();
  if (adjudication) keys.splice(0, keys.length, ...keys.filter(([key]) => key !== "F"));
  if (view.mode === "settle") keys.push(["W", "rationale"], ["H", "handbook"]);
  else parts.dock.replaceChildren();
  if (last && !adjudication) keys.push(["L", "my labels"]);
  keys.push(["?", "all keys"]);
  if (view.mode === "goals") keys.splice(0, keys.length, ["G", "back to the question"], ["?", "all keys"]);
  else if (view.mode === "violations") keys.splice(0, keys.length, ["V", "back to the question"], ["?", "all keys"]);
  else if ((last || undo !== "undo last") && view.mode !== "lesson") keys.unshift(["U", undo]);
  parts.keys.replaceChildren(...keys.flatMap(([key, what]) => [
    el("button", { type: "button", class: "key", "data-key": key, tabindex: "-1" }, kbd(key), el("span", { text: what })),
  ]));
}

// The answers so far, always in view; each leads back to its question.
function renderCrumbs(view, work) {
  view.parts.crumbs.replaceChildren(...view.desk.path(work.answers).map((node, index) =>
    el("li", {}, el("button", {
      type: "button", class: "crumb", title: "Back to this question", "aria-keyshortcuts": `Shift+${index + 1}`,
      onclick: () => {
        view.focusTrace();
        backTo(view, index);
      },
    },
    kbd(`⇧${index + 1}`), el("span", { class: "asked", text: node.question }),
    el("b", { class: work.answers[node.id], text: ANSWER_TEXT[work.answers[node.id]] })))));
}

// The words of a question; `asked` is a sub-goal that speaks against the answer just given.
function questionWords(node, number, asked) {
  if (!asked) {
    return [
      el("div", { class: "eyebrow", text: `Question ${number}` }),
      el("div", { class: "question", role: "heading", "aria-level": "2", text: node.question }),
      node.rule && el("p", { class: "rule", text: node.rule }),
    ].filter(Boolean);
  }
  return [
    el("div", { class: "eyebrow", text: node.question }),
    el("div", { class: "question", role: "heading", "aria-level": "2", text: "You ticked a sub-goal as not done. Still Yes?" }),
    el("p", { class: "rule two-lines", text: asked.text.text }),
  ];
}

// All questions share one place, as high as the highest: the buttons below it stay where they are.
function questionPlace(desk, node, number, asked) {
  const others = desk.data.tree.nodes.filter((other) => other !== node || asked);
  return el("div", { class: "questions" },
    ...others.map((other) => el("div", { class: "room", "aria-hidden": "true" }, ...questionWords(other, number))),
    el("div", { class: "question-box", "aria-live": "polite", "data-node": node.id, "data-asked": asked?.id },
      ...questionWords(node, number, asked)));
}

// The sub-goal that was ticked as not done, where an answer would say that all of it is done.
function goalAgainst(view, node, answer) {
  const work = view.desk.workOn(view.trace.trace_id);
  if (node[answer] !== "complete" || work.asked) return null;
  return view.trace.sub_goals.find((goal) => work.goals[goal.id] === "not_done") || null;
}

function renderQuestion(view, asked = null) {
  const { desk, parts } = view;
  view.asked = asked;
  const work = desk.workOn(view.trace.trace_id);
  const node = desk.question(work.answers);
  const number = desk.path(work.answers).length + 1;
  const button = (answer, key) =>
    el("button", { type: "button", class: `answer ${answer}`, "data-answer": answer, "aria-keyshortcuts": key },
      el("span", { text: ANSWER_TEXT[answer] }), kbd(key),
      work.before?.[node.id] === answer && el("span", { class: "tag", text: "before" }));
  renderCrumbs(view, work);
  renderMarks(view);
  parts.decision.replaceChildren(
    ...[
      questionPlace(desk, node, number, asked),
      el("div", { class: "answers" }, button("yes", "Y"), button("no", "N")),
      node.evidence_on && el("div", {
        class: "hint",
        text: `${ANSWER_TEXT[node.evidence_on]} asks for a quote: select the words in the trace first, or type them.`,
      }),
    ].filter(Boolean),
  );
  renderLegend(view, desk.reachable(work.answers));
}

function renderLegend(view, reachable) {
  const { legendBox } = view.parts;
  const chosen = legendBox.dataset.chosen;
  legendBox.open = chosen === undefined ? view.desk.progress().done < LEGEND_FOLDS : chosen === "true";
  view.parts.legend.replaceChildren(
    ...view.desk.data.tree.classes.flatMap((c) => {
      const name = `class-${c.name}${reachable && !reachable.has(c.name) ? " out" : ""}`;
      return [el("dt", { class: name, text: c.title }), el("dd", { class: name, text: c.meaning })];
    }),
  );
}

const STATE_TEXT = {
  loading: ["Loading the next trace …", ""],
  reopening: ["Reopening …", "Undoing your last decision …"],
  none: ["Nothing left for you", "Other reviewers have labelled all of this batch."],
  finished: ["All done", ""],
  waiting: ["Nothing for you right now", "Other reviewers have claimed the rest of this batch. Traces that they release appear here; this page checks every ten seconds."],
};

const ADJUDICATED = ["Nothing left to adjudicate", "You have decided every trace that was open to you. U undoes the last adjudication. Reload this page to look for new disagreements and flags."];

// What was done in this batch, and what can still be changed.
function finishedText(desk) {
  const { done, skipped } = desk.progress();
  const { score, purpose } = desk.data;
  return [
    `You labelled ${plural(done, "trace")}${skipped > 0 ? ` and skipped ${count(skipped)}` : ""}.`,
    score?.of ? `${score.right} of ${score.of} were right at the first attempt.` : "",
    purpose === "exam" ? "" : `L lists them: any label${skipped > 0 ? " or skipped trace" : ""} can be reopened. U undoes the last one.`,
  ].filter(Boolean).join(" ");
}

// No trace to label: say why.
function renderState(view, state) {
  const empty = state === "finished" && view.desk.progress().total === 0;
  const settled = state === "finished" && view.desk.data.adjudication;
  const [title, known] = settled ? ADJUDICATED : STATE_TEXT[empty ? "none" : state] || STATE_TEXT.loading;
  const text = state === "finished" && !settled && !empty ? finishedText(view.desk) : known;
  view.parts.decision.replaceChildren();
  view.parts.crumbs.replaceChildren();
  view.traceArea.replaceChildren(
    el("div", { class: "blank", role: "status" },
      el("div", { class: "question", role: "heading", "aria-level": "2", text: title }),
      text && el("p", { class: "rule", text })),
  );
  renderLegend(view, null);
}
