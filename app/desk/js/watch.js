// Notices that a page which is open no longer reaches the session behind it.
//
// After the server was restarted, or a laptop slept for long, Streamlit connects again to a
// session that does not know this page, and drops what it sends. A reload makes a new session;
// what is not saved yet lies in this tab's session storage and is sent again under its tokens.

const SILENT_MS = 6000;
const RELOAD_EVERY_MS = 30000;
const RELOADED_KEY = "asr-desk-reloaded";

class Watchdog {
  constructor() {
    this.since = null; // the first time that something was sent and nothing has come back
  }

  sent() {
    this.since ??= performance.now();
  }

  answered() {
    this.since = null;
  }

  silent() {
    return this.since !== null && performance.now() - this.since > SILENT_MS;
  }

  // Reloads the page if the server answers others, though not us. `safe` says whether all that
  // is not saved outlives a reload.
  async check(safe) {
    if (!this.silent() || !safe()) return;
    try {
      const answer = await fetch(new URL("healthz", window.location.href), { cache: "no-store" });
      if (!answer.ok || !this.silent() || !safe()) return;
      const last = Number(window.sessionStorage.getItem(RELOADED_KEY)) || 0;
      if (Date.now() - last < RELOAD_EVERY_MS) return;
      window.sessionStorage.setItem(RELOADED_KEY, String(Date.now()));
    } catch {
      return; // no server, or no storage that says when we reloaded last
    }
    window.location.reload();
  }
}
