// The views, in the order of the navigation. A view without a label has links only.

export const VIEWS = [
  {
    path: "rounds",
    label: "Rounds",
    title: "Rounds",
    load: ([id]) => (id === undefined ? import("./rounds.js") : import("../round/view.js")),
  },
  { path: "forms", title: "A form", load: () => import("./form.js") },
  { path: "series", title: "A series", load: () => import("./series.js") },
  { path: "open", title: "Open a round", load: () => import("./open.js") },
  { path: "plan", label: "Planner", title: "Plan a round", load: () => import("./plan.js") },
];
