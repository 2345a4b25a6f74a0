// Before the first paint: the theme that was chosen here, if one was. Run as a script, not a module, which would wait.
(() => {
  try {
    const chosen = localStorage.getItem("ldprecover-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing has the system's theme.
  }
})();
