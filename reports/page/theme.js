// Before the first paint, so that nothing flashes: the reader's own choice, else the system's.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("anyharness-theme"); } catch { /* storage may be off */ }
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
