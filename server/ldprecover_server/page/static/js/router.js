// Views by the hash of the address: `#/rounds/ID?method=unmix`. Every view has an address to share.

let current = null; // {controller, view}

/** Split a hash into its path and its parameters. */
export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(search) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // malformed, so there is no such view or round
  }
}

/** The hash of a view: `link(["rounds", id], {method: "unmix"})`; empty parameters are left out. */
export function link(path, query = {}) {
  const kept = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  const search = new URLSearchParams(kept).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/** Go to a view. */
export function go(path, query) {
  location.hash = link(path, query);
}

/** Write parameters into the address without reloading the view; null removes one. */
export function setQuery(changes) {
  const { path, query } = parse(location.hash);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  history.replaceState(null, "", link(path, Object.fromEntries(query)));
}

/**
 * Show the view of the address in `main`, now and after each change of the address.
 *
 * A view is `{path: "rounds", label, title, load}`; `load(path)` gives a module whose `show({main, path, query, signal})`
 * fills `main`; `path` is what follows the view's own, and `signal` aborts when the view is left. `failed(main, error)`
 * shows what went wrong. `prepare()` comes first, and may change the address.
 */
export function start(main, views, { nav, failed, prepare }) {
  const open = async () => {
    await prepare();
    const { path, query } = parse(location.hash);
    if (path.length === 0) {
      history.replaceState(null, "", link([views[0].path]));
      path.push(views[0].path);
    }
    const view = views.find((each) => each.path === path[0]);
    current?.controller.abort();
    const controller = new AbortController();
    current = { controller };
    nav(view);
    main.replaceChildren();
    document.title = `${view?.title ?? "Not found"} – LDPRecover`;
    try {
      if (!view) throw new Error("there is no such view");
      const module = await view.load(path.slice(1));
      if (controller.signal.aborted) return;
      await module.show({ main, path: path.slice(1), query, signal: controller.signal });
    } catch (error) {
      if (!controller.signal.aborted) failed(main, error);
    }
  };
  addEventListener("hashchange", async () => {
    await open();
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  });
  return open();
}
