"use strict";
// What the pages do by themselves: say how old they are, age their times, open dialogs, copy IDs.
(() => {
  const STALE_MS = 2500; // the desk gives a sign of life each second
  const SILENT_MS = 8000; // then the connection itself is taken for dead
  const RECONNECT_MS = 1000;
  const FINAL = { 4403: "Signed out, or without a role", 4404: "This does not exist" };

  const byId = (id) => document.getElementById(id);
  const live = byId("live");
  const baseTitle = document.title.replace(/^\(.*?\) /, "");
  let heardAt = performance.now(); // when the last message came
  let offsetMs = 0; // the server's clock minus ours
  let asOf = ""; // the server's time of what is shown
  let ended = "";
  let socket = null;

  const utc = (date) => date.toISOString().slice(11, 19);

  // ---- how old the page is

  function heard() {
    const position = byId("position");
    if (!position || !position.dataset.at) return;
    heardAt = performance.now();
    offsetMs = Number(position.dataset.at) - Date.now();
    asOf = utc(new Date(Number(position.dataset.at)));
    tick();
  }

  function tick() {
    if (!live) return;
    const silentMs = performance.now() - heardAt;
    const stale = Boolean(ended) || silentMs > STALE_MS;
    const banner = byId("stale");
    const fresh = byId("freshness");
    document.body.classList.toggle("is-stale", stale);
    const state = stale ? "Not up to date" : asOf ? "Up to date" : "Connecting";
    if (fresh.textContent !== state) fresh.textContent = state;
    fresh.dataset.state = stale ? "stale" : asOf ? "fresh" : "waiting";
    if (stale) {
      const why = ended ? `${ended}. Reload the page.` : "Reconnecting.";
      const since = asOf ? `What you see is from ${asOf} UTC` : "What you see may be old";
      const age = ended ? "" : `, ${Math.floor(silentMs / 1000)} s ago`;
      banner.textContent = `NOT UP TO DATE. ${since}${age}. ${why}`;
    }
    banner.hidden = !stale;
    if (!ended && socket && silentMs > SILENT_MS && socket.readyState === WebSocket.OPEN) {
      socket.close(); // half open: the other side is gone without a word
    }
  }

  // ---- times

  function duration(seconds) {
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
    return `${Math.floor(seconds / 86400)} d`;
  }

  function ageTimes() {
    const now = Date.now() + offsetMs;
    for (const time of document.querySelectorAll("time.age")) {
      const seconds = Math.max(0, Math.floor((now - Date.parse(time.dateTime)) / 1000));
      const text = duration(seconds);
      if (time.textContent !== text) time.textContent = text;
    }
    const clock = document.querySelector(".clock time");
    if (clock && !document.body.classList.contains("is-stale")) clock.textContent = utc(new Date(now));
  }

  document.addEventListener("mouseover", (event) => {
    const time = event.target.closest?.("time[title]");
    if (!time || time.dataset.local) return;
    time.dataset.local = "1";
    time.title += `\n${new Date(time.dateTime).toLocaleString()} local`;
  });

  // ---- live updates

  let focused = "";
  document.body.addEventListener("htmx:wsBeforeMessage", () => {
    focused = document.activeElement?.id || "";
  });
  document.body.addEventListener("htmx:wsAfterMessage", () => {
    if (focused && document.activeElement?.id !== focused) byId(focused)?.focus({ preventScroll: true });
    const trouble = byId("status")?.dataset.trouble;
    const title = trouble ? `(${trouble}) ${baseTitle}` : baseTitle;
    if (document.title !== title) document.title = title;
    heard();
    ageTimes();
  });
  document.body.addEventListener("htmx:wsClose", (event) => {
    const code = event.detail.event.code;
    if (FINAL[code]) ended = FINAL[code];
    // The extension comes back by itself after these; any other end is ours to mend.
    else if (![1006, 1011, 1012, 1013].includes(code)) {
      setTimeout(() => event.detail.socketWrapper.reconnect(), RECONNECT_MS);
    }
    tick();
  });
  htmx.config.wsReconnectDelay = () => RECONNECT_MS * (0.5 + Math.random());
  htmx.createWebSocket = (url) => {
    socket = new WebSocket(url, []);
    return socket;
  };

  // ---- dialogs: forms stand outside of what live updates replace

  const dialog = byId("dialog");
  let opener = "";

  async function openDialog(link) {
    opener = link.id;
    await htmx.ajax("GET", link.getAttribute("href"), { target: "#dialog", swap: "innerHTML" });
    if (!dialog.querySelector("form")) return;
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("textarea, input:not([type=hidden])")?.focus();
  }

  function closeDialog() {
    if (dialog.open) dialog.close();
  }

  dialog.addEventListener("close", () => {
    dialog.replaceChildren();
    byId(opener)?.focus();
  });
  document.body.addEventListener("acted", (event) => {
    closeDialog();
    say(event.detail.said, "success");
  });
  document.body.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    say(status === 403 ? "Not allowed: your role does not include this." : `The desk answered with an error (${status}). Look at the journal before you try again.`, "error");
  });
  document.body.addEventListener("htmx:sendError", () => {
    say("No answer from the desk. It may or may not have been done: look at the journal.", "error");
  });

  function say(text, kind) {
    const line = document.createElement("p");
    line.className = kind;
    line.textContent = text;
    byId("said").replaceChildren(line);
  }

  // ---- clicks

  document.addEventListener("click", (event) => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest("a[data-dialog]");
    const close = event.target.closest("[data-close]");
    const copy = event.target.closest("[data-copy]");
    if (link) {
      event.preventDefault();
      openDialog(link);
    } else if (close && dialog.contains(close)) {
      event.preventDefault();
      closeDialog();
    } else if (copy) {
      copyText(copy);
    }
  });

  async function copyText(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.classList.add("copied");
      setTimeout(() => button.classList.remove("copied"), 1200);
    } catch {
      say(`Copy by hand: ${button.dataset.copy}`, "warning");
    }
  }

  // ---- the ticket: decided when it is sent first; sent again, it is the same decision

  const ticket = byId("ticket");
  ticket?.addEventListener("submit", () => {
    if (ticket.dataset.decided) return;
    ticket.dataset.decided = "1";
    ticket.elements.decided_at.value = new Date(Date.now() + offsetMs).toISOString();
  });

  // ---- theme

  const themeButton = byId("theme");
  if (themeButton) {
    const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const name = () => { themeButton.textContent = dark() ? "Light" : "Dark"; };
    themeButton.hidden = false;
    themeButton.addEventListener("click", () => {
      document.documentElement.dataset.theme = dark() ? "light" : "dark";
      localStorage.setItem("theme", document.documentElement.dataset.theme);
      name();
    });
    name();
  }

  tick();
  ageTimes();
  setInterval(tick, 250);
  setInterval(ageTimes, 1000);
})();
