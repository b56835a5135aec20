// The keyboard. One listener on the window, before anything of Streamlit hears the key.

const QUIET_MS = 200; // after a trace is painted: a press that was meant for the last one
const BOUNCE_MS = 80; // one key twice so fast is one press

const TYPING = new Set(["INPUT", "TEXTAREA", "SELECT"]);

function isTyping(element) {
  return Boolean(element && (TYPING.has(element.tagName) || element.isContentEditable));
}

function keyOf(event) {
  if (/^[a-z?]$/i.test(event.key)) return event.key.toLowerCase();
  // A keyboard that writes another script: take the key by its place.
  const place = event.key.length === 1 && event.key > "\u007f" ? /^Key([A-Z])$/.exec(event.code) : null;
  return place ? place[1].toLowerCase() : event.key;
}

// A press that decides something counts once, on a painted trace, and not right after it.
// The time that matters is when the key went down, not when a busy page got to hear of it.
function counts(view, key, event) {
  const now = event.timeStamp;
  if (event.repeat) return false;
  const bounced = key === view.lastKey && now - view.lastKeyAt < BOUNCE_MS;
  view.lastKey = key;
  view.lastKeyAt = now;
  if (view.mode === "state") return !bounced;
  if (!view.ready) return false;
  if (now < view.quietUntil) {
    view.quietUntil = now + QUIET_MS;
    return false;
  }
  return !bounced;
}

function handleKey(view, event) {
  if (!view.frame.isConnected || event.isComposing) return;
  view.active();
  const target = event.composedPath()[0];
  const ours = view.root.contains(target);
  const elsewhere = !ours && target instanceof Element && target !== document.body
    && target !== document.documentElement;
  if (elsewhere && (isTyping(target) || target.closest("[role=dialog], [role=listbox], [role=combobox]"))) return;
  if (elsewhere && event.key.length > 1 && target.closest("button, a")) return;
  if (ours && isTyping(target)) {
    handleTyping(view, event);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const key = keyOf(event);
  if (["r", "c"].includes(key)) event.stopImmediatePropagation();
  if ((key === "Enter" || key === " ") && ours && target.tagName === "BUTTON") {
    if (event.repeat) event.preventDefault(); // a held key must not press a button again
    return;
  }
  if ((key === "Enter" || key === " ") && ours && target.tagName === "SUMMARY") return;
  const action = view.help ? helpAction(view, key, event) : deskAction(view, key, event);
  if (!action) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  action();
}

function handleTyping(view, event) {
  event.stopImmediatePropagation(); // typed letters are nobody's shortcut
  if (event.metaKey || event.altKey) return;
  const target = event.composedPath()[0];
  if (target === view.parts.tagField) {
    handleTagKey(view, event);
    return;
  }
  if (target === view.search.input) {
    view.search.key(event);
    return;
  }
  if (event.key === "Backspace" && target.value === "" && view.overlay?.dropLast) {
    if (!event.repeat) view.overlay.dropLast();
    return;
  }
  const inRationale = target === view.parts.rationale;
  if (event.key === "Escape") {
    event.preventDefault();
    if (inRationale) view.focusTrace();
    else (view.modal || view.overlay)?.cancel();
  } else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    if (event.repeat) return;
    if (inRationale) view.focusTrace();
    else (view.modal || view.overlay)?.accept?.();
  }
}

function helpAction(view, key, event) {
  if (view.modal) return view.modal.action(key, event);
  return ["?", "h", "Escape"].includes(key) ? () => closeHelp(view) : null;
}

const nothing = () => {};

function deskAction(view, key, event) {
  // A field that is open takes the letters, also after a click elsewhere.
  if (["evidence", "note"].includes(view.mode) && event.key?.length === 1) {
    view.overlay.field.focus();
    return null;
  }
  if (key === "?") return event.repeat ? nothing : () => toggleHelp(view);
  if (key === "h") return event.repeat ? nothing : () => toggleHandbook(view);
  if (view.desk?.data.adjudication && ["l", "f"].includes(key)) return nothing;
  if (key === "l") return event.repeat ? nothing : () => openList(view);
  if (key === "f") return event.repeat || !view.trace || !view.ready ? nothing : () => pressFlag(view);
  if (view.mode === "goals") return goalsAction(view, key, event);
  if (view.mode === "violations") return violationsAction(view, key, event);
  if (view.mode === "settle") {
    const action = settleAction(view, key, event);
    if (action) return action;
  }
  if (view.mode === "lesson" && (key === "Enter" || key === " ")) {
    return event.repeat ? nothing : () => view.goOn();
  }
  if (view.mode === "skip") {
    if (key === "Escape") return view.overlay.cancel;
    if (/^[1-9]$/.test(key)) return event.repeat ? nothing : () => view.overlay.choose(Number(key) - 1);
  }
  if (view.mode === "evidence" || view.mode === "note") {
    if (key === "Escape") return view.overlay.cancel;
    if (key === "Enter" && !event.repeat) return view.overlay.accept;
  }
  if (key === "y" || key === "n") return pressed(view, key, event, () => view.answer(key === "y" ? "yes" : "no"));
  if (key === "u") return pressed(view, key, event, () => view.back(), true);
  if (key === "s") return pressed(view, key, event, () => openSkip(view));
  const digit = event.shiftKey && /^Digit([1-9])$/.exec(event.code || "");
  if (digit) return pressed(view, `shift${digit[1]}`, event, () => backTo(view, Number(digit[1]) - 1));
  if (/^[1-3]$/.test(key)) return pressed(view, key, event, () => setConfidence(view, Number(key)));
  if (key === "e") return pressed(view, key, event, () => openEvidence(view));
  if (key === "g") return pressed(view, key, event, () => openGoals(view));
  if (key === "v" && asksForViolations(view.desk)) return pressed(view, key, event, () => openViolations(view));
  if (key === "t") return event.repeat || !view.ready || view.mode !== "answer" ? nothing : () => view.parts.tagField.focus();
  if (key === "w") return event.repeat || !view.ready ? nothing : () => view.parts.rationale.focus();
  return moveAction(view, key, event);
}

function pressed(view, key, event, action, inState = false) {
  if (!counts(view, key, event)) return nothing;
  return view.mode === "answer" || (inState && view.mode === "state") ? action : nothing;
}

function moveAction(view, key, event) {
  const { transcript } = view;
  if (!transcript) return key === "Escape" ? () => view.dismiss() : null;
  if (key === "j" || key === "ArrowDown") return () => transcript.move(1);
  if (key === "k" || key === "ArrowUp") return () => transcript.move(-1);
  if (key === "Home") return () => transcript.moveTo(0);
  if (key === "End") return () => transcript.moveTo(Infinity);
  if (key === "x") return () => transcript.moveToError(event.shiftKey ? -1 : 1);
  if (key === "r") return event.repeat ? nothing : () => transcript.toggleRaw();
  if (key === "/") return () => view.search.open();
  if (key === "Enter") return event.repeat ? nothing : () => transcript.toggleStep();
  if (key === "Escape") return () => (view.search.opened ? view.search.close() : view.dismiss());
  return null;
}
