// Starts the page: navigation, key and theme, then the view of the address.

import { hasKey, isAbort, keyScope, onKey, sentenceOf, setKey } from "./api.js";
import { fill, h, notice } from "./dom.js";
import { parse, setQuery, start } from "./router.js";
import { VIEWS } from "./views/index.js";

const main = document.getElementById("main");

function showNav(shown) {
  const links = VIEWS.filter((view) => view.label).map((view) =>
    h("a", { href: `#/${view.path}`, "aria-current": view === shown ? "page" : null }, view.label),
  );
  fill(document.getElementById("nav"), links);
}

function showFailure(place, error) {
  if (isAbort(error)) return;
  fill(
    place,
    h("h1", {}, "That did not work"),
    notice("bad", sentenceOf(error)),
    h("p", {}, h("a", { href: "#/rounds" }, "All rounds")),
  );
}

function setUp() {
  const keyButton = document.getElementById("key");
  const showKey = () => fill(keyButton, hasKey() ? `Key: ${keyScope()}` : "Enter key");
  keyButton.addEventListener("click", async () => (await import("./key.js")).askForKey());
  onKey(showKey);
  showKey();

  const root = document.documentElement;
  const themeButton = document.getElementById("theme");
  const isDark = () =>
    (root.dataset.theme ??
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const showTheme = () =>
    themeButton.setAttribute("aria-label", isDark() ? "Light theme" : "Dark theme");
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("ldprecover-theme", root.dataset.theme);
    } catch {
      // Without storage the choice lasts until the page is left.
    }
    showTheme();
    dispatchEvent(new Event("themechange"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    showTheme();
    dispatchEvent(new Event("themechange"));
  });
  // Before the browser counts the pages, which a change of the media comes after.
  for (const event of ["beforeprint", "afterprint"])
    addEventListener(event, () => {
      root.toggleAttribute("data-paper", event === "beforeprint");
      dispatchEvent(new Event("themechange"));
    });
  showTheme();
  document.getElementById("skip").addEventListener("click", () => main.focus());
}

/** Take the key of a link, and remove it from the address. */
async function takeKey() {
  const key = parse(location.hash).query.get("key");
  if (!key) return;
  setQuery({ key: null });
  try {
    await setKey(key);
  } catch {
    const old = "The server does not know the key of this link: it may have started again since.";
    (await import("./key.js")).askForKey(old);
  }
}

setUp();
start(main, VIEWS, { nav: showNav, failed: showFailure, prepare: takeKey });
