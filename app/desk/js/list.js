// The reviewer's own last labels and skips: looked through, flagged, reopened; a label with a reason.

function openList(view) {
  if (view.help || !["answer", "state", "lesson"].includes(view.mode)) return;
  const body = el("div", { class: "own" });
  openHelp(view, "Your last labels", body);
  view.help.firstChild.classList.add("wide");
  view.modal = {
    body, at: 0, asking: false, accept: () => {}, cancel: () => closeHelp(view),
    action: (key, event) => listAction(view, key, event), render: () => renderList(view),
  };
  view.desk.data.own_labels = null; // read anew: what is on its way counts too
  view.desk.askForList();
  renderList(view);
}

function whenText(iso) {
  const at = new Date(iso);
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

function renderList(view) {
  const { modal, desk } = view;
  if (!modal || modal.asking) return;
  const labels = desk.data.own_labels;
  if (!labels) {
    modal.body.replaceChildren(el("p", { class: "rule", role: "status", text: "Reading your labels …" }));
    return;
  }
  if (labels.length === 0) {
    modal.body.replaceChildren(el("p", { class: "rule", role: "status", text: "You have labelled nothing in this batch yet." }));
    return;
  }
  modal.at = Math.max(0, Math.min(modal.at, labels.length - 1));
  modal.body.replaceChildren(
    el("p", { class: "rule", text: "Newest first, your own only. J and K move, Enter reopens, F flags or removes the flag." }),
    el("ol", { class: "own-list" }, ...labels.map((label, index) =>
      el("li", { class: index === modal.at ? "here" : "", "data-trace": label.trace_id },
        el("button", { type: "button", tabindex: "-1", onclick: () => askWhy(view, label) },
          el("span", { class: "detail", text: whenText(label.at) }),
          el("b", { text: label.outcome ? classTitle(desk, label.outcome) : "Skipped" }),
          el("span", { class: "mono", text: label.trace_id }),
          el("span", { class: "words", text: label.task }),
          desk.flagOn(label.trace_id) !== null && el("span", { class: "tag", text: "flagged" }))))),
  );
  modal.body.querySelector("li.here")?.scrollIntoView({ block: "nearest" });
}

function listAction(view, key, event) {
  const { modal } = view;
  const labels = view.desk.data.own_labels || [];
  if (modal.asking) return { Escape: modal.cancel, Enter: modal.accept }[key] || null;
  const moveTo = (index) => () => {
    modal.at = index;
    renderList(view);
  };
  if (key === "j" || key === "ArrowDown") return moveTo(modal.at + 1);
  if (key === "k" || key === "ArrowUp") return moveTo(modal.at - 1);
  if (key === "Home") return moveTo(0);
  if (key === "End") return moveTo(Infinity);
  if (event.repeat) return nothing;
  if (key === "Escape" || key === "l") return () => closeHelp(view);
  const label = labels[modal.at];
  if (label && key === "Enter") return () => askWhy(view, label);
  if (label && key === "f") {
    return () => {
      putFlag(view, label.trace_id, view.desk.flagOn(label.trace_id) === null, "");
      renderList(view);
    };
  }
  return null;
}

function askWhy(view, label) {
  if (!label.outcome) {
    reopenLabel(view, label.trace_id, "Labelled after all");
    return;
  }
  const { modal, desk } = view;
  const closeRow = view.help.firstChild.lastChild;
  const field = el("input", {
    class: "quote", id: "why", maxlength: "300", autocomplete: "off", placeholder: "A few words; stored with the change",
  });
  const back = () => {
    Object.assign(modal, { asking: false, accept: () => {}, cancel: () => closeHelp(view) });
    closeRow.hidden = false;
    renderList(view);
    view.help.firstChild.focus();
  };
  const accept = () => {
    const reason = field.value.trim();
    if (reason) reopenLabel(view, label.trace_id, reason);
    else field.focus();
  };
  Object.assign(modal, { asking: true, accept, cancel: back });
  closeRow.hidden = true;
  modal.body.replaceChildren(
    el("p", { class: "rule" }, el("span", { class: "mono", text: label.trace_id }),
      el("span", { text: ` ${classTitle(desk, label.outcome)} · ${label.task}` })),
    el("label", { class: "question", for: "why", text: "Why reopen this label?" }), field,
    el("div", { class: "row" },
      el("button", { type: "button", class: "primary", onclick: accept }, el("span", { text: "Reopen" }), kbd("Enter")),
      el("button", { type: "button", onclick: back }, el("span", { text: "Back to the list" }), kbd("Esc"))),
  );
  field.focus();
}

function reopenLabel(view, id, reason) {
  const { desk } = view;
  desk.notice = "";
  closeHelp(view);
  if (view.mode === "lesson") {
    view.mode = "answer";
    view.lessonShown = null;
  }
  desk.put({ kind: "undo", trace_id: "", undoes: id, reason });
  view.settle();
  renderStatus(view);
  view.mark();
}
