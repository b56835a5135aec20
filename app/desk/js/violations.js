// Safety violations beside the class, where the store asks for them: a rule, a severity, a step.

const SEVERITY_KEYS = ["1", "2", "3"];

const asksForViolations = (desk) => (desk.data.constraints || []).length > 0;

// The step that the reader is at; null at the task.
function stepAtHand(view) {
  const { transcript } = view;
  if (!transcript || transcript.at === 0) return null;
  return transcript.stepsAt(transcript.at)[0]?.step_id ?? "response";
}

const violationOf = (work, constraint) => work.violations.find((v) => v.constraint === constraint) || null;

function violationText(found) {
  return `${found.constraint}: ${found.severity}${found.step ? `, ${found.step}` : ""}`;
}

function renderViolations(view, work) {
  const { parts, desk } = view;
  parts.violationsRow.hidden = !asksForViolations(desk);
  if (parts.violationsRow.hidden) return;
  const marked = work.violations.map(violationText).join("; ");
  parts.violations.textContent = marked || "mark broken rules";
}

// The rules take the place of the question until V, Enter or Escape.
function openViolations(view) {
  if (!asksForViolations(view.desk)) return;
  view.mode = "violations";
  view.violationAt = 0;
  const step = stepAtHand(view);
  view.violationStep = step;
  view.overlay = {
    cancel: () => {
      view.mode = "answer";
      view.overlay = null;
      renderQuestion(view);
      renderStatus(view);
      view.focusTrace();
      view.mark();
    },
    // A click on the id of a step moves the mark of the rule at hand there.
    cite: (id) => {
      view.violationStep = id;
      const work = view.desk.workOn(view.trace.trace_id);
      const found = violationOf(work, view.desk.data.constraints[view.violationAt]);
      if (found) {
        found.step = id;
        view.desk.saveDraft(view.trace.trace_id);
      }
      renderRules(view);
    },
  };
  renderRules(view);
  renderStatus(view);
  view.mark();
}

function renderRules(view) {
  const { desk } = view;
  const work = desk.workOn(view.trace.trace_id);
  const button = (constraint, index, severity, place) => el("button", {
    type: "button", class: "choice", "aria-pressed": String(violationOf(work, constraint)?.severity === severity),
    onclick: () => setViolation(view, index, severity),
  }, index === view.violationAt && kbd(SEVERITY_KEYS[place]), el("span", { text: severity }));
  const where = view.violationStep ? `of step ${view.violationStep}` : "of the run as a whole";
  view.parts.decision.replaceChildren(
    el("div", { class: "question-box" },
      el("div", { class: "eyebrow", text: "Safety" }),
      el("div", { class: "question", role: "heading", "aria-level": "2", text: "Which rules were broken?" }),
      el("p", { class: "rule", text: `A new mark is ${where}. None is the usual answer.` })),
    el("ol", { class: "goal-list rules" }, ...desk.data.constraints.map((constraint, index) => {
      const found = violationOf(work, constraint);
      return el("li", { class: index === view.violationAt ? "here" : "", "data-rule": constraint, "data-said": found?.severity || "" },
        el("div", {}, el("span", { text: constraint }), found?.step && el("span", { class: "tag", text: found.step })),
        el("div", { class: "choices" }, ...desk.data.severities.map((severity, place) => button(constraint, index, severity, place))));
    })),
    el("div", { class: "row" }, el("button", { type: "button", class: "primary", onclick: () => view.overlay.cancel() },
      el("span", { text: "Back to the question" }), kbd("V"))),
  );
  view.parts.decision.querySelector("li.here")?.scrollIntoView({ block: "nearest" });
}

// The same severity again takes the mark off.
function setViolation(view, index, severity) {
  const { desk, trace } = view;
  const work = desk.workOn(trace.trace_id);
  const constraint = desk.data.constraints[index];
  const found = violationOf(work, constraint);
  const others = work.violations.filter((v) => v !== found);
  const step = found ? found.step : view.violationStep;
  work.violations = found?.severity === severity ? others : [...others, { constraint, severity, step }];
  view.violationAt = index;
  desk.saveDraft(trace.trace_id);
  renderRules(view);
  renderMarks(view);
}

function violationsAction(view, key, event) {
  const last = view.desk.data.constraints.length - 1;
  const moveTo = (index) => () => {
    view.violationAt = Math.max(0, Math.min(index, last));
    renderRules(view);
  };
  if (key === "j" || key === "ArrowDown") return moveTo(view.violationAt + 1);
  if (key === "k" || key === "ArrowUp") return moveTo(view.violationAt - 1);
  const place = SEVERITY_KEYS.indexOf(key);
  if (place >= 0) {
    const severity = view.desk.data.severities[place];
    return counts(view, key, event) ? () => setViolation(view, view.violationAt, severity) : nothing;
  }
  if (["v", "Enter", "Escape"].includes(key)) return event.repeat ? nothing : view.overlay.cancel;
  return /^[a-z1-9]$/.test(key) ? nothing : null;
}
