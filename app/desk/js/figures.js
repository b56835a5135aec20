// Above the trace, always in view: key figures of the run and a minimap of its steps.
// No cost: it must not move the class.

function stepSeconds(trace, index) {
  const step = trace.steps[index];
  if (step.seconds > 0) return step.seconds;
  const next = trace.steps[index + 1]?.at;
  return step.at !== null && next !== null && next !== undefined ? Math.max(0, next - step.at) : 0;
}

function figure(value, what, title) {
  return el("span", { class: "figure", title }, el("b", { text: value }), el("span", { text: ` ${what}` }));
}

function figures(trace, nextError) {
  const f = trace.figures;
  const tokens = f.tokens_in !== null || f.tokens_out !== null;
  const on = `Counted on ${plural(f.tokens_on, "step")} of ${count(trace.steps.length)}`;
  const word = (n, one) => (n === 1 ? one : `${one}s`);
  return [
    figure(count(trace.steps.length), word(trace.steps.length, "step")),
    trace.latency_s !== null && figure(seconds(trace.latency_s), ""),
    tokens && figure(
      f.tokens_in === null ? "–" : count(f.tokens_in), "tokens in", on),
    tokens && figure(f.tokens_out === null ? "–" : count(f.tokens_out), "out", on),
    figure(count(f.tool_calls), word(f.tool_calls, "tool call")),
    f.tool_errors > 0
      ? el("button", { type: "button", class: "figure bad", tabindex: "-1", title: "Go to the next tool error", onclick: nextError },
          el("b", { text: count(f.tool_errors) }), el("span", { text: ` ${word(f.tool_errors, "tool error")} ` }), kbd("X"))
      : figure("0", "tool errors"),
    trace.status && figure(trace.status, ""),
  ].filter(Boolean);
}

// One mark a step: its colour and height tell the role, its length the time.
function minimap(trace, go) {
  const lasted = trace.steps.map((_, index) => stepSeconds(trace, index));
  const typical = lasted.reduce((a, b) => a + b, 0) / Math.max(1, lasted.length);
  const marks = trace.steps.map((step, index) => {
    const role = step.role || "step";
    const label = [`Step ${index + 1}`, role, step.tool, step.error && "error",
      step.at !== null && `+${seconds(step.at)}`, lasted[index] > 0 && `took ${seconds(lasted[index])}`].filter(Boolean).join(", ");
    const mark = el("button", {
      type: "button", tabindex: "-1", title: label, "aria-label": label, "data-mark": String(index + 1),
      class: `tick ${knownRole(role)}${step.error ? " failed" : ""}`,
    });
    // Longest is six times as long as one without a time: every step can still be hit.
    mark.style.flexGrow = String(1 + (typical > 0 ? Math.min(5, lasted[index] / typical) : 0));
    return mark;
  });
  const nav = el("nav", { class: `minimap${marks.length > 120 ? " dense" : ""}`, "aria-label": "Steps" }, ...marks);
  nav.addEventListener("click", (event) => {
    const mark = event.target.closest("[data-mark]");
    if (mark) go(Number(mark.dataset.mark));
  });
  return { nav, marks };
}

function renderHead(transcript) {
  const { trace } = transcript;
  const { nav, marks } = minimap(trace, (number) => transcript.moveToStep(number));
  transcript.marks = marks;
  // A click there leaves the focus where it is: in a field that is typed in, or on the trace.
  return el("div", { class: "reading-head", onmousedown: (event) => event.preventDefault() },
    el("div", { class: "facts" },
      ...figures(trace, () => transcript.moveToError(1)),
      el("span", { class: "spacer" }),
      trace.agent && el("span", { text: trace.agent }), el("span", { class: "mono", text: trace.trace_id })),
    marks.length > 0 && nav);
}
