// After the label of a practice trace: the canonical answers beside one's own, and why.

function lessonAnswers(view, lesson) {
  const { nodes } = view.desk.data.tree;
  const asked = nodes.filter((node) => lesson.answers[node.id] || lesson.yours[node.id]);
  const said = (answer) => ANSWER_TEXT[answer] || "not asked";
  return el("ol", { class: "crumbs lesson", "aria-label": "Your answers and the canonical ones" },
    ...asked.map((node) => {
      const same = lesson.answers[node.id] === lesson.yours[node.id];
      const text = same ? said(lesson.answers[node.id])
        : `you ${said(lesson.yours[node.id])},\ncanonical ${said(lesson.answers[node.id])}`;
      return el("li", { class: same ? "same" : "other" }, el("span", { text: node.question }), el("b", { text }));
    }));
}

function renderLesson(view) {
  const { desk, parts, trace } = view;
  const lesson = desk.lessonOn(trace.trace_id);
  parts.rationaleBox.hidden = true;
  if (!lesson && !desk.outbox.some((e) => e.kind === "label" && e.trace_id === trace.trace_id)) {
    // Refused, or a trace that has no canonical label: nothing to wait for.
    view.mode = "answer";
    view.trace = null;
    view.settle();
    return;
  }
  if (!lesson) {
    parts.decision.replaceChildren(el("div", { class: "question-box" },
      el("div", { class: "rule", role: "status", text: "Saving your label …" })));
    return;
  }
  if (view.lessonShown === lesson.trace_id) return;
  view.lessonShown = lesson.trace_id;
  delete desk.work[trace.trace_id]; // answers of a draft that the label has replaced
  const right = lesson.outcome === lesson.your_outcome;
  const next = el("button", { type: "button", class: "primary", onclick: () => view.goOn() },
    el("span", { text: "Next trace" }), kbd("Enter"));
  parts.decision.replaceChildren(
    el("div", { class: `question-box verdict ${right ? "right" : "wrong"}`, role: "status" },
      el("div", { class: "eyebrow", text: right ? "Correct" : `Your answer: ${classTitle(desk, lesson.your_outcome)}` }),
      el("div", { class: "question", role: "heading", "aria-level": "2", text: classTitle(desk, lesson.outcome) }),
      el("p", { class: "rule", text: lesson.rationale })),
    lessonAnswers(view, lesson),
    el("div", { class: "row" }, next),
    el("h3", { text: "Evidence, marked in the trace" }),
    el("ul", { class: "evidence-list" }, ...lesson.evidence.map((item) => el("li", {},
      el("span", { class: "mono", text: item.step_id }), el("span", { text: ` ${item.shows}` })))),
    // A team's own set need not name the nearest wrong class.
    lesson.nearest_wrong
      ? el("p", { class: "rule", text: `Not ${classTitle(desk, lesson.nearest_wrong)}: ${lesson.why_not}` })
      : "",
    lesson.overridden ? el("p", { class: "hint", text: `Your team changed the published label: ${lesson.overridden}` }) : "",
  );
  parts.legend.replaceChildren();
  view.read(new Transcript(trace, lesson.evidence));
  const first = view.traceArea.querySelector("mark");
  first?.scrollIntoView({ block: "center" });
}
