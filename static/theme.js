"use strict";
// Before the first paint: the theme that the reader chose, or none, and then the system decides.
(() => {
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden: the system's theme it is.
  }
})();
