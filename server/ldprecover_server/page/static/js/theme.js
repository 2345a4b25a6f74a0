// Sets the chosen theme before the first paint. A script, because modules run later.
(() => {
  try {
    const chosen = localStorage.getItem("ldprecover-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Without storage the page has the system's theme.
  }
})();
