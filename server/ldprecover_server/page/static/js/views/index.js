// The views, in the order in which the navigation has them. One without a label is reached by links alone.

export const VIEWS = [
  { path: "rounds", label: "Rounds", title: "Rounds", load: () => import("./rounds.js") },
  { path: "plan", label: "Planner", title: "Plan a round", load: () => import("./plan.js") },
  { path: "open", title: "Open a round", load: () => import("./open.js") },
  { path: "series", title: "A series of rounds", load: () => import("./series.js") },
];
