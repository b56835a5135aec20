// Notices that a page which is open no longer reaches the session behind it.
//
// After the server was restarted, or a laptop slept for long, Streamlit connects again to a
// session that does not know this page, and drops what it sends. A reload makes a new session;
// what is not saved yet lies in this tab's session storage and is sent again under its tokens.

const SILENT_MS = 6000;
const GRACE_MS = 2000;
// A reload costs a busy server more than an answer: each waits twice as long as the one before.
const RELOAD_EVERY_MS = 30000;
const RELOADS_FORGOTTEN_MS = 600000;
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
      if (!answer.ok) return;
      // A server that was busy answers now: a reload would take the keys that are pressed.
      await new Promise((done) => window.setTimeout(done, GRACE_MS));
      if (!this.silent() || !safe()) return;
      const [last, wait] = (window.sessionStorage.getItem(RELOADED_KEY) || "0 0").split(" ").map(Number);
      const ago = Date.now() - last;
      if (ago < wait) return;
      const next = ago > RELOADS_FORGOTTEN_MS ? RELOAD_EVERY_MS : 2 * wait;
      window.sessionStorage.setItem(RELOADED_KEY, `${Date.now()} ${next}`);
    } catch {
      return; // no server, or no storage that says when we reloaded last
    }
    window.location.reload();
  }
}
